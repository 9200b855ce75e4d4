import Wire

/// What the server sends to the compositor. The first message is `config`.
public enum CompositorInput: Hashable, Sendable {
    /// What is to be made. The time is that of the first frame of the output, and the present one: frame k of the output shows
    /// this time + k · 40 ms, after the delay.
    case config(CompositorConfiguration, at: Duration)
    /// Where streams are drawn from the frame of this time on.
    case layout(CompositorLayout, at: Duration)
    /// A stream begins, or continues with another codec or other parameters; nil if it has no video. Its audio is Opus. The
    /// number is not 0. `configuration` is the codec's `CodecPrivate` in Matroska, and may be empty.
    case open(stream: UInt32, CompositorCodec?, configuration: [UInt8])
    /// A video frame, whole and in decoding order: for VP9 a superframe, for AV1 a temporal unit of OBUs with sizes. H.264 has
    /// lengths of 4 bytes if `open` had an `avcC`, and start codes otherwise.
    case video(stream: UInt32, at: Duration, isKeyframe: Bool, [UInt8])
    /// An Opus packet.
    case audio(stream: UInt32, at: Duration, [UInt8])
    /// A stream has ended. What was sent of it is still composed.
    case close(stream: UInt32)
    /// Compose what was sent up to this time, and exit.
    case stop(at: Duration)

    /// The types of messages to the compositor.
    public enum Kind: UInt8, Sendable, CaseIterable {
        case config = 1
        case layout, open, video, audio, close, stop
    }

    /// The longest JSON text in bytes. A layout of 16 cells has about 1,500.
    public static let maxJSON = 64 << 10
    /// The longest configuration of a codec in bytes: those of H.264 and AV1 have less than 1,000.
    public static let maxCodecConfiguration = 64 << 10
    /// The longest Opus packet in bytes, as recordings have it (RFC 7845 §6).
    public static let maxAudio = 61_440
    /// The flag of a keyframe.
    static let keyframeFlag: UInt8 = 1

    /// - Throws: `CompositorMessageError` with what is wrong.
    public init(_ message: CompositorMessage) throws(CompositorMessageError) {
        guard let kind = Kind(rawValue: message.type) else {
            throw CompositorMessageError("The compositor has no message of type \(message.type).")
        }
        let (stream, time, body) = (message.stream, message.time, message.body)
        switch kind {
        case .config: self = .config(try .init(json: body), at: time)
        case .layout: self = .layout(try .init(json: body), at: time)
        case .open:
            guard stream > 0, let first = body.first, first == 0 || CompositorCodec(rawValue: first) != nil else {
                throw CompositorMessageError("A stream has the number 0 or an unknown codec.")
            }
            try Self.check(body.count - 1, Self.maxCodecConfiguration, "configuration")
            self = .open(stream: stream, CompositorCodec(rawValue: first), configuration: Array(body.dropFirst()))
        case .video:
            guard !body.isEmpty else { throw CompositorMessageError("A video frame is empty.") }
            self = .video(stream: stream, at: time, isKeyframe: message.flags & Self.keyframeFlag != 0, body)
        case .audio:
            guard !body.isEmpty else { throw CompositorMessageError("An Opus packet is empty.") }
            try Self.check(body.count, Self.maxAudio, "Opus packet")
            self = .audio(stream: stream, at: time, body)
        case .close: self = .close(stream: stream)
        case .stop: self = .stop(at: time)
        }
    }

    private static func check(_ count: Int, _ most: Int, _ what: String) throws(CompositorMessageError) {
        guard count <= most else { throw CompositorMessageError("A \(what) has \(count) bytes; \(most) are allowed.") }
    }

    /// The message to send.
    public var message: CompositorMessage {
        switch self {
        case .config(let configuration, let time):
            Self.message(.config, time: time, body: configuration.json)
        case .layout(let layout, let time): Self.message(.layout, time: time, body: layout.json)
        case .open(let stream, let codec, let configuration):
            Self.message(.open, stream: stream, body: [codec?.rawValue ?? 0] + configuration)
        case .video(let stream, let time, let isKeyframe, let bytes):
            Self.message(.video, stream: stream, time: time, flags: isKeyframe ? Self.keyframeFlag : 0, body: bytes)
        case .audio(let stream, let time, let bytes): Self.message(.audio, stream: stream, time: time, body: bytes)
        case .close(let stream): Self.message(.close, stream: stream)
        case .stop(let time): Self.message(.stop, time: time)
        }
    }

    private static func message(
        _ kind: Kind, stream: UInt32 = 0, time: Duration = .zero, flags: UInt8 = 0, body: [UInt8] = []
    ) -> CompositorMessage {
        CompositorMessage(type: kind.rawValue, stream: stream, time: time, flags: flags, body: body)
    }
}

/// The codec of a stream's video. The numbers are on the wire.
public enum CompositorCodec: UInt8, Hashable, Sendable, CaseIterable {
    case vp8 = 1
    case vp9, av1, h264
}
