/// Everything that a client says. `protocol/README.md` has the tables.
public enum ClientMessage: Equatable, Sendable, MessageSet {
    case hello(Hello)
    case ack
    case ping
    case bye
    case iceServers
    case session(SessionVerb)
    case roulette(RouletteVerb)
    case media(MediaVerb)
    case presence(PresenceVerb)
    case nearby(NearbyVerb)
    case call(CallVerb)
    case contact(ContactVerb)
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
        + PushVerb.readers.map { $0.within(Self.push) }

    /// Every reader by the message's type on the wire.
    static let readersByType = byType(readers)

    /// Whether this message is outside the numbering (`protocol/README.md` §1).
    public var isUnnumbered: Bool {
        switch self {
        case .hello, .ack, .ping, .bye: true
        default: false
        }
    }
}
