// Notices about broadcasts of a session.

/// A live broadcast of a session.
public struct BroadcastInfo: Payload {
    /// The broadcast's id.
    public var broadcast = BroadcastID(high: 0, low: 0)
    /// True if only the streams of members who accepted with ``SessionVerb/consent(_:)`` are broadcast; otherwise nil.
    public var asks: Bool?
    public init() {}
    public init(_ broadcast: BroadcastID, asks: Bool? = nil) { (self.broadcast, self.asks) = (broadcast, asks) }
    public mutating func fields(_ coder: inout FieldCoder) throws(WireError) {
        try coder.id("broadcastId", &broadcast)
        try coder.bool("consent", &asks)
    }
}

extension SessionNotice {
    /// A broadcast that is about to begin. The server sends this before viewers get anything.
    public struct BroadcastStarted: Payload {
        /// The id of the session that is broadcast.
        public var session = SessionID.unset
        /// The broadcast. Its members are those of the message.
        public var broadcast = BroadcastInfo()
        public init() {}
        public init(session: SessionID, _ broadcast: BroadcastInfo) {
            (self.session, self.broadcast) = (session, broadcast)
        }
        public mutating func fields(_ coder: inout FieldCoder) throws(WireError) {
            try coder.session(&session)
            try broadcast.fields(&coder)
        }
    }

    /// The end of a broadcast. The session may still have other broadcasts.
    public struct BroadcastStopped: Payload {
        /// The id of the session.
        public var session = SessionID.unset
        /// The id of the broadcast that has ended.
        public var broadcast = BroadcastID(high: 0, low: 0)
        public init() {}
        public init(session: SessionID, broadcast: BroadcastID) {
            (self.session, self.broadcast) = (session, broadcast)
        }
        public mutating func fields(_ coder: inout FieldCoder) throws(WireError) {
            try coder.session(&session)
            try coder.id("broadcastId", &broadcast)
        }
    }
}
