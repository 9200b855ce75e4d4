import Signaling
import TestSupport
import Testing
import Wire

@Suite struct BudgetTests {
    private let stage = Stage {
        $0.verbs = .init(perSecond: 10, burst: 20)
        $0.negotiations = .init(perSecond: 50, burst: 40)
        $0.refusals = .init(perSecond: 20, burst: 5)
        $0.malformedPerMinute = 3
    }

    @Test func aBudgetAllowsItsBurstAndThenItsRate() {
        let rate = Budget.Rate(perSecond: 10, burst: 3)
        var now = Timestamp(milliseconds: 0)
        var budget = Budget(rate, now: now)
        for _ in 0..<3 { #expect(budget.take(rate, now: now) == nil) }
        #expect(budget.take(rate, now: now) == .milliseconds(100))
        now = now + .milliseconds(100)
        #expect(budget.take(rate, now: now) == nil)
        #expect(budget.take(rate, now: now) == .milliseconds(100))
        now = now + .seconds(3600)
        for _ in 0..<3 { #expect(budget.take(rate, now: now) == nil) }
        #expect(budget.take(rate, now: now) != nil, "an hour of silence earns only the burst")
        #expect(budget.take(rate, now: Timestamp(milliseconds: 0)) != nil, "a clock that goes back gives nothing")
    }

    @Test func aDebtIsPaidOffBeforeAnythingElse() {
        let rate = Budget.Rate(perSecond: 10, burst: 20)
        var now = Timestamp(milliseconds: 0)
        var budget = Budget(rate, now: now)
        budget.spend(rate, cost: 50, now: now)
        #expect(budget.tokens(rate, now: now) == -30)
        #expect(budget.wait(rate, now: now) == .seconds(3))
        #expect(budget.wait(rate, now: now, beyond: 20) == .seconds(1))
        #expect(budget.wait(rate, now: now, beyond: 30) == nil)
        #expect(budget.take(rate, now: now) == .milliseconds(3100))
        now = now + .seconds(3)
        #expect(budget.wait(rate, now: now) == nil)
        #expect(budget.take(rate, now: now) != nil)
        now = now + .seconds(3600)
        #expect(budget.isFull(rate, now: now))
    }

    @Test func verbsOverTheBudgetAreRefusedUntilTheAnnouncedTime() {
        let ada = stage.arrive()
        for _ in 0..<20 { #expect(ada.ask(.roulette(.count))?.type == "roulette.count") }
        guard case .error(let refusal)? = ada.ask(.roulette(.count)) else {
            return #expect(Bool(false), "the 21st request exceeds the budget")
        }
        #expect(refusal.error.code == .rateLimited)
        #expect(refusal.error.retryable)
        stage.pass(refusal.error.retryAfter ?? .zero)
        #expect(ada.ask(.roulette(.count))?.type == "roulette.count")
        #expect(ada.closeCode == nil)
    }

    @Test func aClientThatStaysOverTheBudgetIsDisconnected() {
        let ada = stage.arrive()
        for _ in 0..<25 { ada.say(.roulette(.count)) }
        #expect(ada.closeCode == nil)
        ada.say(.roulette(.count))
        #expect(ada.closeCode == .tooMany)
        #expect(ada.refusals.map(\.code) == [.rateLimited])
        #expect(ada.openRequests == 0)
        #expect(stage.hub.clientCount == 0)
    }

    @Test func refusalsAreForgottenAfterATime() {
        let ada = stage.arrive()
        for _ in 0..<20 { ada.say(.roulette(.count)) }
        for _ in 0..<4 {
            for _ in 0..<4 { ada.say(.roulette(.count)) }
            stage.pass(.milliseconds(250))
        }
        #expect(ada.closeCode == nil)
    }

    /// An occasional accepted verb must not reset the count of a flood's refused ones.
    @Test func anAcceptedVerbDoesNotResetAFlood() {
        let ada = stage.arrive()
        for _ in 0..<20 { ada.say(.roulette(.count)) }
        for _ in 0..<4 where ada.closeCode == nil {
            for _ in 0..<4 { ada.say(.roulette(.count)) }
            stage.pass(.milliseconds(100))
            ada.say(.roulette(.count))
        }
        #expect(ada.closeCode == .tooMany)
    }

    @Test func duplicatesAndAcknowledgmentsCountToo() {
        let ada = stage.arrive()
        let most = stage.hub.hubSettings.rules.messages.burst
        for _ in 0...Int(most) + 1 where ada.closeCode == nil { ada.say(.ping) }
        #expect(ada.closeCode == .tooMany)
    }

    /// Dozens of candidates are sent at once. They must not use up the budget for the user's own actions.
    @Test func negotiationHasItsOwnBudget() {
        let session = stage.room()
        let ada = stage.arrive()
        ada.enter(session, on: stage)
        var verb = SessionVerb.Negotiate()
        (verb.session, verb.to, verb.candidate) = (session, ada.connection, .null)
        for _ in 0..<40 { #expect(ada.ask(.session(.negotiate(verb)))?.errorCode != .rateLimited) }
        #expect(ada.ask(.session(.negotiate(verb)))?.errorCode == .rateLimited)
        #expect(ada.ask(.roulette(.count))?.type == "roulette.count")
    }

    /// Descriptions use the receiver's bandwidth, so a large one costs more than a candidate.
    @Test func aNegotiationCostsMoreTheLargerItIs() {
        let session = stage.room()
        let (ada, bob) = (stage.arrive(), stage.arrive())
        for guest in [ada, bob] { guest.enter(session, on: stage) }
        var verb = SessionVerb.Negotiate()
        (verb.session, verb.to) = (session, bob.connection)
        verb.description = SessionDescription(type: .offer, sdp: String(repeating: "x", count: 4096 * 9))
        for _ in 0..<4 { #expect(ada.ask(.session(.negotiate(verb)))?.errorCode == .notPermitted) }
        #expect(ada.ask(.session(.negotiate(verb)))?.errorCode == .rateLimited)
        stage.pass(.seconds(1))
        verb.description?.sdp = String(repeating: "x", count: Limits.description)
        #expect(
            ada.ask(.session(.negotiate(verb)))?.errorCode == .notPermitted, "a full budget allows the largest")
    }

    @Test func tooManyMalformedMessagesInAMinuteCloseTheSocket() {
        let ada = stage.arrive()
        let error = WireError(.malformed, "The member \"sessionId\" must be a string.")
        for _ in 0..<3 { ada.mumble(error) }
        #expect(ada.take().map(\.errorCode) == [.malformed, .malformed, .malformed])
        #expect(ada.ask(.roulette(.count))?.type == "roulette.count", "the numbering continues")
        ada.mumble(error)
        #expect(ada.closeCode == .malformed)
        #expect(ada.openRequests == 0)
    }

    @Test func occasionalMalformedMessagesAreAllowed() {
        let ada = stage.arrive()
        for _ in 0..<20 {
            ada.mumble(WireError(.malformed, ""), numbered: false)
            stage.pass(.seconds(20))
        }
        #expect(ada.closeCode == nil)
    }

    /// Client and server may have different versions: a newer page may send a request that this server does not
    /// support.
    @Test func unknownVerbsDoNotCountAsMalformed() {
        let ada = stage.arrive()
        for _ in 0..<15 { ada.mumble(WireError(.unknownType, "")) }
        #expect(ada.take().map(\.errorCode) == Array(repeating: .unknownType, count: 15))
        #expect(ada.closeCode == nil)
        for _ in 0..<30 { ada.mumble(WireError(.unknownType, "")) }
        #expect(ada.closeCode == .tooMany, "unknown requests cost as much as any verb")
    }

    @Test func aVerbWithoutANumberIsMalformed() {
        let ada = stage.arrive()
        ada.sayUnnumbered(.roulette(.next(.init())))
        #expect(ada.take().map(\.errorCode) == [.malformed])
    }

    @Test func aSecondHelloIsMalformed() {
        let ada = stage.arrive()
        ada.sayUnnumbered(.hello(Hello()))
        #expect(ada.take().map(\.errorCode) == [.malformed])
        #expect(ada.ask(.hello(Hello()))?.errorCode == .malformed)
        #expect(ada.closeCode == nil)
    }

    @Test func aGapInTheNumbersClosesTheSocket() {
        let ada = stage.arrive()
        ada.transmit(.roulette(.count), seq: 2)
        #expect(ada.refusals.map(\.code) == [.outOfOrder])
        #expect(ada.closeCode == .malformed)
        #expect(stage.hub.clientCount == 0)
    }

    @Test func aPingIsAnsweredWithAnAcknowledgment() {
        let ada = stage.arrive()
        ada.ask(.roulette(.count))
        ada.sayUnnumbered(.ping)
        #expect(ada.take() == [.pong])
    }

    @Test func iceServersAreSentOnRequestWithFreshCredentials() {
        let stage = Stage(
            ice: ICEProvision(
                stunServers: ["stun:example.org"], turnServers: ["turn:example.org"],
                credentials: .timeLimited(secret: "s", lifetime: .seconds(300))))
        let ada = stage.arrive()
        stage.pass(.seconds(240))
        guard case .iceServers(let answer)? = ada.ask(.iceServers) else { return #expect(Bool(false), "no answer") }
        #expect(answer.ice.relayOnly)
        #expect(answer.ice.expiresAt == (stage.now + .seconds(300)).milliseconds)
        #expect(answer.ice.servers.count == 2)
        #expect(answer.ice.servers.last?.credential != ada.welcome?.ice.servers.last?.credential)
    }
}
