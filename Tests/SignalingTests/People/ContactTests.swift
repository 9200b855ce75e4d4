import Signaling
import TestSupport
import Testing
import Wire

@Suite struct ContactTests {
    private let stage = Stage()
    private let ada: Guest
    private let bob: Guest

    init() {
        ada = stage.present("Ada")
        bob = stage.present("Bob")
    }

    private func keep(_ guest: Guest, _ meeting: MeetingReference) -> ServerMessage? {
        guest.ask(.contact(.keep(meeting)))
    }

    private func contacts(_ guest: Guest) -> [PersonInfo] {
        guard case .list(let list)? = guest.ask(.contact(.list))?.contact else { return [] }
        return list.people
    }

    private func news(_ guest: Guest) -> [ContactNotice] { guest.take().compactMap(\.contact) }

    /// Makes two people talk in a call and become contacts.
    private func befriend() throws {
        let talk = try stage.talk(ada, bob)
        for guest in [ada, bob] { _ = keep(guest, MeetingReference(call: talk.call)) }
        ada.end(talk.call)
        ada.take()
        bob.take()
    }

    @Test func bothMustAgreeToBecomeContacts() throws {
        let talk = try stage.talk(ada, bob)
        let meeting = MeetingReference(call: talk.call)
        #expect(keep(ada, meeting)?.type == "ok")
        #expect(news(bob) == [.asked(meeting)])
        #expect(contacts(ada).isEmpty)
        #expect(keep(ada, meeting)?.type == "ok")
        #expect(news(bob).isEmpty, "one person agreeing twice does not count as both agreeing")
        #expect(keep(bob, meeting)?.type == "ok")
        let (hers, his) = (stage.person(ada), stage.person(bob))
        #expect(
            news(ada) == [
                .added(.init(person: PersonInfo(id: his, name: "Bob", online: true), meeting: meeting))
            ])
        #expect(
            news(bob) == [
                .added(.init(person: PersonInfo(id: hers, name: "Ada", online: true), meeting: meeting))
            ])
        #expect(contacts(ada).map(\.name) == ["Bob"])
        #expect(contacts(bob).map(\.name) == ["Ada"])
        #expect(stage.archive.record(of: ada.person).contacts.map(\.identity) == [bob.person])
    }

    /// If the change then cannot be stored, the error is the only answer.
    @Test func theAnswerFollowsTheStoredContact() throws {
        let talk = try stage.talk(ada, bob)
        let meeting = MeetingReference(call: talk.call)
        for guest in [ada, bob] { _ = keep(guest, meeting) }
        let request = ada.say(.contact(.keep(meeting)))
        let stored = try #require(
            stage.effects.firstIndex { if case .persist(.keptInTouch) = $0 { true } else { false } })
        let answered = try #require(
            stage.effects.firstIndex { effect in
                guard case .transmit(_, let bytes) = effect,
                    case .ok(let ok)? = (try? Envelope<ServerMessage>.decode(bytes))?.message
                else { return false }
                return ok.re == request
            })
        #expect(stored < answered)
    }

    @Test func contactsCanBeKeptAnHourAfterTheCall() throws {
        let talk = try stage.talk(ada, bob)
        ada.end(talk.call)
        stage.pass(.seconds(3500))
        #expect(keep(ada, MeetingReference(call: talk.call))?.type == "ok")
        #expect(news(bob) == [.asked(.init(call: talk.call))])
        bob.leave()
        stage.pass(.seconds(60))
        bob.arrive()
        bob.appear()
        #expect(news(bob) == [.asked(.init(call: talk.call))], "a returning person gets the request")
        stage.pass(.seconds(100))
        #expect(keep(bob, MeetingReference(call: talk.call))?.errorCode == .notFound)
    }

    @Test func anUnansweredCallIsNoMeeting() throws {
        let call = try stage.ring(ada, bob)
        #expect(keep(ada, MeetingReference(call: call))?.errorCode == .notFound)
        bob.decline(call)
        #expect(keep(bob, MeetingReference(call: call))?.errorCode == .notFound)
    }

    @Test func strangersOfTheRouletteMayKeepInTouch() throws {
        let (kim, lee) = (stage.arrive(), stage.arrive())
        kim.start(name: "Kim")
        lee.start(name: "Lee")
        let match = try #require(kim.match?.match)
        for guest in [kim, lee] { guest.take() }
        #expect(keep(kim, MeetingReference(match: match))?.type == "ok")
        lee.next()
        stage.pass(.seconds(30))
        #expect(keep(lee, MeetingReference(match: match))?.type == "ok")
        #expect(contacts(kim).map(\.name) == ["Lee"])
        #expect(contacts(lee).map(\.name) == ["Kim"])
        kim.stop()
        lee.stop()
        kim.appear()
        #expect(kim.call(stage.person(lee))?.type == "call.placed", "contacts can then be called")
        stage.pass(.seconds(100))
        #expect(keep(ada, MeetingReference(match: match))?.errorCode == .notFound, "it was not her chat")
    }

    @Test func contactsAreNotifiedOfPresence() throws {
        try befriend()
        bob.drop()
        let info = PersonInfo(id: stage.person(bob), name: "Bob", online: false)
        #expect(news(ada) == [.changed(.init(person: info))])
        #expect(contacts(ada) == [info])
        bob.resume()
        #expect(news(ada).count == 1)
        bob.ask(.presence(.set(Appearance(visible: false))))
        #expect(news(ada) == [.changed(.init(person: info))], "invisible people look offline")
        bob.ask(.presence(.set(Appearance(name: "Robert", visible: true))))
        #expect(contacts(ada).map(\.name) == ["Robert"])
        ada.leave()
        ada.arrive()
        ada.appear()
        #expect(contacts(ada).map(\.online) == [true])
        #expect(contacts(bob).map(\.online) == [true])
    }

    @Test func eitherCanRemoveTheContactForBoth() throws {
        try befriend()
        let phone = stage.another(of: ada)
        let removed = PersonReference(person: stage.person(bob))
        #expect(ada.ask(.contact(.remove(removed)))?.type == "ok")
        #expect(news(phone) == [.removed(removed)])
        #expect(news(bob) == [.removed(.init(person: stage.person(ada)))])
        #expect(contacts(ada).isEmpty && contacts(bob).isEmpty)
        #expect(stage.archive.record(of: bob.person).contacts.isEmpty)
        #expect(ada.ask(.contact(.remove(removed)))?.errorCode == .notFound)
    }

    @Test func blockingRemovesTheContactOnBothSides() throws {
        try befriend()
        bob.ask(.presence(.block(.init(person: stage.person(ada)))))
        #expect(contacts(ada).isEmpty && contacts(bob).isEmpty)
        let call = try #require(stage.archive.logs[ada.person]?.last?.call)
        #expect(keep(ada, MeetingReference(call: call))?.type == "ok")
        #expect(news(bob).isEmpty, "the request is not sent twice")
    }

    @Test func deletedPeopleAreRemovedFromContacts() throws {
        try befriend()
        bob.ask(.presence(.delete))
        #expect(news(ada) == [.removed(.init(person: stage.person(bob)))])
        #expect(contacts(ada).isEmpty)
    }

    @Test func contactsAreLimitedToFiveHundred() throws {
        let many = (0..<500).map { Contact(identity: IdentityID(high: 9, low: UInt64($0)), name: "\($0)") }
        let full = stage.arrive(record: PersonRecord(contacts: many))
        full.appear("Full")
        full.take()
        let talk = try stage.talk(full, ada)
        #expect(keep(full, MeetingReference(call: talk.call))?.errorCode == .notPermitted)
        #expect(keep(ada, MeetingReference(call: talk.call))?.type == "ok")
        #expect(news(full) == [.asked(.init(call: talk.call))])
        #expect(contacts(ada).isEmpty)
    }
}
