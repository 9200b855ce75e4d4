/// Any message from the server to a client. `protocol/README.md`, `people.md` and `rooms.md` list all messages.
public enum ServerMessage: Equatable, Sendable, MessageSet {
    /// Answers `hello`. Unnumbered.
    indirect case welcome(Welcome)
    /// Answers a request, announces that the server closes the socket, or reports a change, such as a search that ended
    /// (`protocol/README.md` §2). Unnumbered if the error closes the socket or answers the hello.
    case error(Failure)
    /// Acknowledges messages if the server has nothing else to send. The acknowledged number is in ``Envelope/ack``.
    /// Unnumbered.
    case ack
    /// Answers `ping`. Unnumbered.
    case pong
    /// Confirms that a request was carried out, if the request has no other answer.
    case ok(OK)
    /// Answers `ice.servers`.
    case iceServers(ICEServers)
    /// A message about a session.
    case session(SessionNotice)
    /// A message about the roulette.
    case roulette(RouletteNotice)
    /// A message about the peer connections with the server.
    case media(MediaNotice)
    /// A message about this person and others.
    case presence(PresenceNotice)
    /// A message about people nearby.
    case nearby(NearbyNotice)
    /// A message about calls.
    case call(CallNotice)
    /// A message about contacts.
    case contact(ContactNotice)
    /// A message about rooms.
    case room(RoomNotice)

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
        case .room(let message): try message.visit(&visitor)
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
        + RoomNotice.readers.map { $0.within(Self.room) }

    /// The readers of all messages, keyed by the messages' names on the wire.
    static let readersByType = byType(readers)
}

extension ServerMessage {
    /// Confirms that a request was carried out.
    public struct OK: AnswerPayload {
        /// The `seq` of the request that this message answers.
        public var re: UInt64 = 0
        public init() {}
        public init(re: UInt64) { self.re = re }
        public mutating func fields(_ coder: inout FieldCoder) throws(WireError) { try coder.re(&re) }
    }

    /// An error, and the request that it answers.
    public struct Failure: PossibleAnswerPayload {
        /// The `seq` of the request that failed; nil if the error does not answer a request.
        public var re: UInt64?
        /// The error. In JSON, its properties are members of the message itself.
        public var error = WireError("", "")
        public init() {}
        public init(_ error: WireError, re: UInt64? = nil) { (self.error, self.re) = (error, re) }
        public mutating func fields(_ coder: inout FieldCoder) throws(WireError) {
            try coder.integer("re", &re, in: 0...(1 << 53))
            try error.fields(&coder)
        }
    }

    /// Fresh ICE servers and credentials.
    public struct ICEServers: AnswerPayload {
        /// The `seq` of the request that this message answers.
        public var re: UInt64 = 0
        /// The servers, which replace those of the welcome or of an earlier answer.
        public var ice = ICEConfiguration()
        public init() {}
        public init(re: UInt64, ice: ICEConfiguration) { (self.re, self.ice) = (re, ice) }
        public mutating func fields(_ coder: inout FieldCoder) throws(WireError) {
            try coder.re(&re)
            try coder.nested("ice", &ice)
        }
    }
}
