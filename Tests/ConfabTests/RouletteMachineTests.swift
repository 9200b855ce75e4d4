import Testing
import Wire

@testable import Confab

/// Scripts of events for the rules of the roulette.
@Suite("The rules of the roulette")
struct RouletteMachineTests {
    private typealias Effect = RouletteMachine.Effect

    private var machine = RouletteMachine()
    private var now = Timestamp(milliseconds: 1_000_000)
    private let caller = FeatureCaller(number: 1)

    private func matched(_ number: UInt64, mode: ChatMode = .video) -> RouletteNotice.Matched {
        var matched = RouletteNotice.Matched()
        (matched.match, matched.mode) = (MatchID(high: 0, low: number), mode)
        matched.partner.name = "Ada"
        return matched
    }

    private mutating func hear(_ notice: RouletteNotice) -> [Effect] {
        machine.handle(.event(.roulette(notice)), now: now)
    }

    private mutating func connect(_ start: ConnectionEvent.Start = .first) -> [Effect] {
        machine.handle(.connected(Welcome(), start), now: now)
    }

    /// Searches, and is matched.
    private mutating func meet(_ number: UInt64 = 7, mode: ChatMode = .video) {
        _ = connect()
        _ = machine.handle(.start(.init(mode: mode)), from: caller, now: now)
        _ = machine.handle(.answered(1, .success(.roulette(.waiting(.init(re: 1))))), now: now)
        _ = hear(.matched(matched(number, mode: mode)))
    }

    @Test("a search is told, and then the match begins")
    mutating func search() {
        _ = connect()
        let search = RouletteVerb.Start(mode: .video, interests: ["chess"])
        #expect(machine.handle(.start(search), from: caller, now: now) == [.send(1, .roulette(.start(search)))])
        let waiting = ServerMessage.roulette(.waiting(.init(re: 1, retryAfter: .seconds(3))))
        #expect(
            machine.handle(.answered(1, .success(waiting)), now: now)
                == [.tell(.waiting(retryAfter: .seconds(3))), .finish(caller, .success(waiting))])
        #expect(hear(.matched(matched(7))) == [.tell(.matched(matched(7))), .perform(.begin(matched(7)))])
        #expect(machine.state == .matched)
    }

    @Test("a match that crosses a stop is ignored")
    mutating func crossingStop() {
        _ = connect()
        _ = machine.handle(.start(.init()), from: caller, now: now)
        _ = machine.handle(.stop, from: caller, now: now)
        #expect(hear(.matched(matched(7))) == [])
        #expect(machine.state == .idle)
    }

    @Test("the end of an earlier match does not end the current one")
    mutating func earlierEnd() {
        meet(7)
        #expect(hear(.ended(.init(match: MatchID(high: 0, low: 6), reason: .partnerLeft))) == [])
        #expect(machine.state == .matched)
    }

    @Test("a new match ends the old one first")
    mutating func newMatch() {
        meet(7)
        let effects = hear(.matched(matched(8)))
        #expect(effects.first == .perform(.end(MatchID(high: 0, low: 7), isLost: false)))
        #expect(effects.last == .perform(.begin(matched(8))))
    }

    @Test("without a connection, the next partner ends the media at once")
    mutating func nextOffline() {
        meet(7)
        _ = machine.handle(.reconnecting, now: now)
        let effects = machine.handle(.next, from: caller, now: now)
        #expect(effects.first == .perform(.end(MatchID(high: 0, low: 7), isLost: false)))
        #expect(machine.state == .waiting)
    }

    @Test("after a restart, the search begins again")
    mutating func restarted() {
        meet(7)
        let lost = machine.handle(.expired, now: now)
        #expect(
            lost == [
                .perform(.end(MatchID(high: 0, low: 7), isLost: true)),
                .tell(.ended(MatchID(high: 0, low: 7), .connectionLost)),
            ])
        #expect(connect(.restarted) == [.send(2, .roulette(.start(.init(mode: .video))))])
        let waiting = ServerMessage.roulette(.waiting(.init(re: 1)))
        #expect(
            machine.handle(.answered(2, .success(waiting)), now: now)
                == [.tell(.waiting(retryAfter: nil)), .tell(.recovered)])
    }

    @Test("a resumed connection changes nothing")
    mutating func resumed() {
        meet(7)
        _ = machine.handle(.reconnecting, now: now)
        #expect(connect(.resumed) == [])
        #expect(machine.state == .matched)
    }

    @Test("another tab that takes the place ends the search")
    mutating func elsewhere() {
        meet(7)
        let error = WireError(.elsewhere, "Another tab searches.")
        let effects = machine.handle(.event(.error(.init(error))), now: now)
        #expect(effects.last == .tell(.failed(ConfabError(error))))
        #expect(connect(.restarted) == [])
    }

    @Test("a client that is refused tells that its search has ended")
    mutating func refusedClient() {
        meet(7)
        let error = ConfabError(.banned, "You are banned.")
        #expect(machine.handle(.ended(error), now: now).last == .tell(.failed(error)))
        #expect(!machine.isBusy)
    }

    @Test("a refused search is not sent again")
    mutating func refused() {
        _ = connect()
        _ = machine.handle(.start(.init()), from: caller, now: now)
        let error = ConfabError(WireError(.invalidInterests, "Too many interests."))
        #expect(machine.handle(.answered(1, .failure(error)), now: now) == [.finish(caller, .failure(error))])
        #expect(connect(.restarted) == [])
    }

    @Test("missing video is told after the server's time")
    mutating func missingVideo() {
        meet(7)
        #expect(machine.nextTimeout == now + .seconds(10))
        now = now + .seconds(10)
        #expect(machine.handleTimeout(now: now) == [.tell(.noStream)])
        #expect(machine.nextTimeout == nil)
    }

    @Test("video that arrives is not missed")
    mutating func arrivedVideo() {
        meet(7)
        machine.streamArrived()
        #expect(machine.nextTimeout == nil)
    }

    @Test("a text chat has no video to miss")
    mutating func textChat() {
        meet(7, mode: .text)
        #expect(machine.nextTimeout == nil)
    }

    @Test("typing expires if its end is lost")
    mutating func typingExpires() {
        meet(7, mode: .text)
        #expect(machine.heard("typing", "1", mine: false, now: now) == [.tell(.typing(true))])
        #expect(machine.heard("typing", "1", mine: false, now: now) == [])
        now = now + .seconds(5)
        #expect(machine.handleTimeout(now: now) == [.tell(.typing(false))])
    }

    @Test("a line ends typing")
    mutating func lineEndsTyping() {
        meet(7, mode: .text)
        _ = machine.heard("typing", "1", mine: false, now: now)
        #expect(
            machine.heard("chat", "Hello", mine: false, now: now)
                == [.tell(.typing(false)), .tell(.message(text: "Hello", mine: false))])
    }

    @Test("typing is repeated only every two seconds")
    mutating func typingRepeats() {
        meet(7, mode: .text)
        let signal = Effect.perform(.signal(type: "typing", data: "1"))
        #expect(machine.handle(.typing(true), from: caller, now: now).first == signal)
        #expect(machine.handle(.typing(true), from: caller, now: now) == [.finish(caller, .success(nil))])
        #expect(machine.handle(.typing(true), from: caller, now: now + .seconds(2)).first == signal)
    }

    @Test("errors of an ended match are not told")
    mutating func lateErrors() {
        meet(7)
        let error = ConfabError(WireError(.tokenMatchEnded, "This match is over."))
        #expect(machine.mediaFailed(error, in: MatchID(high: 0, low: 7)) == [])
        let other = ConfabError(.mediaFailed, "The camera is in use.")
        #expect(machine.mediaFailed(other, in: MatchID(high: 0, low: 7)) == [.tell(.failed(other))])
        #expect(machine.mediaFailed(other, in: MatchID(high: 0, low: 6)) == [])
    }
}
