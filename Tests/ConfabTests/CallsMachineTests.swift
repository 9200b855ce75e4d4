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

    @Test("a missed call is told once, and the application confirms it")
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

    @Test("a server that lets endless calls ring is not followed")
    mutating func endlessCalls() {
        for number in 1...200 { _ = hear(incoming(UInt64(number))) }
        #expect(machine.calls.count == CallsMachine.maxRinging)
    }

    @Test("ending a call ends it here at once")
    mutating func endedAtOnce() {
        place()
        _ = hear(accepted(5))
        let effects = machine.handle(.end(id(5)), from: caller, now: now)
        #expect(verbs(effects) == [.end(.init(call: id(5)))])
        #expect(effects.contains(.perform(.leave(id(5), isLost: false))))
        #expect(outcomes(effects) == [.ended])
        #expect(machine.calls.isEmpty)
    }

    @Test("ending a ringing call cancels or declines it")
    mutating func endedWhileRinging() {
        place()
        #expect(outcomes(machine.handle(.end(id(5)), from: caller, now: now)) == [.cancelled])
        _ = hear(incoming(6))
        let effects = machine.handle(.end(id(6)), from: caller, now: now)
        #expect(verbs(effects) == [.decline(.init(call: id(6)))])
        #expect(outcomes(effects) == [.declined])
    }

    @Test("a call that ended here is ended on the server if it rings again")
    mutating func ringsAgain() {
        _ = hear(incoming(6))
        _ = machine.handle(.decline(id(6)), from: caller, now: now)
        #expect(verbs(hear(incoming(6))) == [.end(.init(call: id(6)))])
        #expect(machine.calls.isEmpty)
    }

    @Test("a call that was declined after its push does not ring")
    mutating func declinedAfterPush() {
        let effects = machine.handle(.end(id(6)), from: caller, now: now)
        #expect(effects == [.finish(caller, .failure(.noSuchCall))])
        #expect(verbs(hear(incoming(6))) == [.end(.init(call: id(6)))])
    }

    @Test("accepting a call ends the other one")
    mutating func acceptedOverAnother() {
        place()
        _ = hear(accepted(5))
        _ = hear(incoming(6))
        _ = machine.handle(.accept(id(6), video: true), from: caller, now: now)
        let effects = hear(accepted(6))
        #expect(outcomes(effects) == [.ended])
        #expect(machine.calls.map(\.id) == [id(6)])
    }

    @Test("two people who call each other continue in one call")
    mutating func merged() {
        place(5)
        _ = hear(incoming(4))
        let effects = hear(accepted(4))
        #expect(outcomes(effects) == [.merged])
        #expect(machine.calls.map(\.id) == [id(4)])
        #expect(machine.call(id(4))?.formerID == id(5))
        #expect(machine.call(id(4)).flatMap { machine.started(id(5), with: $0.person.id)?.id } == id(4))
        #expect(effects.contains { if case .perform(.join(id(4), _)) = $0 { true } else { false } })
        #expect(outcomes(hear(ended(5, .merged, into: 4))) == [])
    }

    @Test("of two calls to each other, the one with the smaller id continues")
    mutating func smallerID() {
        place(5)
        _ = hear(incoming(8))
        #expect(outcomes(hear(accepted(5))) == [.merged])
        #expect(machine.calls.map(\.id) == [id(5)])
    }

    @Test("a call that is never ended stops ringing")
    mutating func stopsRinging() {
        place()
        #expect(machine.nextTimeout == now + .seconds(50))
        now = now + .seconds(50)
        #expect(outcomes(machine.handleTimeout(now: now)) == [.unanswered])
        #expect(machine.nextTimeout == nil)
    }

    @Test("after a restart, own calls are rejoined and ringing ones are looked up")
    mutating func restarted() {
        place()
        _ = hear(accepted(5))
        _ = hear(incoming(6))
        let lost = machine.handle(.expired, now: now)
        #expect(lost.contains(.perform(.leave(id(5), isLost: true))) && machine.call(id(5))?.isRejoining == true)
        let effects = machine.handle(.connected(Welcome(), .restarted), now: now)
        #expect(verbs(effects) == [.rejoin(.init(call: id(5))), .log(.init())])
        guard case .send(let request, _) = effects.last else { return #expect(Bool(false)) }
        // Neither rings again nor is in the log: another device has it.
        let log = ServerMessage.call(.log(.init(re: 1, calls: [], next: nil)))
        let answered = machine.handle(.answered(request, .success(log)), now: now)
        #expect(outcomes(answered) == [.answeredElsewhere])
        #expect(machine.calls.map(\.id) == [id(5)])
    }

    @Test("a call that cannot be rejoined is lost")
    mutating func lost() {
        place()
        _ = hear(accepted(5))
        _ = machine.handle(.expired, now: now)
        guard case .send(let request, _) = machine.handle(.connected(Welcome(), .restarted), now: now).first else {
            return #expect(Bool(false))
        }
        let error = ConfabError(.notFound, "There is no such call.")
        #expect(outcomes(machine.handle(.answered(request, .failure(error)), now: now)) == [.connectionLost])
    }

    @Test("an acceptance that was too late waits for the end of the call")
    mutating func acceptedTooLate() {
        _ = hear(incoming(6))
        _ = machine.handle(.accept(id(6), video: false), from: caller, now: now)
        let error = ConfabError(.callState, "This call no longer rings.")
        #expect(outcomes(machine.handle(.answered(1, .failure(error)), now: now)) == [])
        #expect(outcomes(hear(ended(6, .answeredElsewhere))) == [.answeredElsewhere])
    }

    @Test("requests wait until the server knows the person again")
    mutating func held() {
        _ = machine.handle(.expired, now: now)
        #expect(machine.handle(.forget(nil), from: caller, now: now) == [])
        let effects = machine.handle(.connected(Welcome(), .restarted), now: now)
        #expect(verbs(effects) == [.forget(.init(call: nil))])
    }

    @Test("leaving the server ends every call")
    mutating func left() {
        place()
        _ = hear(incoming(6))
        #expect(outcomes(machine.handle(.ended(nil), now: now)) == [.ended, .ended])
    }

    @Test("a session that was lost with its connection does not end the call")
    mutating func lostSession() {
        place()
        _ = hear(accepted(5))
        #expect(machine.mediaFailed(id(5), .connectionRestarted, now: now) == [])
        #expect(outcomes(machine.handle(.expired, now: now)) == [])
        // The connection may take its time.
        #expect(machine.nextTimeout == nil)
        #expect(verbs(machine.handle(.connected(Welcome(), .restarted), now: now)) == [.rejoin(.init(call: id(5)))])
    }

    @Test("a session that cannot be joined ends the call")
    mutating func refusedSession() {
        place()
        _ = hear(accepted(5))
        let effects = machine.mediaFailed(id(5), ConfabError(.sessionFull, "The session is full."), now: now)
        #expect(verbs(effects) == [.end(.init(call: id(5)))])
        #expect(outcomes(effects) == [.failed])
    }

    @Test("a session that is lost without its connection ends the call soon")
    mutating func lostSessionOnly() {
        place()
        _ = hear(accepted(5))
        _ = machine.mediaFailed(id(5), .connectionRestarted, now: now)
        guard let next = machine.nextTimeout else { return #expect(Bool(false)) }
        #expect(outcomes(machine.handleTimeout(now: next)) == [.failed])
    }
}
