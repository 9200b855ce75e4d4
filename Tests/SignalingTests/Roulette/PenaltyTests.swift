import Signaling
import TestSupport
import Testing
import Wire

/// Tests the penalties for frequent quick skips.
@Suite struct PenaltyTests {
    private let stage = Stage()

    /// Pairs the guest with a newcomer, and presses Next after the duration. Returns the announced wait.
    private func skip(_ ada: Guest, after duration: Duration = .zero, on stage: Stage? = nil) -> Duration? {
        let stage = stage ?? self.stage
        let stranger = stage.arrive()
        stranger.start()
        #expect(ada.isMatched)
        stage.pass(duration)
        guard case .roulette(.waiting(let waiting))? = ada.next() else {
            Issue.record("Next was not answered with roulette.waiting")
            return nil
        }
        stranger.leave()
        return waiting.retryAfter
    }

    private func searching() -> Guest {
        let ada = stage.arrive(name: "Ada")
        ada.start()
        return ada
    }

    @Test func penaltiesDoubleFromTheThirdQuickSkipInAMinute() {
        let ada = searching()
        #expect(skip(ada) == nil)
        #expect(skip(ada) == nil)
        for seconds in [2, 4, 8, 16] {
            #expect(skip(ada) == .seconds(seconds))
            stage.pass(.seconds(seconds))
        }
    }

    @Test func noWaitIsLongerThanAMinute() {
        let stage = Stage { $0.skipPeriod = .seconds(3600) }
        let ada = stage.arrive()
        ada.start()
        var waits: [Duration] = []
        for _ in 0..<10 {
            let wait = skip(ada, on: stage)
            wait.map { waits.append($0) }
            stage.pass(wait ?? .zero)
        }
        #expect(waits == [2, 4, 8, 16, 32, 60, 60, 60].map { .seconds($0) })
    }

    @Test func aChatOfFiveSecondsIsNotASkip() {
        let ada = searching()
        for _ in 0..<5 { #expect(skip(ada, after: .seconds(5)) == nil) }
        #expect(skip(ada, after: .milliseconds(4999)) == nil)
        #expect(skip(ada, after: .milliseconds(4999)) == nil)
        #expect(skip(ada, after: .milliseconds(4999)) == .seconds(2))
    }

    @Test func skipsAreForgottenAfterAMinute() {
        let ada = searching()
        _ = skip(ada)
        _ = skip(ada)
        stage.pass(.milliseconds(59_999))
        #expect(skip(ada) == .seconds(2))
        stage.pass(.seconds(60))
        #expect(skip(ada) == nil)
    }

    @Test func onlyThePersonWhoSkippedIsPenalized() {
        let ada = searching()
        for _ in 0..<5 {
            let stranger = stage.arrive()
            stranger.start()
            #expect(ada.isMatched)
            ada.take()
            stranger.next()
            stranger.leave()
            let waits = ada.take().compactMap {
                if case .roulette(.waiting(let waiting)) = $0 { waiting.retryAfter } else { nil }
            }
            #expect(waits == [])
        }
    }

    @Test func penalizedPeopleAreNotPaired() {
        let ada = searching()
        for _ in 0..<3 { _ = skip(ada) }
        let bob = stage.arrive()
        bob.start()
        stage.pass(.milliseconds(1999))
        #expect(!ada.isMatched)
        #expect(stage.hub.waitingCount == 1)
        stage.pass(.milliseconds(1))
        #expect(ada.isMatched)
        #expect(bob.partner == "Ada")
    }

    @Test func nextDuringAPenaltyReturnsTheRemainingWait() {
        let ada = searching()
        for _ in 0..<3 { _ = skip(ada) }
        stage.pass(.milliseconds(500))
        #expect(ada.next() == .roulette(.waiting(.init(re: ada.lastRequest, retryAfter: .milliseconds(1500)))))
    }

    @Test func penaltiesSurviveStoppingLeavingAndOtherTabs() {
        let ada = searching()
        for _ in 0..<3 { _ = skip(ada) }
        ada.stop()
        #expect(ada.start() == .roulette(.waiting(.init(re: ada.lastRequest, retryAfter: .seconds(2)))))
        ada.leave()
        let tab = stage.arrive(ada.identity)
        #expect(tab.start() == .roulette(.waiting(.init(re: tab.lastRequest, retryAfter: .seconds(2)))))
        tab.drop()
        tab.resume()
        #expect(tab.take() == [.roulette(.waiting(.init(retryAfter: .seconds(2))))])
        stage.pass(.seconds(2))
        #expect(stage.hub.waitingCount == 1)
    }

    /// Pairs the guest with this many newcomers, one after another, and ends each chat with the verb. Returns the
    /// announced wait of the next start.
    private func wait(afterEnding count: Int, with verb: ClientMessage) -> Duration? {
        let ada = searching()
        for _ in 0..<count {
            let stranger = stage.arrive()
            stranger.start()
            #expect(ada.isMatched)
            ada.say(verb)
            stranger.leave()
            ada.stop()
            ada.start()
            ada.take()
        }
        ada.stop()
        guard case .roulette(.waiting(let waiting))? = ada.start() else {
            Issue.record("Start was not answered with roulette.waiting")
            return nil
        }
        ada.leave()
        return waiting.retryAfter
    }

    @Test func stoppingQuicklyIsASkipAndBlockingIsNot() {
        #expect(wait(afterEnding: 3, with: .roulette(.stop)) == .seconds(2))
        #expect(wait(afterEnding: 6, with: .roulette(.block(.init(match: nil)))) == nil)
    }
}
