import TestSupport
import Testing
import Wire

@testable import Confab

private struct FallbackPlayer: ScriptPlayer {
    private var rules = AudioFallback()

    init(settings: JSONValue) {}
    var nextTimeout: Timestamp? { rules.nextTimeout }
    mutating func handleTimeout(now: Timestamp) -> [JSONValue] { items(rules.handleTimeout(now: now)) }

    mutating func play(_ word: String, _ input: JSONValue, now: Timestamp) throws -> [JSONValue] {
        items(rules.handle(.judged(isTooSlow: input["slow"]?.bool ?? false), now: now))
    }

    private func items(_ effects: [AudioFallback.Effect]) -> [JSONValue] {
        effects.map { [$0 == .warningLifted ? "lifted" : "\($0)": .bool(true)] }
    }
}

private struct NegotiationPlayer: ScriptPlayer {
    private var negotiation: Negotiation
    private var random = SeededGenerator(seed: 1)

    init(settings: JSONValue) { negotiation = Negotiation(isPolite: settings["polite"]?.bool ?? false) }
    var nextTimeout: Timestamp? { nil }
    mutating func handleTimeout(now: Timestamp) -> [JSONValue] { [] }

    mutating func play(_ word: String, _ input: JSONValue, now: Timestamp) throws -> [JSONValue] {
        let id = input[word]?.string
        let label = Negotiation.Label(
            id: id == "own" ? negotiation.label.id : id, number: input["number"]?.integer.map { Int($0) })
        switch word {
        case "offer": return [["offer": .integer(Int64(negotiation.offer(using: &random).number ?? 0))]]
        case "candidate": return [[negotiation.concerns(label) ? "added" : "ignored": .bool(true)]]
        case "reply":
            guard negotiation.isAnswer(label) else { return [["ignored": .bool(true)]] }
            negotiation.completed()
            return [["completed": .bool(true)]]
        default:
            let decision = negotiation.decide(label)
            if case .renew = decision { negotiation.reset() }
            switch decision {
            case .renew, .accept: negotiation.accepted(label)
            case .repeat, .ignore, .refuse: break
            }
            return [["\(decision)": .bool(true)]]
        }
    }
}

@Test("the scripts of the audio fallback", arguments: ScriptFile.scripts("fallback"))
func fallbackScripts(_ script: Script) throws { try script.play(on: FallbackPlayer.self) }

@Test("the scripts of a negotiation", arguments: ScriptFile.scripts("negotiation"))
func negotiationScripts(_ script: Script) throws { try script.play(on: NegotiationPlayer.self) }

@Test("the constants that both SDKs share are those of protocol/scripts")
func sharedConstants() throws {
    func ms(_ duration: Duration) -> JSONValue { .integer(duration.wholeMilliseconds) }
    func count(_ number: Int) -> JSONValue { .integer(Int64(number)) }
    let replay = SignalClient.Options().replay
    let own: JSONValue = [
        "answerDelay": ms(RelayedPeer.answerDelay), "longestAnswerDelay": ms(RelayedPeer.maxAnswerDelay),
        "relayedDisconnected": ms(RelayedPeer.disconnectedDelay), "relayedFailed": ms(RelayedPeer.failedDelay),
        "relayedRestartPause": ms(RelayedPeer.restartPause), "relayedFirstOffer": ms(RelayedPeer.firstOfferDelay),
        "relayedConnect": ms(RelayedPeer.connectTimeout), "earlySubscribers": count(SessionMedia.maxEarlySubscribers),
        "routedDisconnected": ms(SFUTransport.disconnectedDelay), "routedRestartPause": ms(SFUTransport.restartPause),
        "routedRestarts": count(SFUTransport.maxRestarts), "routedLongestPause": ms(SFUTransport.maxPause),
        "routedRetry": ms(SFUTransport.retryDelay), "estimateFresh": ms(DownlinkEstimate.freshFor),
        "estimateWait": ms(DownlinkEstimate.maxWait), "publishLongestPause": ms(SessionMembership.longestPause),
        "chatLines": count(RoomChat.maxLines), "chatBytes": count(RoomChat.maxBytes),
        "rememberedCalls": count(CallsMachine.maxRemembered), "callRejoin": ms(CallsMachine.rejoinTime),
        "replayMessages": count(replay.messages),
        "replayBytes": count(replay.bytes), "replayLargeBytes": count(replay.largeBytes),
    ]
    let shared = try ScriptFile.read("scripts/constants.json")
    #expect(own.matches(shared) && shared.matches(own), "\(own.text)")
}
