// Notices about how the server forwards media.

extension SessionNotice {
    /// The new media mode of a session.
    public struct MediaModeChanged: Payload {
        /// The session whose media mode has changed.
        public var session = SessionID.unset
        /// The new media mode, which is always `routed`.
        public var mediaMode = MediaMode.routed
        public init() {}
        public init(session: SessionID, mediaMode: MediaMode) { (self.session, self.mediaMode) = (session, mediaMode) }
        public mutating func fields(_ coder: inout FieldCoder) throws(WireError) {
            try coder.session(&session)
            try coder.choice("mediaMode", &mediaMode)
        }
    }

    /// The start or the end of a pause in a subscriber's video.
    public struct SubscriptionChanged: Payload {
        /// The session that the stream is in.
        public var session = SessionID.unset
        /// The stream to which the client subscribes.
        public var stream = StreamID(high: 0, low: 0)
        /// True if the server sends no video for now, false if it sends video again.
        public var videoPaused = true
        /// The reason for the pause that began or ended.
        public var reason = PauseReason.slow
        public init() {}
        public init(session: SessionID, stream: StreamID, videoPaused: Bool, reason: PauseReason) {
            (self.session, self.stream, self.videoPaused, self.reason) = (session, stream, videoPaused, reason)
        }
        public mutating func fields(_ coder: inout FieldCoder) throws(WireError) {
            try coder.session(&session)
            try coder.id("streamId", &stream)
            try coder.bool("videoPaused", &videoPaused)
            try coder.choice("reason", &reason)
        }
    }

    /// The simulcast layers of a stream that subscribers need. The publisher need not send the other layers.
    public struct LayersWanted: Payload {
        /// The session that the stream is in.
        public var session = SessionID.unset
        /// The client's stream.
        public var stream = StreamID(high: 0, low: 0)
        /// The RIDs of the layers, in the order of the publisher's description; empty or nil while no subscriber needs video.
        public var rids: [String]? = []
        public init() {}
        public init(session: SessionID, stream: StreamID, rids: [String]) {
            (self.session, self.stream, self.rids) = (session, stream, rids)
        }
        public mutating func fields(_ coder: inout FieldCoder) throws(WireError) {
            try coder.session(&session)
            try coder.id("streamId", &stream)
            try coder.strings("rids", &rids, max: Limits.name)
        }
    }

    /// The active speaker.
    public struct Speaking: Payload {
        /// The session that the client is in.
        public var session = SessionID.unset
        /// The stream of the person who is speaking; nil if no one is.
        public var stream: StreamID?
        public init() {}
        public init(session: SessionID, stream: StreamID?) { (self.session, self.stream) = (session, stream) }
        public mutating func fields(_ coder: inout FieldCoder) throws(WireError) {
            try coder.session(&session)
            try coder.id("streamId", &stream)
        }
    }
}

/// The reason why a subscriber receives no video although the stream has video.
public enum PauseReason: String, Hashable, Sendable, CaseIterable {
    /// The subscriber's connection cannot keep up.
    case slow
    /// The subscriber cannot decode the codec.
    case codec
}
