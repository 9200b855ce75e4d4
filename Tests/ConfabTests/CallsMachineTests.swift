import Testing
import Wire

@testable import Confab

/// The rules of calls that only Swift has; `protocol/scripts/calls.json` has the others.
@Suite("The rules of calls")
struct CallsMachineTests {
    private var machine = CallsMachine()
    private let now = Timestamp(milliseconds: 1_000_000)
    private let caller = FeatureCaller(number: 1)
    private let bob = PersonInfo(id: PersonID(high: 0, low: 2), name: "Bob", online: true)

    private func id(_ number: UInt64) -> CallID { CallID(high: 0, low: number) }

    private mutating func place(video: Bool = true) -> [CallsMachine.Effect] {
        var placed = CallNotice.Placed()
        (placed.call, placed.person) = (id(5), bob)
        _ = machine.handle(.start(bob.id, video: video), from: caller, now: now)
        return machine.handle(.answered(1, .success(.call(.placed(placed)))), now: now)
    }

    @Test("a missed call is reported once, and the application confirms it")
    mutating func missed() {
        var ended = CallNotice.Ended()
        (ended.call, ended.reason, ended.person) = (id(9), .missed, bob)
        let first = machine.handle(.event(.call(.ended(ended))), now: now)
        guard case .tell(.ended(let ending)) = first.first else { return #expect(Bool(false)) }
        #expect(first.count == 1 && ending.outcome == .missed)
        #expect(machine.handle(.event(.call(.ended(ended))), now: now) == [])
        let seen = machine.handle(.seen(id(9)), from: caller, now: now)
        #expect(seen == [.send(1, .call(.seen(.init(call: id(9)))))])
    }

    @Test("a call without video turns the video of the media off")
    mutating func withoutVideo() {
        #expect(place(video: false).first == .perform(.sendVideo(id(5), false)))
    }

    @Test("a call that continues under another id names its previous one")
    mutating func formerID() {
        _ = place()
        var accepted = CallNotice.Accepted()
        (accepted.call, accepted.person) = (id(4), bob)
        _ = machine.handle(.event(.call(.accepted(accepted))), now: now)
        #expect(machine.call(id(4))?.formerID == id(5))
        #expect(machine.call(id(4)).flatMap { machine.started(id(5), with: $0.person.id)?.id } == id(4))
    }

    @Test("a call that was declined after its push does not ring")
    mutating func declinedAfterPush() {
        let effects = machine.handle(.end(id(6)), from: caller, now: now)
        #expect(effects == [.finish(caller, .failure(.noSuchCall))])
        var incoming = CallNotice.Incoming()
        (incoming.call, incoming.person) = (id(6), bob)
        let answer = machine.handle(.event(.call(.incoming(incoming))), now: now)
        #expect(answer.contains { if case .send(_, .call(.end(.init(call: id(6))))) = $0 { true } else { false } })
    }

    @Test("after a restart, a call is rejoined")
    mutating func rejoining() throws {
        _ = place()
        var accepted = CallNotice.Accepted()
        (accepted.call, accepted.person) = (id(5), bob)
        _ = machine.handle(.event(.call(.accepted(accepted))), now: now)
        _ = machine.handle(.expired, now: now)
        #expect(machine.call(id(5))?.isRejoining == true)
        var rejoined: UInt64?
        for effect in machine.handle(.connected(Welcome(), .restarted), now: now) {
            if case .send(let number, .call(.rejoin)) = effect { rejoined = number }
        }
        let error = ConfabError(.callState, "This call is ending.")
        let request = try #require(rejoined)
        #expect(machine.handle(.answered(request, .failure(error)), now: now) == [], "nothing visible has changed")
    }
}
