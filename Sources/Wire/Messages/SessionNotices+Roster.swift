extension SessionNotice {
    /// True if the server waits for the acknowledgment of this message before it sends the next page of the session's roster.
    /// Acknowledge such a message immediately.
    public var awaitsAcknowledgement: Bool {
        switch self {
        case .joined(let joined): joined.more == true
        case .roster(let roster): roster.more == true
        default: false
        }
    }

    /// A page of a session's connections and their streams. The client does not know any of them yet.
    public struct Roster: Payload {
        /// The id of the session that the client is in.
        public var session = SessionID.unset
        /// Connections in the session, in the order of joining.
        public var connections: [ConnectionInfo] = []
        /// The streams of these connections.
        public var streams: [StreamInfo] = []
        /// True if another page follows once the client has acknowledged this one; otherwise nil.
        public var more: Bool?
        public init() {}
        public mutating func fields(_ coder: inout FieldCoder) throws(WireError) {
            try coder.session(&session)
            try coder.list("connections", &connections)
            try coder.list("streams", &streams)
            try coder.bool("more", &more)
        }
    }
}
