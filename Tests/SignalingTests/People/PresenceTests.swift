import Signaling
import Testing
import Wire

/// Tests presence: names, visibility, and how long people stay in memory.
@Suite struct PresenceTests {
    private let stage = Stage()

    // MARK: Names

    @Test func appearingReturnsTheSettings() {
        let ada = stage.arrive()
        let own = ada.appear("  Ada   Lovelace ")?.own
        #expect(own?.name == "Ada Lovelace")
        #expect(own?.person == stage.person(ada))
        #expect(own?.visible == true)
        #expect(own?.doNotDisturb == false)
        #expect(own?.ringable == .everyone)
        #expect(own?.hasPosition == false)
        #expect(stage.archive.identity(of: stage.person(ada)) == ada.identity)
    }

    @Test func aMissingNameIsReplacedPermanently() {
        let ada = stage.arrive()
        let name = ada.appear()?.own?.name ?? ""
        #expect(name.split(separator: " ").count == 2)
        #expect(ada.set(name: "Ada")?.own?.name == "Ada")
        #expect(ada.set(name: " ")?.own?.name == name, "an empty name is not a name")
        ada.leave()
        ada.arrive()
        #expect(ada.appear()?.own?.name == name)
    }

    @Test func settingsAreKeptAcrossARestart() {
        let ada = stage.arrive()
        ada.appear("Ada", visible: false, ringable: .contacts)
        #expect(ada.set(doNotDisturb: true)?.own?.ringable == .contacts)
        let stored = stage.changes.count
        ada.set(name: "Ada")
        #expect(stage.changes.count == stored, "without a change, nothing is stored")
        stage.restart()
        ada.arrive()
        let own = ada.appear()?.own
        #expect(own?.name == "Ada")
        #expect(own?.visible == false)
        #expect(own?.doNotDisturb == true)
        #expect(own?.ringable == .contacts)
    }

    @Test func theHelloNameIsUsedOnTheFirstAppearance() {
        let ada = stage.arrive(name: "Ada")
        #expect(ada.appear()?.own?.name == "Ada")
        let ben = stage.arrive(name: "Ben\nBen")
        #expect(ben.appear()?.own?.name.contains("Ben") == false)
    }

    @Test(
        arguments: [
            "Ada\u{202E}adA", "a\u{2066}b", "a\u{200F}", "\u{061C}a", "a\nb", "a\r", "a\u{0}b", "a\u{85}b",
            "a\u{2028}b",
            "a\u{200B}b", "a\u{FEFF}b", "\u{E000}", "\u{10FFFF}", "tab\there", String(repeating: "a", count: 41),
            String(repeating: "😀", count: 41), String(repeating: "a", count: 10_240),
            String(repeating: "\u{301}", count: 200),
        ])
    func invalidNamesAreRefusedAndNothingChanges(name: String) {
        let ada = stage.arrive()
        #expect(ada.appear(name)?.errorCode == .invalidName)
        #expect(ada.move(1, 1)?.errorCode == .notPresent, "the device did not send presence.appear")
        ada.appear("Ada")
        #expect(ada.set(name: name)?.errorCode == .invalidName)
        #expect(ada.set(visible: true)?.own?.name == "Ada")
    }

    @Test(
        arguments: [
            "Åsa", "宮崎 駿", "محمد", "می\u{200C}خواهم", "👩‍👩‍👧‍👦", "🏴\u{E0067}\u{E0062}\u{E0065}\u{E006E}\u{E0067}\u{E007F}",
            "O'Neill",
            "<b>Bold</b>", "'; DROP TABLE profile; --", String(repeating: "é", count: 40),
        ])
    func whatPeopleAreCalledIsAName(name: String) {
        #expect(stage.arrive().appear(name)?.own?.name == name)
    }

    @Test(arguments: ["\u{200D}\u{200C}", "\u{2800}\u{2800}", "\u{3164}", "\u{FE0F}"])
    func invisibleNamesAreRefused(name: String) {
        #expect(stage.arrive().appear(name)?.own?.name.split(separator: " ").count == 2)
    }

    @Test func aNameFromATokenCannotBeChanged() {
        let ada = Guest(on: stage, as: stage.identity())
        ada.vouched = "Dr. Ada\u{202E} Lovelace" + String(repeating: " of Ockham", count: 20)
        ada.arrive()
        let name = ada.appear("Another name")?.own?.name ?? ""
        #expect(name.hasPrefix("Dr. Ada Lovelace of Ockham"))
        #expect(name.count <= 40)
        #expect(ada.set(name: "Another name")?.own?.name == name)
        #expect(ada.ask(.presence(.link))?.errorCode == .notPermitted)
    }

    // MARK: Other devices

    @Test func otherDevicesAreNotifiedOfChanges() {
        let ada = stage.arrive()
        let phone = stage.arrive(ada.identity)
        let tab = stage.arrive(ada.identity)
        ada.appear("Ada")
        phone.appear()
        ada.take()
        stage.pass(stage.rules.ownPresenceInterval)
        ada.set(name: "Ada L.", doNotDisturb: true)
        let heard = phone.take().compactMap(\.own)
        #expect(heard.map(\.name) == ["Ada L."])
        #expect(heard.first?.re == nil)
        #expect(ada.take().isEmpty, "the sender gets only the answer")
        #expect(tab.take().isEmpty, "a device that is not online is not notified")
        stage.pass(stage.rules.ownPresenceInterval)
        phone.move(1, 1)
        #expect(ada.take().compactMap(\.own).map(\.hasPosition) == [true])
        phone.move(1.05, 1)
        #expect(ada.take().isEmpty, "the location is not announced again")
        stage.pass(stage.rules.ownPresenceInterval)
        phone.ask(.nearby(.forget))
        #expect(ada.take().compactMap(\.own).map(\.hasPosition) == [false])
    }

    @Test("of many changes in a short time, other devices receive the first and the last")
    func changesAreCoalesced() {
        let ada = stage.arrive()
        let phone = stage.arrive(ada.identity)
        ada.appear("Ada")
        phone.appear()
        stage.pass(stage.rules.ownPresenceInterval)
        phone.take()
        for number in 0..<50 { ada.set(name: "Ada \(number)") }
        #expect(phone.take().compactMap(\.own).map(\.name) == ["Ada 0"])
        ada.take()
        stage.pass(stage.rules.ownPresenceInterval)
        #expect(phone.take().compactMap(\.own).map(\.name) == ["Ada 49"])
        #expect(ada.take().compactMap(\.own).isEmpty, "the device that made the changes knows them")
    }

    @Test("a connection beyond a person's limit closes the oldest one")
    func connectionsPerPerson() {
        let first = stage.arrive()
        let second = stage.arrive(first.identity)
        for _ in 2..<stage.rules.connectionsPerPerson { stage.arrive(first.identity) }
        #expect(first.closeCode == nil)
        stage.arrive(first.identity)
        #expect(first.closeCode == .replaced)
        #expect(second.closeCode == nil)
        #expect(stage.hub.clientCount == stage.rules.connectionsPerPerson)
    }

    @Test("all devices of a person share one budget of requests")
    func sharedBudget() {
        let stage = Stage { $0.personVerbs = Budget.Rate(perSecond: 1, burst: 10) }
        let ada = stage.arrive()
        let phone = stage.arrive(ada.identity)
        ada.appear("Ada")
        phone.appear()
        var refused = 0
        for number in 0..<10 where (number % 2 == 0 ? ada : phone).set(name: "\(number)")?.errorCode == .rateLimited {
            refused += 1
        }
        #expect(refused == 2)
    }

    // MARK: Finding

    @Test func peopleAreFoundByIdOnlineOfflineAndAfterARestart() {
        let (ada, ben) = (stage.arrive(), stage.arrive())
        ada.appear("Ada")
        let id = stage.person(ada)
        #expect(ben.find(id)?.found == PersonInfo(id: id, name: "Ada", online: true))
        ada.drop()
        #expect(ben.find(id)?.found?.online == false)
        ada.resume()
        ada.set(visible: false)
        #expect(ben.find(id)?.found?.online == false, "an invisible person looks offline")
        ada.set(visible: true)
        ada.leave()
        #expect(ben.find(id)?.found == PersonInfo(id: id, name: "Ada", online: false))
        stage.restart()
        ben.arrive()
        #expect(ben.find(id)?.found == PersonInfo(id: id, name: "Ada", online: false))
        ada.arrive()
        #expect(ben.find(id)?.found?.online == false, "a person looks offline before going online")
        ada.appear()
        #expect(ben.find(id)?.found?.online == true)
        #expect(stage.hub.personCount == 2)
        stage.pass(.seconds(3600))
    }

    @Test func peopleLoadedForALookupAreForgotten() {
        let (ada, ben) = (stage.arrive(), stage.arrive())
        ada.appear("Ada")
        ada.leave()
        #expect(stage.hub.personCount == 1)
        _ = ben.find(stage.person(ada))
        #expect(stage.hub.personCount == 2)
        stage.pass(stage.rules.personIdle)
        #expect(stage.hub.personCount == 1)
    }

    @Test func offlinePeopleInMemoryAreLimited() {
        let stage = Stage { $0.absentPeople = 3 }
        let stranger = stage.present("Stranger")
        let guests = (0..<5).map { stage.nearby("\($0)") }
        for _ in 0..<200 {
            guests[4].leave()
            guests[4].arrive()
        }
        for guest in guests { guest.leave() }
        #expect(stage.hub.personCount == 4)
        for guest in guests { guest.arrive() }
        for guest in guests { guest.appear() }
        let answers = guests.map { $0.move(-40, 170)?.errorCode }
        #expect(answers == [nil, nil, .positionTooFast, .positionTooFast, .positionTooFast])
        for guest in guests { guest.leave() }
        for guest in guests { #expect(stranger.find(stage.person(guest))?.found?.online == false) }
        #expect(stage.hub.personCount == 4, "lookups do not fill the memory")
    }

    @Test func unknownIdsFindNobody() {
        let ada = stage.arrive()
        ada.appear()
        let nobody = PersonID(high: 1, low: 2)
        #expect(ada.find(nobody)?.errorCode == .notFound)
        #expect(ada.block(person: nobody)?.errorCode == .notFound)
        #expect(ada.unblock(person: nobody)?.errorCode == .notFound)
        #expect(ada.ask(.presence(.unlink(.init(device: nobody))))?.errorCode == .notFound)
        #expect(ada.find(stage.person(ada))?.found?.online == true, "people can find themselves")
    }

    // MARK: Blocking

    @Test func aBlockedPersonFindsSomeoneOffline() {
        let (ada, ben) = (stage.arrive(), stage.arrive())
        ada.appear("Ada")
        ben.appear("Ben")
        #expect(ada.block(person: stage.person(ben))?.type == "ok")
        #expect(ben.find(stage.person(ada))?.found == PersonInfo(id: stage.person(ada), name: "Ada", online: false))
        #expect(ada.blockedPeople?.map(\.id) == [stage.blocked(ben, by: ada)])
        #expect(stage.changes.contains { if case .block = $0 { true } else { false } })
        #expect(ada.unblock(person: stage.person(ben))?.type == "ok")
        #expect(ada.blockedPeople == [])
        #expect(ben.find(stage.person(ada))?.found?.online == true)
        #expect(ada.unblock(person: stage.person(ben))?.errorCode == .notFound)
    }

    @Test func blockingYourselfIsRefused() {
        let ada = stage.arrive()
        ada.appear()
        #expect(ada.block(person: stage.person(ada))?.errorCode == .notPermitted)
        #expect(ada.blockedPeople == [])
    }

    @Test func blockingEndsTheChat() {
        let (ada, ben, _) = stage.pair()
        ada.appear("Ada")
        ben.appear("Ben")
        ben.take()
        ada.block(person: stage.person(ben))
        #expect(ada.takeEnds() == [.blocked])
        #expect(ben.takeEnds() == [.partnerNext], "the blocked person does not get the reason")
        stage.pass(.seconds(60))
        #expect(!ada.isMatched && !ben.isMatched, "they are not paired again")
    }

    @Test func blockingAPartnerDoesNotRevealTheirId() throws {
        let (ada, ben, _) = stage.pair()
        ada.ask(.roulette(.block(.init(match: nil))))
        let listed = try #require(ada.blockedPeople?.first)
        #expect(listed.id != stage.person(ben))
        #expect(ada.find(listed.id)?.errorCode == .notFound)
        #expect(ada.unblock(person: listed.id)?.type == "ok")
        #expect(ada.find(stage.person(ben))?.errorCode == .notFound, "a person who was never online is unknown")
    }

    @Test func aBlockerDoesNotFindTheBlockedPersonEither() {
        let (ada, ben) = (stage.arrive(), stage.arrive())
        for guest in [ada, ben] { guest.appear() }
        ada.block(person: stage.person(ben))
        #expect(ada.find(stage.person(ben))?.errorCode == .notFound)
    }

    @Test func blockedPeopleAreListedNewestFirstUpToTheLimit() {
        let stage = Stage { $0.maxBlocks = 3 }
        let ada = stage.arrive()
        ada.appear("Ada")
        let others = (0..<5).map { number in stage.arrive(name: "\(number)") }
        for other in others { other.appear() }
        for other in others { ada.block(person: stage.person(other)) }
        #expect(ada.blockedPeople?.map(\.id) == others.suffix(3).reversed().map { stage.blocked($0, by: ada) })
    }

    // MARK: Wrong states

    @Test func verbsBeforeAppearingAreRefused() {
        let ada = stage.arrive()
        #expect(ada.set(name: "Ada")?.errorCode == .notPresent)
        #expect(ada.move(1, 1)?.errorCode == .notPresent)
        #expect(ada.ask(.nearby(.watch(.init(unit: .miles, radius: 5))))?.errorCode == .notPresent)
        #expect(ada.ask(.presence(.leave))?.type == "ok", "leaving twice is allowed")
        #expect(ada.ask(.nearby(.unwatch))?.type == "ok")
        #expect(ada.ask(.nearby(.forget))?.type == "ok")
        ada.appear()
        #expect(ada.ask(.nearby(.watch(.init(unit: .miles, radius: 5))))?.errorCode == .positionUnknown)
        ada.move(1, 1)
        ada.ask(.presence(.leave))
        #expect(ada.move(1, 1)?.errorCode == .notPresent)
        #expect(ada.appear()?.own?.hasPosition == false, "the person's location is forgotten too")
    }
}
