// Notices about how the server forwards media.

extension SessionNotice {
    /// The new media mode of a session.
    public struct MediaModeChanged: Payload {
        /// The id of the session whose media mode has changed.
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

    /// A change to the video of a stream that a subscriber receives: a pause, another layer, or a warning.
    public struct SubscriptionChanged: Payload {
        /// The id of the session that the stream is in.
        public var session = SessionID.unset
        /// The id of the stream to which the client subscribes.
        public var stream = StreamID(high: 0, low: 0)
        /// True if the server sends no video for now; false if it sends video again.
        public var videoPaused = true
        /// The reason for the change. When a pause begins or ends, this is the reason for the pause: `slow` or
        /// `codec`.
        public var reason = SubscriptionReason.slow
        /// The RID of the layer that the server now forwards; nil if the stream has no layers, and while paused.
        public var rid: String?
        /// The highest temporal layer that the server forwards, 0 to 3; nil if it forwards all.
        public var temporalLayer: Int?
        /// True when the server warns that it will pause the video if the subscriber's network gets worse; false when
        /// the warning no longer applies; nil if this has not changed.
        public var warning: Bool?
        /// True if the subscriber's network can carry less of the video than the subscriber requested; false when that
        /// is no longer the case; nil if this has not changed.
        public var limited: Bool?
        public init() {}
        public init(session: SessionID, stream: StreamID, videoPaused: Bool, reason: SubscriptionReason) {
            (self.session, self.stream, self.videoPaused, self.reason) = (session, stream, videoPaused, reason)
        }
        public mutating func fields(_ coder: inout FieldCoder) throws(WireError) {
            try coder.session(&session)
            try coder.id("streamId", &stream)
            try coder.bool("videoPaused", &videoPaused)
            try coder.choice("reason", &reason)
            try coder.string("rid", &rid, max: Limits.name)
            try coder.integer("temporalLayer", &temporalLayer, in: 0...3)
            try coder.bool("warning", &warning)
            try coder.bool("limited", &limited)
        }
    }

    /// The quality with which the server receives a publisher's media. Sent to the publisher and the subscribers of the
    /// stream.
    public struct StreamQuality: Payload {
        /// The id of the session that the stream is in.
        public var session = SessionID.unset
        /// The id of the stream that is rated.
        public var stream = StreamID(high: 0, low: 0)
        /// The quality with which the server receives the stream now.
        public var level = QualityLevel.good
        /// What impairs the stream; nil if the level is good.
        public var reason: QualityReason?
        public init() {}
        public init(session: SessionID, stream: StreamID, level: QualityLevel, reason: QualityReason?) {
            (self.session, self.stream, self.level, self.reason) = (session, stream, level, reason)
        }
        public mutating func fields(_ coder: inout FieldCoder) throws(WireError) {
            try coder.session(&session)
            try coder.id("streamId", &stream)
            try coder.choice("level", &level)
            try coder.choice("reason", &reason)
        }
    }

    /// The layers and codec that subscribers need of a stream's video. The publisher need not send anything else.
    public struct LayersWanted: Payload {
        /// The id of the session that the stream is in.
        public var session = SessionID.unset
        /// The id of the client's stream.
        public var stream = StreamID(high: 0, low: 0)
        /// The RIDs of the layers, in the order of the publisher's description; empty or nil while no subscriber needs video.
        public var rids: [String]? = []
        /// Whether subscribers need the video of a stream without layers; nil if it has layers.
        public var video: Bool?
        /// The payload type, in the publisher's offer, of the codec to send because subscribers cannot decode the codec
        /// that the publisher chose; nil if they can.
        public var codec: Int?
        public init() {}
        public init(session: SessionID, stream: StreamID, rids: [String], video: Bool? = nil, codec: Int? = nil) {
            (self.session, self.stream, self.rids) = (session, stream, rids)
            (self.video, self.codec) = (video, codec)
        }
        public mutating func fields(_ coder: inout FieldCoder) throws(WireError) {
            try coder.session(&session)
            try coder.id("streamId", &stream)
            try coder.strings("rids", &rids, max: Limits.name)
            try coder.bool("video", &video)
            try coder.integer("codec", &codec, in: 0...127)
        }
    }

    /// The active speaker.
    public struct Speaking: Payload {
        /// The id of the session that the client is in.
        public var session = SessionID.unset
        /// The id of the stream of the person who is speaking; nil if no one is.
        public var stream: StreamID?
        public init() {}
        public init(session: SessionID, stream: StreamID?) { (self.session, self.stream) = (session, stream) }
        public mutating func fields(_ coder: inout FieldCoder) throws(WireError) {
            try coder.session(&session)
            try coder.id("streamId", &stream)
        }
    }
}

/// The reason why a subscriber's video was paused, resumed, or switched to another layer.
public enum SubscriptionReason: String, Hashable, Sendable, CaseIterable {
    /// The subscriber's connection cannot keep up, so the video is paused, or has just been resumed.
    case slow
    /// The subscriber cannot decode the codec, so the video is paused, or has just been resumed.
    case codec
    /// The available bitrate of the subscriber's connection has changed, and another layer fits it.
    case bandwidth
    /// The subscriber has requested another size or frame rate.
    case size
    /// The publisher has started or stopped sending a layer.
    case publisher
}

/// The quality with which the server receives a stream.
public enum QualityLevel: String, Hashable, Sendable, CaseIterable {
    /// No noticeable loss of quality.
    case good
    /// People may notice a loss of quality.
    case fair
    /// The loss of quality is obvious.
    case poor
}

/// The reason why the server does not receive a stream well.
public enum QualityReason: String, Hashable, Sendable, CaseIterable {
    /// Packets are lost on the way to the server.
    case loss
    /// Packets arrive late and unevenly.
    case delay
    /// The publisher cannot send all layers that subscribers need.
    case bandwidth
}
