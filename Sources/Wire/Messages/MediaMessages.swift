/// A client's request about its two peer connections with the server (`protocol/README.md` §8).
public enum MediaVerb: Equatable, Sendable, MessageSet {
    /// Opens or renegotiates a peer connection. Answered with ``MediaNotice/answer(_:)``, or with `media_unavailable` or
    /// `description_invalid`.
    case offer(Offer)
    /// Closes a peer connection. Answered with `ok`, even if there is no such connection.
    case close(Close)
    /// Requests the available bitrate of the connection to this client, for its statistics. Answered with
    /// ``MediaNotice/estimate(_:)``.
    case estimate

    func visit(_ visitor: inout some MessageVisitor) throws(WireError) {
        switch self {
        case .offer(let payload): try visitor.message("media.offer", payload)
        case .close(let payload): try visitor.message("media.close", payload)
        case .estimate: try visitor.message("media.estimate", NoMembers())
        }
    }

    static let readers: [MessageReader<Self>] = [
        .init("media.offer", Self.offer),
        .init("media.close", Self.close),
        .init("media.estimate", .estimate),
    ]
}

extension MediaVerb {
    /// A client's offer for one of its two peer connections. No candidates are sent separately: the server's answer contains
    /// all of the server's candidates, and the server does not need the client's.
    public struct Offer: Payload {
        /// Which of the two peer connections to open or renegotiate.
        public var side = MediaSide.send
        /// The session description, at most 256 KiB. If the session id in the `o=` line is new, a new peer connection replaces
        /// the previous one on this side.
        public var sdp = ""
        public init() {}
        public init(side: MediaSide, sdp: String) { (self.side, self.sdp) = (side, sdp) }
        public mutating func fields(_ coder: inout FieldCoder) throws(WireError) {
            try coder.choice("side", &side)
            try coder.string("sdp", &sdp, max: Limits.description)
        }
    }

    /// A request to close one of the client's two peer connections.
    public struct Close: Payload {
        /// Which of the two peer connections to close.
        public var side = MediaSide.send
        public init() {}
        public init(side: MediaSide) { self.side = side }
        public mutating func fields(_ coder: inout FieldCoder) throws(WireError) { try coder.choice("side", &side) }
    }
}

/// A server's message about a client's two peer connections with it (`protocol/README.md` §8).
public enum MediaNotice: Equatable, Sendable, MessageSet {
    /// Answers `media.offer`.
    case answer(Answer)
    /// Answers `media.estimate`.
    case estimate(Estimate)
    /// The server closed a peer connection. To continue, the client must create a new `RTCPeerConnection`.
    case closed(Closed)

    func visit(_ visitor: inout some MessageVisitor) throws(WireError) {
        switch self {
        case .answer(let payload): try visitor.message("media.answer", payload)
        case .estimate(let payload): try visitor.message("media.estimate", payload)
        case .closed(let payload): try visitor.message("media.closed", payload)
        }
    }

    static let readers: [MessageReader<Self>] = [
        .init("media.answer", Self.answer),
        .init("media.estimate", Self.estimate),
        .init("media.closed", Self.closed),
    ]
}

extension MediaNotice {
    /// The server's answer to an offer.
    public struct Answer: AnswerPayload {
        /// The `seq` of the request that this message answers.
        public var re: UInt64 = 0
        /// Which of the two peer connections this is the answer for.
        public var side = MediaSide.send
        /// The session description, including all candidates of the server.
        public var sdp = ""
        public init() {}
        public init(re: UInt64, side: MediaSide, sdp: String) { (self.re, self.side, self.sdp) = (re, side, sdp) }
        public mutating func fields(_ coder: inout FieldCoder) throws(WireError) {
            try coder.re(&re)
            try coder.choice("side", &side)
            try coder.string("sdp", &sdp, max: Limits.description)
        }
    }

    /// The available bitrate of the connection over which the client receives media.
    public struct Estimate: AnswerPayload {
        /// The `seq` of the request that this message answers.
        public var re: UInt64 = 0
        /// The bitrate for all media that the server sends to the client, in bits per second; nil if nothing limits it,
        /// or if the server does not know it.
        public var bitrate: Int?
        public init() {}
        public init(re: UInt64, bitrate: Int?) { (self.re, self.bitrate) = (re, bitrate) }
        public mutating func fields(_ coder: inout FieldCoder) throws(WireError) {
            try coder.re(&re)
            try coder.integer("bitrate", &bitrate, in: 0...1_000_000_000_000)
        }
    }

    /// The end of a peer connection, and the reason.
    public struct Closed: Payload {
        /// Which of the two peer connections the server closed.
        public var side = MediaSide.send
        /// The reason, such as `dtls_failed` or `fingerprint_mismatch`.
        public var code = WireError.Code("")
        /// The reason, in one sentence that can be shown to the user.
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
}

/// One of a client's two peer connections with the server.
public enum MediaSide: String, Hashable, Sendable, CaseIterable {
    /// The peer connection over which the client publishes.
    case send
    /// The peer connection over which the client receives the streams that it subscribes to.
    case receive
}

/// The transceivers that carry a stream, named by the `mid` of their media sections (RFC 8829 §5.2.1). Each `mid` has
/// at most 16 bytes. The server ignores them in relayed sessions.
public struct MediaMids: Hashable, Sendable {
    /// The mid of the transceiver for audio; nil if there is none, or if an update does not change it.
    public var audio: String?
    /// The mid of the transceiver for video; nil if there is none, or if an update does not change it.
    public var video: String?

    public init(audio: String? = nil, video: String? = nil) { (self.audio, self.video) = (audio, video) }

    /// True if neither transceiver is named.
    public var isEmpty: Bool { audio == nil && video == nil }
}

extension FieldCoder {
    /// Reads or writes the members of ``MediaMids``.
    package mutating func mids(_ value: inout MediaMids) throws(WireError) {
        try string("audioMid", &value.audio, max: Limits.mid)
        try string("videoMid", &value.video, max: Limits.mid)
    }
}

/// The video size and frame rate that a subscriber prefers, if the publisher sends several layers (simulcast), and how important
/// the video is. Without a preference, the subscriber receives the largest layer.
public struct VideoPreference: Hashable, Sendable {
    /// The width in pixels of the box in which the video is shown, 0 to 16384; nil if only the height matters. The server picks
    /// the smallest layer that is at least as wide or at least as high as the box.
    public var width: Int?
    /// The height in pixels of the box in which the video is shown, 0 to 16384; nil if only the width matters.
    public var height: Int?
    /// Maximum frames per second, 1 to 240; nil for no maximum.
    public var frameRate: Int?
    /// How important the video is, 0 to ``maxPriority``; nil is the same as 0. If the subscriber's connection cannot
    /// carry all of its videos, those with a higher priority get a higher quality first and are paused last. A video
    /// with a priority above 0 takes precedence over the active speaker.
    public var priority: Int?

    /// The highest priority. 101 values are enough for any order that an application may need.
    public static let maxPriority = 100

    public init(width: Int? = nil, height: Int? = nil, frameRate: Int? = nil, priority: Int? = nil) {
        (self.width, self.height, self.frameRate, self.priority) = (width, height, frameRate, priority)
    }
}

extension FieldCoder {
    /// Reads or writes the members of ``VideoPreference``.
    package mutating func preference(_ value: inout VideoPreference) throws(WireError) {
        try integer("preferredWidth", &value.width, in: 0...16384)
        try integer("preferredHeight", &value.height, in: 0...16384)
        // No camera is faster than 240 frames per second. The value 0 is not allowed: a client that wants no video sets `video`
        // to false.
        try integer("preferredFrameRate", &value.frameRate, in: 1...240)
        try integer("priority", &value.priority, in: 0...VideoPreference.maxPriority)
    }
}
