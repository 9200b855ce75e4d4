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

    @Test("errors of an ended match are not told")
    mutating func lateErrors() {
        let error = ConfabError(.mediaFailed, "The camera is in use.")
        #expect(machine.mediaFailed(error, in: match) == [.tell(.failed(error))])
        #expect(machine.mediaFailed(error, in: MatchID(high: 0, low: 6)) == [])
    }
}
