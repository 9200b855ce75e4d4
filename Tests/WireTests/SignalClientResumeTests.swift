import TestSupport
import Testing
import Wire

/// Tests what a client does when its socket closes: backoff, resume, restart, and close codes after which the client
/// does not reconnect.
@Suite struct SignalClientResumeTests {
    // MARK: Resuming

    @Test func aResumeSendsUnreceivedMessagesAgain() {
        var script = SignalScript()
        script.connect()
        let (first, second) = (script.ask(), script.ask())
        script.hearNext(ok(1), ack: 1)
        let third = script.ask()
        #expect(script.close() == [.reconnecting])
        let fourth = script.ask()
        script.wait(SignalScript.longestBackoff)
        #expect(script.open()?.resume == Hello.Resume(secret: "first", received: 1))
        let effects = script.hear(SignalScript.resumed(received: 2))
        #expect(effects.numbers == [3, 4], "only the requests that the server lacks are sent again")
        #expect(effects.start == .resumed)
        #expect(effects.failures == [:])
        #expect(script.hearNext(ok(2), ack: 4) == [.answered(second, ok(2))])
        #expect(script.hearNext(ok(4)) == [.answered(fourth, ok(4))])
        #expect(script.hearNext(ok(3)) == [.answered(third, ok(3))])
        #expect(script.line.unansweredCount == 0)
        #expect(first != second)
        #expect(script.reconnect()?.resume == Hello.Resume(secret: "second", received: 4))
    }

    @Test func acknowledgementsPingsAndByesAreNeverKept() {
        var script = SignalScript()
        script.connect()
        script.hearNext(someEvent)
        #expect(script.wait(.seconds(12)).said.map(\.message) == [.ack, .ping])
        script.reconnect()
        #expect(script.hear(SignalScript.resumed(received: 0)).said == [])
    }

    @Test func aGapDropsTheSocketAndResumes() {
        var script = SignalScript()
        script.connect()
        script.hearNext(someEvent)
        let effects = script.hear(someEvent, seq: 3)
        #expect(effects.closes(.dropped))
        #expect(!effects.contains(.event(someEvent)))
        script.wait(SignalScript.longestBackoff)
        #expect(script.open()?.resume?.received == 1)
    }

    @Test func aNumberedMessageBeforeTheWelcomeDropsTheSocket() {
        var script = SignalScript()
        script.connect()
        script.reconnect()
        #expect(script.hear(someEvent, seq: 1).closes(.dropped), "the welcome was lost")
        script.wait(SignalScript.longestBackoff)
        #expect(script.open()?.resume?.secret == "first")
    }

    // MARK: Restarting

    @Test func aFailedResumeFailsOpenRequestsAndReturnsTheState() throws {
        var script = SignalScript()
        script.connect()
        script.hearNext(someEvent)
        let (first, second) = (script.ask(), script.ask())
        script.hearNext(ok(1))
        script.close()
        let third = script.ask()
        script.wait(SignalScript.longestBackoff)
        script.open()
        let reason = WireError(.resumeFailed, "This is a fresh start.")
        script.hear(.error(ServerMessage.Failure(reason)))
        let welcome = SignalScript.welcome {
            $0.connection = ConnectionID(high: 0, low: 2)
            $0.state = Snapshot(sessions: [], roulette: .init(state: .waiting))
        }
        let effects = script.hear(.welcome(welcome))
        #expect(effects.failures == [second: .connectionRestarted, third: .connectionRestarted])
        #expect(effects.last == .connected(welcome, .restarted(because: reason)))
        #expect(effects.said == [])
        #expect(first != second)
        script.restartNumbers()
        #expect(
            script.request(.roulette(.count)).effects.said == [Envelope(seq: 1, ack: 0, message: .roulette(.count))])
        #expect(script.hearNext(someEvent) == [.event(someEvent)])
    }

    @Test func theFailureOfARestartIsRetryable() {
        var script = SignalScript()
        script.connect()
        script.ask()
        script.reconnect()
        let effects = script.hear(.welcome(SignalScript.welcome { $0.connection = ConnectionID(high: 0, low: 2) }))
        for case .failed(_, let error) in effects { #expect(error.retryable) }
        #expect(effects.failures.count == 1)
    }

    @Test func anExpiredConnectionIsGivenUp() {
        var script = SignalScript()
        script.connect()
        let id = script.ask()
        script.close()
        // Wait for the grace period, after three pings without an answer.
        var effects = script.wait(.milliseconds(59_999))
        #expect(!effects.contains(.expired))
        effects = script.wait(.milliseconds(1))
        #expect(effects.contains(.expired))
        #expect(effects.failures == [id: .connectionRestarted])
        let later = script.ask()
        script.wait(.seconds(20))
        #expect(script.open()?.resume == nil)
        effects = script.hear(.welcome(SignalScript.welcome { $0.connection = ConnectionID(high: 0, low: 2) }))
        #expect(effects.numbers == [1])
        guard case .restarted = effects.start else { return #expect(Bool(false), "the connection must restart") }
        #expect(script.hear(ok(1), seq: 1) == [.answered(later, ok(1))])
    }

    @Test func zeroIntervalsInAWelcomeCauseNoImmediateTimeout() throws {
        var script = SignalScript()
        script.connect { ($0.ping, $0.resume.grace) = (.zero, .zero) }
        #expect(try #require(script.line.nextTimeout) - script.now == .seconds(1))
        script.close()
        #expect(try #require(script.line.nextTimeout) > script.now)
    }

    @Test func aMiscountedConnectionStartsOver() {
        var script = SignalScript()
        script.connect()
        let id = script.ask()
        script.hear(.error(ServerMessage.Failure(WireError(.outOfOrder, "A gap."))))
        let effects = script.close(.malformed)
        #expect(effects.failures == [id: .connectionRestarted])
        #expect(effects.contains(.expired))
        script.wait(SignalScript.longestBackoff)
        #expect(script.open()?.resume == nil)
    }

    @Test func anUnexpectedWelcomeClosesTheSocket() {
        let wrong: [(inout Welcome) -> Void] = [
            { ($0.resumed, $0.connection) = (true, ConnectionID(high: 0, low: 2)) },
            { ($0.resumed, $0.received) = (true, 9) },
            { $0.received = 1 },
        ]
        for change in wrong {
            var script = SignalScript()
            script.connect()
            let id = script.ask()
            script.reconnect()
            let effects = script.hear(.welcome(SignalScript.welcome(change)))
            #expect(effects.said == [Envelope(message: .bye)])
            #expect(effects.closes(.normal))
            #expect(effects.failures == [id: .connectionRestarted])
            script.wait(SignalScript.longestBackoff)
            #expect(script.open()?.resume == nil)
        }
    }

    // MARK: Backoff and close codes

    @Test func attemptsBackOffWithJitter() {
        var delays: [[Int64]] = []
        for seed in UInt64(1)...50 {
            var script = SignalScript(seed: seed) { $0.connectTimeout = nil }
            script.handle(.connect)
            delays.append(
                (0..<6).map { _ in
                    script.close()
                    let before = script.now
                    while let next = script.line.nextTimeout, !script.wait(next - script.now).hasOpen {}
                    return (script.now - before).wholeMilliseconds
                })
        }
        for (index, ceiling) in [250, 500, 1000, 2000, 3000, 3000].enumerated() {
            let all = delays.map { $0[index] }
            #expect(all.allSatisfy { (Int64(ceiling) / 2...Int64(ceiling)).contains($0) })
            #expect(Set(all).count > 20, "the delays must be spread over time")
        }
    }

    @Test func aConnectionThatLastedResetsTheBackoff() throws {
        var script = SignalScript { $0.connectTimeout = nil }
        script.handle(.connect)
        for _ in 0..<6 {
            script.close()
            script.wait(SignalScript.longestBackoff)
        }
        script.open()
        script.hear(.welcome(SignalScript.welcome()))
        script.close()
        #expect(try #require(script.line.nextTimeout) - script.now >= .milliseconds(1500), "the connection lasted 0 s")
        script.wait(SignalScript.longestBackoff)
        script.open()
        script.hear(SignalScript.resumed(received: 0))
        script.wait(.seconds(4))
        script.close()
        #expect(try #require(script.line.nextTimeout) - script.now <= .milliseconds(250))
    }

    @Test(arguments: [4400, 4401, 4403, 4409, 4413, 1009] as [UInt16])
    func afterSomeCodesTheLineDoesNotComeBack(_ code: UInt16) {
        var script = SignalScript()
        script.connect()
        let ending = script.close(CloseCode(rawValue: code)).ending
        #expect(ending?.code.rawValue == code)
        #expect(ending?.error?.code.rawValue == "closed_\(code)")
        #expect(script.wait(.seconds(3600)) == [])
    }

    @Test(arguments: [1000, 1001, 1005, 1006, 1011, 4000, 4408, 4429] as [UInt16])
    func afterOthersItDoes(_ code: UInt16) {
        var script = SignalScript()
        script.connect()
        #expect(script.close(CloseCode(rawValue: code)) == [.reconnecting])
        #expect(script.wait(.seconds(10)).hasOpen)
    }

    @Test("after 1001 a line returns at once, but not all lines at the same moment")
    func aRestartingServer() throws {
        var delays: Set<Duration> = []
        for seed in 0..<50 as Range<UInt64> {
            var script = SignalScript(seed: seed)
            script.connect()
            script.close(.goingAway)
            delays.insert(try #require(script.line.nextTimeout) - script.now)
        }
        #expect(delays.allSatisfy { (.milliseconds(125) ... .milliseconds(250)).contains($0) }, "\(delays)")
        #expect(delays.count > 20)
    }

    @Test(arguments: [CloseCode.timeout, .tooMany])
    func theServerMayAskForAPause(_ code: CloseCode) throws {
        var script = SignalScript { $0.connectTimeout = nil }
        script.handle(.connect)
        script.close(code)
        #expect(try #require(script.line.nextTimeout) - script.now == .seconds(10))
        script.wait(.seconds(10))
        script.open()
        script.hear(.error(ServerMessage.Failure(WireError(.tooManyConnections, "Wait.", retryAfter: .seconds(25)))))
        script.close(code)
        #expect(try #require(script.line.nextTimeout) - script.now == .seconds(25))
    }

    @Test func aPauseThatTheServerAsksForIsLimited() throws {
        var script = SignalScript { $0.connectTimeout = nil }
        script.handle(.connect)
        script.open()
        let error = WireError(.tooManyConnections, "Wait.", retryAfter: .milliseconds(1 << 53))
        script.hear(.error(ServerMessage.Failure(error)))
        script.close(.tooMany)
        #expect(try #require(script.line.nextTimeout) - script.now == .seconds(300))
    }

    @Test func anErrorThatNoCloseFollowedExplainsNoLaterClose() throws {
        let error = WireError(.rateLimited, "Wait.", retryAfter: .seconds(25))
        for next in [ServerMessage.pong, .ack, someEvent] {
            var script = SignalScript()
            script.connect()
            script.hear(.error(ServerMessage.Failure(error)))
            if next == someEvent { script.hearNext(next) } else { script.hear(next) }
            script.close(.tooMany)
            #expect(try #require(script.line.nextTimeout) - script.now == .seconds(10), "after \(next.type)")
        }
        var script = SignalScript { $0.reconnects = false }
        script.connect()
        script.hear(.error(ServerMessage.Failure(error)))
        script.hearNext(someEvent)
        #expect(script.close().ending?.error?.code == .connectionLost)
    }

    // MARK: Leaving while the connection is away

    @Test func aServerThatWasAwayLearnsThatTheClientHasLeft() throws {
        var script = SignalScript()
        script.connect()
        script.hearNext(someEvent)
        script.close()
        let id = script.ask()
        let effects = script.handle(.leave)
        #expect(effects.failures == [id: .left] && effects.ending?.code == .normal && !effects.closes(.normal))
        #expect(script.line.ending != nil && !script.line.isConnected)
        #expect(script.wait(SignalScript.longestBackoff).hasOpen)
        #expect(script.open()?.resume == Hello.Resume(secret: "first", received: 1))
        #expect(script.request(.roulette(.count)).effects.failures.values.first == .left)
        let last = script.hear(SignalScript.resumed(received: 0))
        #expect(last.said == [Envelope(message: .bye)] && last.closes(.normal) && last.count == 2)
        #expect(script.line.nextTimeout == nil && script.line.leaveDeadline == nil)
        #expect(script.hearNext(someEvent) == [] && script.close() == [])
    }

    @Test func leavingOnASocketThatOpensUsesThatSocket() throws {
        for isOpen in [false, true] {
            var script = SignalScript()
            script.connect()
            script.close()
            script.wait(SignalScript.longestBackoff)
            if isOpen { script.open() }
            #expect(!script.handle(.leave).closes(.normal))
            if !isOpen { #expect(script.open()?.resume?.secret == "first") }
            #expect(script.hear(SignalScript.resumed(received: 0)).said == [Envelope(message: .bye)])
        }
    }

    @Test func aServerThatStaysAwayIsToldNothingAfterTheGracePeriod() throws {
        var script = SignalScript()
        script.connect()
        script.close()
        script.handle(.leave)
        let deadline = try #require(script.line.leaveDeadline)
        var opened = 0
        while script.now < deadline {
            if script.wait(.seconds(1)).hasOpen { opened += 1 }
            script.close()
        }
        #expect(opened > 10 && script.line.nextTimeout == nil && script.line.leaveDeadline == nil)
        #expect(script.handle(.networkChanged) == [])
    }

    @Test func aRefusedLeaveIsNotTriedAgain() throws {
        var script = SignalScript()
        script.connect()
        script.close()
        script.handle(.leave)
        #expect(script.handle(.networkChanged).hasOpen, "at once, when there is a network again")
        script.open()
        script.close(.replaced)
        #expect(script.line.nextTimeout == nil)
    }

    @Test func thereIsNothingToTellBeforeTheFirstWelcomeAndAfterTheGracePeriod() {
        var script = SignalScript { $0.connectTimeout = nil }
        script.handle(.connect)
        script.close()
        script.handle(.leave)
        #expect(script.line.nextTimeout == nil)
        script = SignalScript()
        script.connect()
        script.close()
        script.wait(.seconds(100))
        script.handle(.leave)
        #expect(script.line.nextTimeout == nil)
    }

    // MARK: Timeouts

    @Test func aSocketWithoutAWelcomeIsGivenUp() {
        var script = SignalScript()
        script.handle(.connect)
        #expect(script.wait(.milliseconds(9999)) == [])
        #expect(script.wait(.milliseconds(1)).closes(.dropped))
        #expect(script.wait(SignalScript.longestBackoff).hasOpen)
        script.open()
        #expect(script.wait(.milliseconds(7000)).ending?.error?.code == .connectFailed, "20 seconds are over")
    }

    @Test func theFirstConnectionHasATimeout() {
        var script = SignalScript()
        script.handle(.connect)
        let id = script.ask()
        var effects: [SignalClient.Effect] = []
        for _ in 0..<100 {
            script.close()
            effects += script.wait(.seconds(1))
        }
        #expect(effects.failures == [id: .connectFailed])
        #expect(effects.ending?.error?.retryable == true)
        script = SignalScript()
        script.connect()
        script.close()
        #expect(script.wait(.seconds(30)).ending == nil, "later attempts have no time limit")
    }

    @Test("an unreadable message without a number answers no request, so its answer still arrives after a resume")
    func unreadableWithoutNumber() {
        var script = SignalScript()
        script.connect()
        let request = script.ask()
        script.close()
        script.reconnect()
        let effects = script.hear(Array(#"{"type":"x","re":1}"#.utf8))
        #expect(effects.failures.isEmpty)
        script.hear(SignalScript.resumed(received: 0))
        #expect(script.hearNext(ok(1)).contains(.answered(request, ok(1))))
    }
}
