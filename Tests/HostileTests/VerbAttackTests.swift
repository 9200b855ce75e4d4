import Foundation
import Signaling
import Testing
import Wire

/// The limit that stops a client that repeats one verb endlessly.
private enum Brake {
    /// Requests beyond the burst are refused with `rate_limited`. Then the connection is closed with 4429.
    case budget(burst: Int)
    /// The verb is not a request. The server only counts it, and then closes the connection with 4429.
    case messages
    /// Each message gets an error. Then the connection is closed with 4400.
    case faults
    /// The verb itself ends the connection.
    case leaves

    /// The number of messages that reach the limit: the burst, the answered refusals, and the refill meanwhile.
    var enough: Int {
        switch self {
        case .budget(let burst): burst + 350
        case .messages: 1500
        case .faults, .leaves: 50
        }
    }
}

extension ClientMessage {
    /// The limit of a verb. The switch is exhaustive, so a new verb does not compile until its limit is chosen here.
    fileprivate var brake: Brake {
        switch self {
        case .session(.negotiate), .media(.offer): .budget(burst: 500)
        case .session, .roulette, .media(.close), .media(.estimate), .iceServers: .budget(burst: 100)
        case .presence(.delete): .leaves
        case .presence, .nearby, .call, .contact, .push, .room: .budget(burst: 100)
        case .ack, .ping: .messages
        case .hello: .faults
        case .bye: .leaves
        }
    }

    /// Returns the same verb with the place's session and stream, because those in the protocol's examples do not
    /// exist.
    fileprivate func aimed(at place: FloodedSession) -> ClientMessage {
        guard case .session(let verb) = self else { return self }
        return .session(verb.aimed(at: place))
    }
}

extension SessionVerb {
    fileprivate func aimed(at place: FloodedSession) -> SessionVerb {
        switch self {
        case .connected(var verb):
            (verb.session, verb.connection) = (place.session, place.connection)
            return .connected(verb)
        case .join: return .join(.init(session: place.session, token: place.token))
        case .leave: return .leave(.init(session: place.session))
        case .publish(var verb):
            verb.session = place.session
            return .publish(verb)
        case .unpublish: return .unpublish(place.ofStream)
        case .unsubscribe: return .unsubscribe(place.ofStream)
        // Names an unknown stream, because the victim's stream must not be ended.
        case .forceUnpublish: return .forceUnpublish(place.ofNoStream)
        case .update(var verb):
            (verb.session, verb.stream) = (place.session, place.stream)
            return .update(verb)
        case .subscribe(var verb):
            (verb.session, verb.stream) = (place.session, place.stream)
            return .subscribe(verb)
        case .negotiate(var verb):
            (verb.session, verb.to) = (place.session, place.connection)
            return .negotiate(verb)
        case .signal(var verb):
            (verb.session, verb.to) = (place.session, nil)
            return .signal(verb)
        case .forceDisconnect(var verb):
            verb.session = place.session
            return .forceDisconnect(verb)
        case .forceMute(var verb):
            (verb.session, verb.stream) = (place.session, nil)
            return .forceMute(verb)
        }
    }
}

extension FloodedSession {
    fileprivate var ofStream: SessionVerb.StreamReference {
        var verb = SessionVerb.StreamReference()
        (verb.session, verb.stream) = (session, stream)
        return verb
    }

    fileprivate var ofNoStream: SessionVerb.StreamReference {
        var verb = SessionVerb.StreamReference()
        verb.session = session
        return verb
    }
}

extension Hostile {
    @Suite("Case 11: every verb") struct VerbAttacks {
        /// The default limits, except for hellos, because each verb gets its own attacker.
        private static let settings = [
            "CONFAB_LIMITS_REQUESTS_PER_SECOND": "20", "CONFAB_LIMITS_REQUEST_BURST": "100",
            "CONFAB_LIMITS_HANDSHAKE_BURST": "100000",
        ]

        /// Returns the messages in the protocol's examples. Another test ensures that every verb has an example.
        private static func verbs() throws -> [ClientMessage] {
            let folder = URL(fileURLWithPath: #filePath).resolvingSymlinksInPath().deletingLastPathComponent()
                .appendingPathComponent("../../protocol/examples").standardizedFileURL
            let files = try FileManager.default.contentsOfDirectory(at: folder, includingPropertiesForKeys: nil)
            return try files.filter { $0.lastPathComponent.hasPrefix("client-") }
                .sorted { $0.path < $1.path }
                .map { try Envelope<ClientMessage>.decode(Array(try Data(contentsOf: $0))).message }
        }

        @Test("every verb has a budget")
        func everyVerb() async throws {
            try await Attack(number: 11, name: "every verb, over and over", settings: Self.settings).run { server in
                let place = try await FloodedSession(server)
                var (seen, sent, refusals) = (Set<String>(), 0, 0)
                for verb in try Self.verbs() where seen.insert(verb.type).inserted {
                    let message = verb.aimed(at: place)
                    let flooder = try place.attacker()
                    let numbers = UInt64(3)..<UInt64(3 + message.brake.enough)
                    try flooder.flood(Flooder.frames([message], numbers: numbers), pace: 500)
                    Self.judge(flooder.flooding, of: message)
                    (sent, refusals) = (sent + flooder.flooding.sent, refusals + flooder.flooding.refusals)
                }
                #expect(seen.count >= 23, "\(seen.sorted())")
                return AttackOutcome(
                    sent: "\(sent) messages of \(seen.count) verbs", cameBack: "\(refusals) × rate_limited, each closed"
                )
            }
        }

        private static func judge(_ flooding: Flooding, of message: ClientMessage) {
            let what: Comment = "\(message.type): \(flooding)"
            switch message.brake {
            case .budget(let burst):
                #expect(flooding.close == 4429, what)
                #expect(flooding.refusals >= 200, what)
                // The attacker may get answers for the refill of a few seconds, and notifications. These are far fewer
                // than the messages that it sent.
                #expect(flooding.answers < burst + 150, what)
            case .messages: #expect(flooding.close == 4429, what)
            case .faults: #expect(flooding.close == 4400, what)
            case .leaves: #expect([1000, 4409].contains(flooding.close), what)
            }
        }
    }
}
