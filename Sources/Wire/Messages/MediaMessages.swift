/// What a client asks about its two peer connections with the server (`protocol/README.md` §8).
public enum MediaVerb: Equatable, Sendable, MessageSet {
    case offer(Offer)
    case close(Close)

    func visit(_ visitor: inout some MessageVisitor) throws(WireError) {
        switch self {
        case .offer(let payload): try visitor.message("media.offer", payload)
        case .close(let payload): try visitor.message("media.close", payload)
        }
    }

    static let readers: [MessageReader<Self>] = [
        .init("media.offer", Self.offer),
        .init("media.close", Self.close),
    ]
}

extension MediaVerb {
    /// A client's offer for one side; the server's answer carries every candidate, and the client's are never sent.
    public struct Offer: Payload {
        public var side = MediaSide.send
        public var sdp = ""
        public init() {}
        public init(side: MediaSide, sdp: String) { (self.side, self.sdp) = (side, sdp) }
        public mutating func fields(_ coder: inout FieldCoder) throws(WireError) {
            try coder.choice("side", &side)
            try coder.string("sdp", &sdp, max: Limits.description)
        }
    }

    public struct Close: Payload {
        public var side = MediaSide.send
        public init() {}
        public init(side: MediaSide) { self.side = side }
        public mutating func fields(_ coder: inout FieldCoder) throws(WireError) { try coder.choice("side", &side) }
    }
}

/// What a client is told about its two peer connections with the server (`protocol/README.md` §8).
public enum MediaNotice: Equatable, Sendable, MessageSet {
    case answer(Answer)
    case closed(Closed)

    func visit(_ visitor: inout some MessageVisitor) throws(WireError) {
        switch self {
        case .answer(let payload): try visitor.message("media.answer", payload)
        case .closed(let payload): try visitor.message("media.closed", payload)
        }
    }

    static let readers: [MessageReader<Self>] = [
        .init("media.answer", Self.answer),
        .init("media.closed", Self.closed),
    ]
}

extension MediaNotice {
    public struct Answer: AnswerPayload {
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
    public struct Closed: Payload {
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
}

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
