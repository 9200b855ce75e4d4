import Testing
import Wire

@testable import Confab

/// The rules of people that only Swift has; `protocol/scripts/people.json` has the others.
@Suite("The rules of devices that are linked and registered")
struct PeopleMachineTests {
    private let now = Timestamp(milliseconds: 1_000_000)
    private let caller = FeatureCaller(number: 1)

    @Test("using a link code returns when the device is linked")
    func linked() {
        var machine = PresenceMachine()
        _ = machine.handle(.useLink(code: "ABCD-EFGH", label: nil), from: caller, now: now)
        let linked = ServerMessage.presence(.linked(.init(re: 1, person: PersonID(high: 0, low: 9))))
        #expect(
            machine.handle(.answered(1, .success(linked)), now: now)
                == [.finish(caller, .success(linked))])
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
