/// Any message from a client to the server. `protocol/README.md`, `people.md` and `rooms.md` list all messages.
///
/// Every numbered message is a request that gets exactly one answer: `ok`, the notice that the documentation of the request
/// names, or an error. Any request can fail with `malformed` or `rate_limited`.
public enum ClientMessage: Equatable, Sendable, MessageSet {
    /// The first message on each socket, which must arrive within 10 s. Unnumbered; answered with
    /// ``ServerMessage/welcome(_:)`` or an error.
    case hello(Hello)
    /// Acknowledges messages if the client has nothing else to send. The acknowledged number is in ``Envelope/ack``.
    /// Unnumbered.
    case ack
    /// Checks whether the server is still there. Unnumbered; answered with ``ServerMessage/pong``.
    case ping
    /// Leaves immediately, so that the connection cannot be resumed. Unnumbered, without an answer.
    case bye
    /// Requests ICE servers again, because TURN credentials expire. Answered with ``ServerMessage/iceServers(_:)``.
    case iceServers
    /// A request about a session.
    case session(SessionVerb)
    /// A request to the roulette.
    case roulette(RouletteVerb)
    /// A request about the peer connections with the server.
    case media(MediaVerb)
    /// A request about this person and their devices.
    case presence(PresenceVerb)
    /// A request about people nearby.
    case nearby(NearbyVerb)
    /// A request about calls.
    case call(CallVerb)
    /// A request about contacts.
    case contact(ContactVerb)
    /// A request about rooms.
    case room(RoomVerb)
    /// A request about push notifications.
    case push(PushVerb)

    func visit(_ visitor: inout some MessageVisitor) throws(WireError) {
        switch self {
        case .hello(let payload): try visitor.message("hello", payload)
        case .ack: try visitor.message("ack", NoMembers())
        case .ping: try visitor.message("ping", NoMembers())
        case .bye: try visitor.message("bye", NoMembers())
        case .iceServers: try visitor.message("ice.servers", NoMembers())
        case .session(let message): try message.visit(&visitor)
        case .roulette(let message): try message.visit(&visitor)
        case .media(let message): try message.visit(&visitor)
        case .presence(let message): try message.visit(&visitor)
        case .nearby(let message): try message.visit(&visitor)
        case .call(let message): try message.visit(&visitor)
        case .contact(let message): try message.visit(&visitor)
        case .room(let message): try message.visit(&visitor)
        case .push(let message): try message.visit(&visitor)
        }
    }

    static let readers: [MessageReader<Self>] =
        [
            .init("hello", Self.hello),
            .init("ack", .ack),
            .init("ping", .ping),
            .init("bye", .bye),
            .init("ice.servers", .iceServers),
        ]
        + SessionVerb.readers.map { $0.within(Self.session) }
        + RouletteVerb.readers.map { $0.within(Self.roulette) }
        + MediaVerb.readers.map { $0.within(Self.media) }
        + PresenceVerb.readers.map { $0.within(Self.presence) }
        + NearbyVerb.readers.map { $0.within(Self.nearby) }
        + CallVerb.readers.map { $0.within(Self.call) }
        + ContactVerb.readers.map { $0.within(Self.contact) }
        + RoomVerb.readers.map { $0.within(Self.room) }
        + PushVerb.readers.map { $0.within(Self.push) }

    /// The readers of all messages, keyed by the messages' names on the wire.
    static let readersByType = byType(readers)

    /// Whether this message has no `seq` (`protocol/README.md` §1).
    public var isUnnumbered: Bool {
        switch self {
        case .hello, .ack, .ping, .bye: true
        default: false
        }
    }
}
