import Wire

/// What the compositor sends to the server.
public enum CompositorOutput: Hashable, Sendable {
    /// The start of the MP4 file (`ftyp` and `moov`), once, before the first fragment. The time is that of the output's first
    /// frame on the server's timeline.
    case initialization(at: Duration, [UInt8])
    /// A fragment of the MP4 file.
    case fragment(CompositorFragment)
    /// Statistics of the compositor, about every two seconds.
    case stats(CompositorStats)
    /// A stream can be shown only from a keyframe on. Repeated until there is one.
    case needKeyframe(stream: UInt32)
    /// Something failed.
    case fault(CompositorFault)

    /// The types of messages from the compositor.
    public enum Kind: UInt8, Sendable, CaseIterable {
        case initialization = 65
        case fragment, stats, needKeyframe, fault
    }

    static let keyframeFlag: UInt8 = 1
    static let fatalFlag: UInt8 = 1
    /// The bytes before a fragment: its duration in microseconds.
    private static let durationLength = 4

    /// - Throws: `CompositorMessageError` with what is wrong.
    public init(_ message: CompositorMessage) throws(CompositorMessageError) {
        guard let kind = Kind(rawValue: message.type) else {
            throw CompositorMessageError("The server has no message of type \(message.type).")
        }
        let body = message.body
        switch kind {
        case .initialization: self = .initialization(at: message.time, body)
        case .fragment:
            guard body.count > Self.durationLength else { throw CompositorMessageError("A fragment is empty.") }
            let duration = body[...].bigEndian(at: 0, count: Self.durationLength)
            self = .fragment(
                CompositorFragment(
                    time: message.time, duration: .microseconds(Int64(duration)),
                    isKeyframe: message.flags & Self.keyframeFlag != 0,
                    bytes: Array(body.dropFirst(Self.durationLength))))
        case .stats: self = .stats(try .init(json: body))
        case .needKeyframe: self = .needKeyframe(stream: message.stream)
        case .fault:
            self = .fault(
                CompositorFault(
                    String(decoding: body.prefix(CompositorFault.maxText), as: UTF8.self),
                    stream: message.stream == 0 ? nil : message.stream, isFatal: message.flags & Self.fatalFlag != 0))
        }
    }

    /// The message to send.
    public var message: CompositorMessage {
        switch self {
        case .initialization(let time, let bytes): Self.message(.initialization, time: time, body: bytes)
        case .fragment(let fragment):
            Self.message(
                .fragment, time: fragment.time, flags: fragment.isKeyframe ? Self.keyframeFlag : 0, body: fragment.body)
        case .stats(let stats): Self.message(.stats, body: stats.json)
        case .needKeyframe(let stream): Self.message(.needKeyframe, stream: stream)
        case .fault(let fault):
            Self.message(
                .fault, stream: fault.stream ?? 0, flags: fault.isFatal ? Self.fatalFlag : 0,
                body: Array(fault.text.utf8.prefix(CompositorFault.maxText)))
        }
    }

    private static func message(
        _ kind: Kind, stream: UInt32 = 0, time: Duration = .zero, flags: UInt8 = 0, body: [UInt8] = []
    ) -> CompositorMessage {
        CompositorMessage(type: kind.rawValue, stream: stream, time: time, flags: flags, body: body)
    }
}

/// A fragment of the composed MP4 file: one `moof` and one `mdat`, with audio and video.
public struct CompositorFragment: Hashable, Sendable {
    /// The time of its first frame on the server's timeline.
    public var time: Duration
    /// The duration of its video, less than an hour.
    public var duration: Duration
    /// Whether its first frame is a keyframe, so that a player can begin here.
    public var isKeyframe: Bool
    public var bytes: [UInt8]

    public init(time: Duration, duration: Duration, isKeyframe: Bool, bytes: [UInt8]) {
        (self.time, self.duration, self.isKeyframe, self.bytes) = (time, duration, isKeyframe, bytes)
    }

    fileprivate var body: [UInt8] {
        var body: [UInt8] = []
        body.append(bigEndian: UInt32(clamping: duration.wholeMicroseconds))
        return body + bytes
    }
}

/// What failed in the compositor.
public struct CompositorFault: Hashable, Sendable {
    /// The longest text in bytes.
    public static let maxText = 1_024

    /// A sentence, without media and without names of people.
    public var text: String
    /// The stream whose decoder failed; nil if the fault concerns the whole output.
    public var stream: UInt32?
    /// Whether the compositor exits. A stream that failed continues at its next keyframe.
    public var isFatal: Bool

    public init(_ text: String, stream: UInt32? = nil, isFatal: Bool = false) {
        (self.text, self.stream, self.isFatal) = (text, stream, isFatal)
    }
}

/// Statistics of the compositor, a JSON object on the wire.
public struct CompositorStats: Payload, Hashable {
    /// Frames of the output so far.
    public var frames = 0
    /// How long after its due time the last frame was finished, whole milliseconds.
    public var behind = Duration.zero
    /// The share of the last seconds in which the compositor was computing, in percent.
    public var load = 0
    /// The encoder's preset, a name of x264.
    public var preset = ""
    /// The time between frames of the output, whole milliseconds: 40 unless the compositor is too slow.
    public var interval = Duration.milliseconds(40)
    /// Open streams.
    public var streams = 0
    /// Input frames that were discarded so far: without a keyframe, or because a queue was full.
    public var dropped = 0
    /// Input frames and packets that could not be decoded so far.
    public var damaged = 0

    public init() {}

    public mutating func fields(_ coder: inout FieldCoder) throws(WireError) {
        try coder.integer("frames", &frames, in: 0...Int.max)
        try coder.milliseconds("behind", &behind)
        try coder.integer("load", &load, in: 0...1_000)
        try coder.string("preset", &preset, max: 32)
        try coder.milliseconds("interval", &interval)
        try coder.integer("streams", &streams, in: 0...1_000_000)
        try coder.integer("dropped", &dropped, in: 0...Int.max)
        try coder.integer("damaged", &damaged, in: 0...Int.max)
    }
}
