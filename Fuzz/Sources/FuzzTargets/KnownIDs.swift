import Signaling
import Wire

/// The sessions, tokens, streams and connections that clients have received. Messages with these ids reach more code than
/// messages with random ids.
struct KnownIDs {
    /// The maximum number of ids of each kind. The newest are last.
    private static let most = 16

    private var sessions = Self.rooms
    private var tokens = Self.keys
    private var streams = [StreamID(high: 0, low: 0)]
    var connections = [ConnectionID(high: 0, low: 0)]
    private var matches = [MatchID(high: 0, low: 0)]
    var calls = [CallID(high: 0, low: 0)]
    var codes = ["ABCD-EFGH"]
    var pages: [String] = []
    /// The ids of all people who may connect, and of one who never does.
    static let people = (0..<7).map { FuzzProject.project.personID(of: IdentityID(high: 7, low: $0)) }

    /// Sessions and admissions, created once, because signing takes longer than the rest of an input.
    private static let (rooms, keys): ([SessionID], [Admission]) = {
        var generator = CountingGenerator()
        let (project, now) = (FuzzProject.project, FuzzProject.now)
        let rooms = MediaMode.allCases.map { project.makeSessionID(mediaMode: $0, now: now, using: &generator) }
        let keys = rooms.flatMap { room in
            Role.allCases.map { role in
                let token = project.makeSessionToken(
                    SessionTokenClaims(session: room, role: role, data: "data", lifetime: .seconds(86_400)), now: now,
                    using: &generator)
                return Admission(session: room, token: token)
            }
        }
        return (rooms, keys)
    }()

    mutating func note(_ message: ServerMessage) {
        switch message {
        case .welcome(let welcome): Self.keep(welcome.connection, in: &connections)
        case .session(.connectionCreated(let created)): Self.keep(created.connection.id, in: &connections)
        case .session(.published(let published)): Self.keep(published.stream.id, in: &streams)
        case .call(.placed(let placed)): Self.keep(placed.call, in: &calls)
        case .call(.incoming(let incoming)): Self.keep(incoming.call, in: &calls)
        case .call(.accepted(let accepted)):
            Self.keep(accepted.admission.session, in: &sessions)
            tokens = tokens.suffix(Self.most) + [accepted.admission]
        case .room(.joined(let joined)):
            Self.keep(joined.admission.session, in: &sessions)
            tokens = tokens.suffix(Self.most) + [joined.admission]
        case .room(.knock(let knock)): Self.keep(knock.connection, in: &connections)
        case .presence(.linkCode(let code)): Self.keep(code.code, in: &codes)
        case .nearby(.list(let list)): if let next = list.next { Self.keep(next, in: &pages) }
        case .roulette(.matched(let matched)):
            Self.keep(matched.match, in: &matches)
            for admission in [matched.publish, matched.subscribe] {
                Self.keep(admission.session, in: &sessions)
                tokens = tokens.suffix(Self.most) + [admission]
            }
        default: break
        }
    }

    private static func keep<Element: Equatable>(_ element: Element, in list: inout [Element]) {
        if !list.contains(element) { list = list.suffix(most) + [element] }
    }

    // MARK: Choosing

    static func identity(_ byte: UInt8) -> IdentityID { IdentityID(high: 7, low: UInt64(byte % 6)) }

    static func address(from input: inout InputReader) -> String {
        input.pick(["203.0.113.1", "203.0.113.2", ""]) ?? ""
    }

    static func duration(from input: inout InputReader) -> Duration {
        input.pick([
            .zero, .milliseconds(1), .seconds(1), .seconds(5), .seconds(10), .seconds(31), .seconds(60), .seconds(700),
        ])
            ?? .zero
    }

    static func ban(_ subject: BanSubject, at now: Timestamp, from input: inout InputReader) -> Ban {
        let lasting = input.byte()
        return Ban(
            subject: subject, reason: "", createdAt: now,
            expiresAt: lasting == 0 ? nil : now + .seconds(Int(lasting) - 8))
    }

    /// Returns a name for `hello`.
    func name(from input: inout InputReader) -> String? {
        text(from: &input).map { String(decoding: $0.utf8.prefix(Limits.name), as: UTF8.self) }
    }

    /// Returns nil, or a text that is empty, common, long or arbitrary.
    func text(from input: inout InputReader) -> String? {
        switch input.byte() % 8 {
        case 0: nil
        case 1: ""
        case 2: "chat"
        case 3: "films"
        case 4: String(repeating: "Ⱥ", count: 40) + String(repeating: "\u{301}", count: 80)
        case 5: String(repeating: "🏳️‍🌈", count: Int(input.byte()))
        default: String(decoding: input.bytes(Int(input.byte() % 16)), as: UTF8.self)
        }
    }

    private func session(from input: inout InputReader) -> SessionID { input.pick(sessions) ?? .unset }

    func message(from input: inout InputReader) -> ClientMessage {
        let choice = input.byte()
        // Earlier inputs mean the same as before: the largest bytes were only repetitions of the smallest.
        if choice >= 34 * 7 { return .room(roomVerb(from: &input)) }
        switch choice % 34 {
        case 0, 1: return .roulette(.start(start(from: &input)))
        case 2, 3: return .roulette(.next(.init(match: match(from: &input))))
        case 4: return .roulette(.stop)
        case 5: return .roulette(.report(.init(reason: "rude", match: match(from: &input))))
        case 6: return .roulette(.block(.init(match: match(from: &input))))
        case 7: return .roulette(.count)
        case 8: return .iceServers
        case 9, 10, 11: return join(from: &input)
        case 12: return .session(.leave(.init(session: session(from: &input))))
        case 13: return .ack
        case 14: return .ping
        case 15: return .bye
        case 16: return .hello(Hello())
        case 17...25: return sessionVerb(from: &input)
        default: return peopleVerb(from: &input)
        }
    }

    func match(from input: inout InputReader) -> MatchID? {
        input.byte() & 1 == 0 ? nil : input.pick(Array(matches.reversed()))
    }

    private func start(from input: inout InputReader) -> RouletteVerb.Start {
        let choice = input.byte()
        let interests = (0..<choice % 5).map { _ in text(from: &input) ?? "music" }
        return RouletteVerb.Start(
            mode: choice & 0x80 == 0 ? .video : .text, interests: choice & 0x40 == 0 ? nil : interests,
            name: choice & 0x20 == 0 ? nil : text(from: &input))
    }

    private func join(from input: inout InputReader) -> ClientMessage {
        guard let key = input.pick(tokens.reversed()) else { return .ping }
        let session = input.byte() & 7 == 0 ? session(from: &input) : key.session
        return .session(.join(.init(session: session, token: key.token)))
    }

    private func sessionVerb(from input: inout InputReader) -> ClientMessage {
        let (choice, session) = (input.byte(), session(from: &input))
        let stream = input.pick(streams) ?? StreamID(high: 0, low: 0)
        let connection = input.pick(connections) ?? ConnectionID(high: 0, low: 0)
        switch choice % 10 {
        case 0, 1:
            var verb = SessionVerb.Publish()
            verb.session = session
            verb.name = text(from: &input)
            return .session(.publish(verb))
        case 2: return .session(.unpublish(.init(session: session, stream: stream)))
        case 3:
            var verb = SessionVerb.Update()
            (verb.session, verb.stream, verb.hasAudio) = (session, stream, choice & 0x80 == 0)
            return .session(.update(verb))
        case 4: return .session(.subscribe(.init(session: session, stream: stream)))
        case 5: return .session(.unsubscribe(.init(session: session, stream: stream)))
        case 6:
            var verb = SessionVerb.Negotiate()
            (verb.session, verb.to) = (session, connection)
            verb.candidate = .string(text(from: &input) ?? "")
            return .session(.negotiate(verb))
        case 7:
            let to = choice & 0x80 == 0 ? nil : connection
            return .session(
                .signal(.init(session: session, type: text(from: &input), data: text(from: &input), to: to)))
        case 8:
            return choice & 0x80 == 0
                ? .session(.forceDisconnect(.init(session: session, connection: connection)))
                : .session(.forceUnpublish(.init(session: session, stream: stream)))
        default:
            var verb = SessionVerb.ForceMute()
            (verb.session, verb.stream, verb.active) = (session, choice & 0x80 == 0 ? nil : stream, choice & 0x40 == 0)
            return .session(.forceMute(verb))
        }
    }
}
