// Routed media: the two `RTCPeerConnection`s that a client connection has with the server, and what goes over them
// (`protocol/README.md` §8).

/// Which of a client's two peer connections with the server: the one it publishes over, or the one by which it gets
/// others' media.
public enum MediaSide: String, Hashable, Sendable, CaseIterable {
    case send, receive
}

/// Which transceivers carry a stream, by the `mid` of their media sections (RFC 8829 §5.2.1). Without either, none do.
public struct MediaMids: Hashable, Sendable {
    public var audio: String?
    public var video: String?

    public init(audio: String? = nil, video: String? = nil) { (self.audio, self.video) = (audio, video) }

    public var isEmpty: Bool { audio == nil && video == nil }
}

extension FieldCoder {
    mutating func mids(_ value: inout MediaMids) throws(WireError) {
        try string("audioMid", &value.audio, max: Limits.mid)
        try string("videoMid", &value.video, max: Limits.mid)
    }
}

/// What a subscriber would like the picture to be, where the publisher makes several (simulcast). Nothing said is the
/// best.
public struct VideoPreference: Hashable, Sendable {
    /// In pixels: the smallest picture that fills a box of this size, either way where only one is said.
    public var width: Int?
    public var height: Int?
    /// Pictures a second, at most.
    public var frameRate: Int?

    public init(width: Int? = nil, height: Int? = nil, frameRate: Int? = nil) {
        (self.width, self.height, self.frameRate) = (width, height, frameRate)
    }
}

extension FieldCoder {
    mutating func preference(_ value: inout VideoPreference) throws(WireError) {
        try integer("preferredWidth", &value.width, in: 0...16384)
        try integer("preferredHeight", &value.height, in: 0...16384)
        // As many as a camera makes, and none is no picture: leave `video` out then.
        try integer("preferredFrameRate", &value.frameRate, in: 1...240)
    }
}

/// A client's offer for one side; the server's answer carries every candidate, and the client's are never sent.
public struct MediaOffer: Payload {
    public var side = MediaSide.send
    public var sdp = ""
    public init() {}
    public init(side: MediaSide, sdp: String) { (self.side, self.sdp) = (side, sdp) }
    public mutating func fields(_ coder: inout FieldCoder) throws(WireError) {
        try coder.choice("side", &side)
        try coder.string("sdp", &sdp, max: Limits.description)
    }
}

public struct OfSide: Payload {
    public var side = MediaSide.send
    public init() {}
    public init(side: MediaSide) { self.side = side }
    public mutating func fields(_ coder: inout FieldCoder) throws(WireError) { try coder.choice("side", &side) }
}

/// Of a relayed pair: whether its media arrives.
public struct PairConnected: Payload {
    public var session = SessionID.unset
    public var connection = ConnectionID(high: 0, low: 0)
    public var connected = true
    public init() {}
    public init(session: SessionID, connection: ConnectionID, connected: Bool) {
        (self.session, self.connection, self.connected) = (session, connection, connected)
    }
    public mutating func fields(_ coder: inout FieldCoder) throws(WireError) {
        try coder.session(&session)
        try coder.id("connectionId", &connection)
        try coder.bool("connected", &connected)
    }
}

public struct MediaAnswer: Payload {
    public var re: UInt64 = 0
    public var side = MediaSide.send
    public var sdp = ""
    public init() {}
    public init(re: UInt64, side: MediaSide, sdp: String) { (self.re, self.side, self.sdp) = (re, side, sdp) }
    public mutating func fields(_ coder: inout FieldCoder) throws(WireError) {
        try coder.re(&re)
        try coder.choice("side", &side)
        try coder.string("sdp", &sdp, max: Limits.description)
    }
}

/// The server ended one side; only a new `RTCPeerConnection` helps.
public struct MediaClosed: Payload {
    public var side = MediaSide.send
    public var code = WireError.Code("")
    public var message = ""
    public init() {}
    public init(side: MediaSide, _ error: WireError) {
        (self.side, code, message) = (side, error.code, error.message)
    }
    public mutating func fields(_ coder: inout FieldCoder) throws(WireError) {
        try coder.choice("side", &side)
        try coder.string("code", &code.rawValue, max: Limits.name)
        try coder.string("message", &message, max: 4096)
    }
}

public struct MediaModeChanged: Payload {
    public var session = SessionID.unset
    public var mediaMode = MediaMode.routed
    public init() {}
    public init(session: SessionID, mediaMode: MediaMode) { (self.session, self.mediaMode) = (session, mediaMode) }
    public mutating func fields(_ coder: inout FieldCoder) throws(WireError) {
        try coder.session(&session)
        try coder.choice("mediaMode", &mediaMode)
    }
}

/// Why a subscriber gets no video of a stream that has some.
public enum PauseReason: String, Hashable, Sendable, CaseIterable {
    /// The subscriber's connection cannot keep up.
    case slow
    /// The subscriber cannot decode it.
    case codec
}

/// To a subscriber: his video was paused, or goes on.
public struct SubscriptionChanged: Payload {
    public var session = SessionID.unset
    public var stream = StreamID(high: 0, low: 0)
    public var videoPaused = true
    /// Of the pause that began or ended.
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

/// To a publisher: which of a stream's simulcast layers anybody wants. The others need not be made.
public struct LayersWanted: Payload {
    public var session = SessionID.unset
    public var stream = StreamID(high: 0, low: 0)
    /// In the order of his description; none while nobody watches.
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

/// Who speaks now; nobody without a stream.
public struct Speaking: Payload {
    public var session = SessionID.unset
    public var stream: StreamID?
    public init() {}
    public init(session: SessionID, stream: StreamID?) { (self.session, self.stream) = (session, stream) }
    public mutating func fields(_ coder: inout FieldCoder) throws(WireError) {
        try coder.session(&session)
        try coder.id("streamId", &stream)
    }
}
