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

        /// The memory that it takes: the encoded frame, or the configuration.
        fileprivate var size: Int {
            switch self {
            case .decoder(_, let configuration): configuration.count
            case .frame(let frame): frame.bytes.count
            }
        }
    }

    /// The limits of a queue: ten seconds at 60 frames per second, and at 10 Mbit/s with some keyframes more.
    static let maxItems = 600
    static let maxBytes = 16 << 20

    /// The slots of items that were taken are empty until they are removed.
    private var items: [Item?] = []
    /// The index of the first item that was not taken.
    private var first = 0
    /// The size of the items that were not taken.
    private(set) var bytes = 0
    /// The decoder of the frames that come next. It is opened again after `clear`.
    private var decoder: Item?
    /// Whether frames are discarded until a keyframe comes.
    public private(set) var needsKeyframe = true
    /// The frames that were discarded.
    public private(set) var dropped = 0

    public init() {}

    /// Whether there is nothing left.
    public var isEmpty: Bool { first == items.count }

    /// The size of all items in memory, for tests.
    var storedBytes: Int { items.reduce(0) { $0 + ($1?.size ?? 0) } }

    /// Continues with another decoder. A decoder for which no frame has come is replaced.
    public mutating func open(_ codec: CompositorCodec, configuration: [UInt8]) {
        if isFull(for: configuration.count) { clear() }
        if first < items.count, case .decoder(_, let unused) = items[items.count - 1] {
            bytes -= unused.count
            items.removeLast()
        }
        let item = Item.decoder(codec, configuration: configuration)
        (decoder, needsKeyframe) = (item, true)
        append(item)
    }

    private func isFull(for size: Int) -> Bool {
        items.count - first >= Self.maxItems || bytes + size > Self.maxBytes
    }

    private mutating func append(_ item: Item) {
        items.append(item)
        bytes += item.size
    }

    /// Adds a frame, in decoding order.
    public mutating func push(_ frame: Frame) {
        if needsKeyframe {
            guard frame.isKeyframe else { return dropped += 1 }
        }
        if isFull(for: frame.bytes.count) {
            clear()
            guard frame.isKeyframe else { return dropped += 1 }
        }
        needsKeyframe = false
        append(.frame(frame))
    }

    /// Counts a frame that is not decoded. Those that follow need a keyframe.
    public mutating func drop() {
        dropped += 1
        needsKeyframe = true
    }

    /// Removes and returns what is due: all frames not later than `time`, and the decoders for them.
    public mutating func take(until time: Duration) -> [Item] {
        var end = first
        for index in first..<items.count {
            if case .frame(let frame) = items[index] {
                if frame.time > time { break }
                end = index + 1
            }
        }
        defer { advance(to: end) }
        return items[first..<end].compactMap(\.self)
    }

    /// Discards what cannot be decoded after the decoder failed: all before the next keyframe or decoder.
    public mutating func decoderFailed() {
        var end = first
        search: while end < items.count {
            switch items[end] {
            case .decoder, nil: break search
            case .frame(let frame):
                if frame.isKeyframe { break search }
                dropped += 1
                end += 1
            }
        }
        if end == items.count { needsKeyframe = true }
        advance(to: end)
    }

    /// Discards all frames of a stream that is not drawn. Keeps the last decoder configuration and returns it before the next frame,
    /// because the compositor frees the decoders of hidden streams.
    public mutating func clear() {
        for case .frame in items[first...] { dropped += 1 }
        items = decoder.map { [$0] } ?? []
        (first, bytes, needsKeyframe) = (0, decoder?.size ?? 0, true)
    }

    private mutating func advance(to index: Int) {
        for taken in first..<index {
            bytes -= items[taken]?.size ?? 0
            items[taken] = nil
        }
        first = index
        // Remove in large pieces, so that each frame is moved about once.
        guard first >= 64 || first == items.count else { return }
        items.removeFirst(first)
        first = 0
    }
}
