import Testing
import Wire

@testable import Confab

/// The rules of the roulette that only Swift has; `protocol/scripts/roulette.json` has the others.
@Suite("The rules of the roulette")
struct RouletteMachineTests {
    private var machine = RouletteMachine()
    private let now = Timestamp(milliseconds: 1_000_000)
    private let match = MatchID(high: 0, low: 7)

    init() {
        var matched = RouletteNotice.Matched()
        (matched.match, matched.mode) = (match, .video)
        _ = machine.handle(.connected(Welcome(), .first), now: now)
        _ = machine.handle(.start(.init(mode: .video)), from: FeatureCaller(number: 1), now: now)
        _ = machine.handle(.answered(1, .success(.roulette(.waiting(.init(re: 1))))), now: now)
        _ = machine.handle(.event(.roulette(.matched(matched))), now: now)
    }

    @Test("a client that is refused tells that its search has ended")
    mutating func refusedClient() {
        let error = ConfabError(.banned, "You are banned.")
        #expect(machine.handle(.ended(error), now: now).last == .tell(.failed(error)))
        #expect(!machine.isBusy)
    }

    @Test("video that arrives is not missed")
    mutating func arrivedVideo() {
        machine.streamArrived()
        #expect(machine.nextTimeout == nil)
    }

    @Test("a warning is reported, in a chat and outside of one, and the search continues")
    mutating func warning() {
        let warning = RouletteNotice.Warning(match: match, source: .check, text: "Too dark.")
        #expect(machine.handle(.event(.roulette(.warning(warning))), now: now) == [.tell(.warned(warning))])
        #expect(machine.state == .matched && machine.isBusy)
        let ended = RouletteNotice.Ended(match: match, reason: .partnerLeft)
        _ = machine.handle(.event(.roulette(.ended(ended))), now: now)
        let byOperator = RouletteNotice.Warning(source: .operator, text: nil)
        #expect(machine.handle(.event(.roulette(.warning(byOperator))), now: now) == [.tell(.warned(byOperator))])
        #expect(machine.state == .waiting && machine.isBusy)
    }

    @Test("a warning that ends the chat ends the search too, also if the connection is lost at once")
    mutating func lastWarning() {
        let warning = RouletteNotice.Warning(match: match, source: .check, ends: true, text: "No.")
        #expect(machine.handle(.event(.roulette(.warning(warning))), now: now) == [.tell(.warned(warning))])
        var other = machine
        let ended = RouletteNotice.Ended(match: match, reason: .stopped)
        #expect(
            machine.handle(.event(.roulette(.ended(ended))), now: now) == [
                .perform(.end(match, isLost: false)), .tell(.ended(match, .stopped)),
            ])
        #expect(machine.state == .idle && !machine.isBusy)
        #expect(
            other.handle(.expired, now: now) == [
                .perform(.end(match, isLost: true)), .tell(.ended(match, .connectionLost)),
            ])
        #expect(other.state == .idle && !other.isBusy)
    }

    @Test("a warning that ends an earlier chat does not end the search")
    mutating func lateWarning() {
        let earlier = RouletteNotice.Warning(match: MatchID(high: 0, low: 6), source: .check, ends: true, text: nil)
        #expect(machine.handle(.event(.roulette(.warning(earlier))), now: now) == [.tell(.warned(earlier))])
        let ended = RouletteNotice.Ended(match: match, reason: .partnerLeft)
        _ = machine.handle(.event(.roulette(.ended(ended))), now: now)
        #expect(machine.isBusy)
    }

    @Test("a blur is reported for both people of the current chat, and not for another one", arguments: [true, false])
    mutating func blur(isBlurred: Bool) {
        for whose in [BlurredVideo.own, .partner] {
            let blur = RouletteNotice.Blur(match: match, whose: whose, blurred: isBlurred)
            let effects = machine.handle(.event(.roulette(.blur(blur))), now: now)
            #expect(effects == [.tell(.blur(whose, isBlurred))])
            let earlier = RouletteNotice.Blur(match: MatchID(high: 0, low: 6), whose: whose, blurred: isBlurred)
            #expect(machine.handle(.event(.roulette(.blur(earlier))), now: now) == [])
        }
        #expect(machine.currentMatch?.match == match)
    }

    @Test("errors of an ended match are not reported")
    mutating func lateErrors() {
        let error = ConfabError(.mediaFailed, "The camera is in use.")
        #expect(machine.mediaFailed(error, in: match) == [.tell(.failed(error))])
        #expect(machine.mediaFailed(error, in: MatchID(high: 0, low: 6)) == [])
    }
}
