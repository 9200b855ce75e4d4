/// Everything that the server says.
public enum ServerMessage: Equatable, Sendable, MessageSet {
    case welcome(Welcome)
    case error(Failure)
    case ack
    case pong
    case ok(OK)
    case iceServers(ICEServers)
    case session(SessionNotice)
    case roulette(RouletteNotice)
    case media(MediaNotice)
    case presence(PresenceNotice)
    case nearby(NearbyNotice)
    case call(CallNotice)
    case contact(ContactNotice)

    func visit(_ visitor: inout some MessageVisitor) throws(WireError) {
        switch self {
        case .welcome(let payload): try visitor.message("welcome", payload)
        case .error(let payload): try visitor.message("error", payload)
        case .ack: try visitor.message("ack", NoMembers())
        case .pong: try visitor.message("pong", NoMembers())
        case .ok(let payload): try visitor.message("ok", payload)
        case .iceServers(let payload): try visitor.message("ice.servers", payload)
        case .session(let message): try message.visit(&visitor)
        case .roulette(let message): try message.visit(&visitor)
        case .media(let message): try message.visit(&visitor)
        case .presence(let message): try message.visit(&visitor)
        case .nearby(let message): try message.visit(&visitor)
        case .call(let message): try message.visit(&visitor)
        case .contact(let message): try message.visit(&visitor)
        }
    }

    static let readers: [MessageReader<Self>] =
        [
            .init("welcome", Self.welcome),
            .init("error", Self.error),
            .init("ack", .ack),
            .init("pong", .pong),
            .init("ok", Self.ok),
            .init("ice.servers", Self.iceServers),
        ]
        + SessionNotice.readers.map { $0.within(Self.session) }
        + RouletteNotice.readers.map { $0.within(Self.roulette) }
        + MediaNotice.readers.map { $0.within(Self.media) }
        + PresenceNotice.readers.map { $0.within(Self.presence) }
        + NearbyNotice.readers.map { $0.within(Self.nearby) }
        + CallNotice.readers.map { $0.within(Self.call) }
        + ContactNotice.readers.map { $0.within(Self.contact) }

    /// Every reader by the message's type on the wire.
    static let readersByType = byType(readers)
}

extension ServerMessage {
    public struct OK: AnswerPayload {
        public var re: UInt64 = 0
        public init() {}
        public init(re: UInt64) { self.re = re }
        public mutating func fields(_ coder: inout FieldCoder) throws(WireError) { try coder.re(&re) }
    }

    public struct Failure: PossibleAnswerPayload {
        public var re: UInt64?
        public var error = WireError("", "")
        public init() {}
        public init(_ error: WireError, re: UInt64? = nil) { (self.error, self.re) = (error, re) }
        public mutating func fields(_ coder: inout FieldCoder) throws(WireError) {
            try coder.integer("re", &re, in: 0...(1 << 53))
            try coder.string("code", &error.code.rawValue, max: Limits.name)
            try coder.string("message", &error.message, max: 4096)
            try coder.bool("retryable", &error.retryable)
            try coder.milliseconds("retryAfterMs", &error.retryAfter)
        }
    }

    public struct ICEServers: AnswerPayload {
        public var re: UInt64 = 0
        public var ice = ICEConfiguration()
        public init() {}
        public init(re: UInt64, ice: ICEConfiguration) { (self.re, self.ice) = (re, ice) }
        public mutating func fields(_ coder: inout FieldCoder) throws(WireError) {
            try coder.re(&re)
            try coder.nested("ice", &ice)
        }
    }
}
