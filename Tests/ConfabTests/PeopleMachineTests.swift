import Testing
import Wire

@testable import Confab

/// Scripts of events for the rules of presence, people nearby, contacts and push.
@Suite("The rules of presence, people nearby, contacts and push")
struct PeopleMachineTests {
    private let now = Timestamp(milliseconds: 1_000_000)
    private let caller = FeatureCaller(number: 1)

    private func own(name: String = "Ada", hasPosition: Bool = true) -> ServerMessage {
        var own = PresenceNotice.Own()
        (own.name, own.hasPosition) = (name, hasPosition)
        return .presence(.own(own))
    }

    private func row(_ number: UInt64, _ name: String) -> NearbyRow {
        NearbyRow(person: PersonID(high: 0, low: number), name: name, distance: 3, busy: false)
    }

    @Test("after a restart, a person appears before held requests are sent")
    func appearsFirst() {
        var machine = PresenceMachine()
        _ = machine.handle(.appear(.init(name: "Ada")), from: caller, now: now)
        _ = machine.handle(.answered(1, .success(own())), now: now)
        _ = machine.handle(.expired, now: now)
        #expect(machine.handle(.plain(.devices), from: caller, now: now) == [])
        // The server keeps a person's settings, which another device may have changed.
        #expect(
            machine.handle(.connected(Welcome(), .restarted), now: now) == [
                .send(3, .presence(.appear(.init()))), .send(2, .presence(.devices)),
            ])
    }

    @Test("a new person appears with the values of the old one")
    func newPerson() {
        var machine = PresenceMachine()
        _ = machine.handle(.appear(.init(name: "Ada")), from: caller, now: now)
        _ = machine.handle(.answered(1, .success(own())), now: now)
        var welcome = Welcome()
        welcome.identity = "a_new"
        #expect(
            machine.handle(.connected(welcome, .restarted), now: now)
                == [.send(2, .presence(.appear(.init(name: "Ada"))))])
    }

    @Test("a person who left does not appear again")
    func left() {
        var machine = PresenceMachine()
        _ = machine.handle(.appear(.init()), from: caller, now: now)
        _ = machine.handle(.answered(1, .success(own())), now: now)
        #expect(machine.handle(.leave, from: caller, now: now).first == .perform(.left))
        #expect(machine.handle(.connected(Welcome(), .restarted), now: now) == [])
    }

    @Test("a request whose answer was lost is sent again, unless it must not happen twice")
    func lostAnswer() {
        var machine = PresenceMachine()
        _ = machine.handle(.plain(.devices), from: caller, now: now)
        _ = machine.handle(.delete, from: caller, now: now)
        let error = ConfabError(.connectionRestarted, "The connection was replaced.")
        #expect(machine.handle(.answered(1, .failure(error)), now: now) == [])
        #expect(machine.handle(.answered(2, .failure(error)), now: now) == [.finish(caller, .failure(error))])
        #expect(machine.handle(.connected(Welcome(), .restarted), now: now) == [.send(1, .presence(.devices))])
    }

    @Test("using a link code returns when the device is linked")
    func linked() {
        var machine = PresenceMachine()
        _ = machine.handle(.useLink(code: "ABCD-EFGH", label: nil), from: caller, now: now)
        let linked = ServerMessage.presence(.linked(.init(re: 1, person: PersonID(high: 0, low: 9))))
        #expect(
            machine.handle(.answered(1, .success(linked)), now: now)
                == [.finish(caller, .success(linked))])
    }

    @Test("the page of people nearby follows its changes")
    func page() {
        var machine = NearbyMachine()
        let watch = NearbyVerb.Watch(unit: .kilometers, radius: 40)
        #expect(machine.handle(.watch(watch), from: caller, now: now) == [.send(1, .nearby(.watch(watch)))])
        var list = NearbyNotice.List()
        list.people = [row(1, "Ada"), row(2, "Bob")]
        _ = machine.handle(.answered(1, .success(.nearby(.list(list)))), now: now)
        var changed = NearbyNotice.Changed()
        changed.people = [row(3, "Cem")]
        changed.gone = [row(1, "").person]
        changed.order = [row(3, "").person, row(2, "").person]
        _ = machine.handle(.event(.nearby(.changed(changed))), now: now)
        #expect(machine.rows?.people.map(\.name) == ["Cem", "Bob"])
    }

    @Test("location and page are sent again after a restart")
    func sentAgain() {
        var machine = NearbyMachine()
        let move = NearbyVerb.Move(latitude: 52.5, longitude: 13.4)
        let watch = NearbyVerb.Watch(unit: .kilometers, radius: 40)
        _ = machine.handle(.move(move), from: caller, now: now)
        _ = machine.handle(.answered(1, .success(.ok(.init(re: 1)))), now: now)
        _ = machine.handle(.watch(watch), from: caller, now: now)
        #expect(
            machine.handle(.connected(Welcome(), .restarted), now: now)
                == [.send(3, .nearby(.move(move))), .send(4, .nearby(.watch(watch)))])
    }

    @Test("a location that was deleted on another device is not sent again")
    func deletedElsewhere() {
        var machine = NearbyMachine()
        _ = machine.handle(.move(.init(latitude: 52.5, longitude: 13.4)), from: caller, now: now)
        _ = machine.handle(.answered(1, .success(.ok(.init(re: 1)))), now: now)
        #expect(machine.handle(.event(own(hasPosition: false)), now: now) == [.tell(.positionForgotten)])
        #expect(machine.handle(.connected(Welcome(), .restarted), now: now) == [])
    }

    @Test("a move in progress during a deletion is not sent again")
    func deletedWhileMoving() {
        var machine = NearbyMachine()
        _ = machine.handle(.move(.init(latitude: 52.5, longitude: 13.4)), from: caller, now: now)
        _ = machine.handle(.forget, from: caller, now: now)
        _ = machine.handle(.answered(1, .success(.ok(.init(re: 1)))), now: now)
        #expect(machine.handle(.connected(Welcome(), .restarted), now: now) == [])
    }

    @Test("the application hears of contacts in the order of the server's messages")
    func contacts() {
        var machine = ContactsMachine()
        let bob = PersonInfo(id: PersonID(high: 0, low: 2), name: "Bob", online: true)
        let meeting = MeetingReference(match: MatchID(high: 0, low: 7))
        #expect(machine.handle(.event(.contact(.asked(meeting))), now: now) == [.tell(.asked(meeting))])
        #expect(machine.handle(.event(.contact(.changed(.init(person: bob)))), now: now) == [.tell(.changed(bob))])
    }

    @Test("a device token is registered again after a restart")
    func deviceToken() {
        var machine = PushMachine()
        let registration = PushRegistration(kind: .apns, endpoint: "ab")
        _ = machine.handle(.register(registration), from: caller, now: now)
        _ = machine.handle(.answered(1, .success(.ok(.init(re: 1)))), now: now)
        #expect(machine.handle(.connected(Welcome(), .resumed), now: now) == [])
        #expect(
            machine.handle(.connected(Welcome(), .restarted), now: now)
                == [.send(2, .push(.register(registration)))])
        _ = machine.handle(.unregister(.init(endpoint: "ab")), from: caller, now: now)
        #expect(machine.handle(.connected(Welcome(), .restarted), now: now) == [])
    }
}
