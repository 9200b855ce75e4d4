/// The video of one stream that is not due yet, still encoded: two seconds of frames would be hundreds of megabytes.
///
/// All frames that it returns can be decoded: it begins with a keyframe, and after a frame is missing, with the next keyframe.
public struct VideoQueue: Sendable {
    /// An encoded frame.
    public struct Frame: Hashable, Sendable {
        /// On the server's timeline.
        public var time: Duration
        public var isKeyframe: Bool
        public var bytes: [UInt8]

        public init(time: Duration, isKeyframe: Bool, bytes: [UInt8]) {
            (self.time, self.isKeyframe, self.bytes) = (time, isKeyframe, bytes)
        }
    }

    /// What is to be done next.
    public enum Item: Hashable, Sendable {
        /// Open a decoder. The next frame is a keyframe.
        case decoder(CompositorCodec, configuration: [UInt8])
        /// Give the decoder a frame.
        case frame(Frame)
    }

    /// The limits of a queue: ten seconds at 60 frames per second, and at 10 Mbit/s with some keyframes more.
    static let maxItems = 600
    static let maxBytes = 16 << 20

    private var items: [Item] = []
    /// The index of the first item that was not taken.
    private var first = 0
    private var bytes = 0
    /// Whether frames are discarded until a keyframe comes.
    public private(set) var needsKeyframe = true
    /// The frames that were discarded.
    public private(set) var dropped = 0

    public init() {}

    /// Whether there is nothing left.
    public var isEmpty: Bool { first == items.count }

    /// Continues with another decoder.
    public mutating func open(_ codec: CompositorCodec, configuration: [UInt8]) {
        if items.count - first >= Self.maxItems { clear() }
        items.append(.decoder(codec, configuration: configuration))
        needsKeyframe = true
    }

    /// Adds a frame, in decoding order.
    public mutating func push(_ frame: Frame) {
        if needsKeyframe {
            guard frame.isKeyframe else { return dropped += 1 }
        } else if items.count - first >= Self.maxItems || bytes + frame.bytes.count > Self.maxBytes {
            clear()
            guard frame.isKeyframe else { return dropped += 1 }
        }
        needsKeyframe = false
        bytes += frame.bytes.count
        items.append(.frame(frame))
    }

    /// Removes and returns what is due: all frames not later than `time`, and the decoders for them.
    public mutating func take(until time: Duration) -> [Item] {
        var end = first
        for index in first..<items.count {
            if case .frame(let frame) = items[index] {
                if frame.time > time { break }
                bytes -= frame.bytes.count
                end = index + 1
            }
        }
        defer { advance(to: end) }
        return Array(items[first..<end])
    }

    /// Discards what cannot be decoded after the decoder failed: all before the next keyframe or decoder.
    public mutating func decoderFailed() {
        var end = first
        search: while end < items.count {
            switch items[end] {
            case .decoder: break search
            case .frame(let frame):
                if frame.isKeyframe { break search }
                bytes -= frame.bytes.count
                dropped += 1
                end += 1
            }
        }
        if end == items.count { needsKeyframe = true }
        advance(to: end)
    }

    /// Discards all frames, for a stream that is not drawn. The last decoder stays.
    public mutating func clear() {
        var last: Item?
        for item in items[first...] {
            if case .frame = item { dropped += 1 } else { last = item }
        }
        items = last.map { [$0] } ?? []
        (first, bytes, needsKeyframe) = (0, 0, true)
    }

    private mutating func advance(to index: Int) {
        first = index
        // Remove in large pieces, so that each frame is moved about once.
        guard first >= 64 || first == items.count else { return }
        items.removeFirst(first)
        first = 0
    }
}
