/// The rules of the compositor: which streams there are, what of them is decoded for which frame, and where it is drawn.
///
/// It owns the queues and layouts, and no decoder, socket or clock. Nothing that the server sends makes it trap or grow without
/// bound: it reports a fault and continues.
public struct LiveComposition: Sendable {
    /// What to do after a message.
    public enum Effect: Hashable, Sendable {
        /// Decode an Opus packet, and place it at this time.
        case audio(stream: UInt32, at: Duration, [UInt8])
        /// Send a message to the server.
        case send(CompositorOutput)
        /// Compose up to this time, then exit.
        case stop(at: Duration)
    }

    /// What to do for one frame of the output.
    public struct Plan: Hashable, Sendable {
        /// What to decode, by stream. The last frame of each is shown.
        public var decode: [UInt32: [VideoQueue.Item]] = [:]
        /// Where streams are drawn, in the order in which they are painted.
        public var cells: [CompositorCell] = []
        /// Streams that are in no layout, or have no video. Close their decoders, and forget their images. `decode` has another decoder
        /// before it has more frames.
        public var hidden: [UInt32] = []
        /// Streams that have ended. Forget their decoders, frames and audio.
        public var ended: [UInt32] = []
    }

    private struct Stream: Sendable {
        var queue = VideoQueue()
        /// When its video ended, on the server's timeline; nil while it has video.
        var videoEnded: Duration?
        /// When a keyframe was last requested.
        var requested: Duration?
        /// When it was closed, on the server's timeline; nil while it is open.
        var closed: Duration?
    }

    /// The open streams at most: the 50 that OpenTok allows, and those that have ended and are still being composed.
    static let maxStreams = 128
    /// The layouts at most that are not due yet. Older ones are replaced.
    static let maxLayouts = 64
    /// How far ahead of the present a frame may be. The one after it would wait as long.
    static let maxLead = Duration.seconds(10)
    /// A keyframe is requested again after this time. The server limits what publishers get.
    static let requestInterval = Duration.milliseconds(500)

    private let configuration: CompositorConfiguration
    private var streams: [UInt32: Stream] = [:]
    private var layouts: [(time: Duration, layout: CompositorLayout)] = []
    private var current = CompositorLayout()
    private var droppedBefore = 0

    public init(_ configuration: CompositorConfiguration) { self.configuration = configuration }

    /// The streams that are not closed.
    public var openStreams: Int { streams.values.count { $0.closed == nil } }
    /// The video frames that were discarded so far.
    public var dropped: Int { streams.values.reduce(droppedBefore) { $0 + $1.queue.dropped } }

    /// Takes a message.
    ///
    /// - Parameter now: the present time of the server's timeline.
    public mutating func take(_ input: CompositorInput, now: Duration) -> [Effect] {
        switch input {
        case .config: return [Self.fault("The configuration cannot change.")]
        case .layout(let layout, let time): return take(layout, at: time, now: now)
        case .open(let id, let codec, let configuration): return open(id, codec, configuration, now: now)
        case .video(let id, let time, let isKeyframe, let bytes):
            guard let stream = streams[id], stream.closed == nil, stream.videoEnded == nil, isDrawn(id) else {
                return []
            }
            if time > now + Self.maxLead {
                streams[id]?.queue.drop()
            } else {
                streams[id]?.queue.push(.init(time: time, isKeyframe: isKeyframe, bytes: bytes))
            }
            return requests(of: [id], now: now)
        case .audio(let id, let time, let bytes):
            guard let stream = streams[id], stream.closed == nil else { return [] }
            return [.audio(stream: id, at: time, bytes)]
        case .close(let id):
            if let stream = streams[id], stream.closed == nil { streams[id]?.closed = now }
            return []
        case .stop(let time): return [.stop(at: min(time, now))]
        }
    }

    private static func fault(_ text: String, stream: UInt32? = nil) -> Effect {
        .send(.fault(CompositorFault(text, stream: stream)))
    }

    private mutating func open(
        _ id: UInt32, _ codec: CompositorCodec?, _ configuration: [UInt8], now: Duration
    ) -> [Effect] {
        guard streams[id] != nil || streams.count < Self.maxStreams else {
            return [Self.fault("There are already \(Self.maxStreams) streams.", stream: id)]
        }
        var stream = streams[id] ?? Stream()
        stream.closed = nil
        if let codec {
            stream.videoEnded = nil
            stream.queue.open(codec, configuration: configuration)
        } else {
            stream.videoEnded = stream.videoEnded ?? now
        }
        streams[id] = stream
        return requests(of: [id], now: now)
    }

    private mutating func take(_ layout: CompositorLayout, at time: Duration, now: Duration) -> [Effect] {
        let isInside = layout.cells.allSatisfy { cell in
            cell.x + cell.width <= configuration.width && cell.y + cell.height <= configuration.height
        }
        guard isInside, Set(layout.cells.map(\.stream)).count == layout.cells.count else {
            return [
                Self.fault(
                    "The layout has a cell outside the canvas, or lists a stream twice. The previous layout is kept.")
            ]
        }
        // A layout also replaces those of the same time and later.
        layouts.removeAll { $0.time >= time }
        if layouts.count >= Self.maxLayouts { layouts.removeFirst() }
        layouts.append((time, layout))
        return requests(of: layout.cells.map(\.stream), now: now)
    }

    /// Whether a stream is in the present layout or in one to come.
    private func isDrawn(_ id: UInt32) -> Bool {
        current.cells.contains { $0.stream == id }
            || layouts.contains { $0.layout.cells.contains { $0.stream == id } }
    }

    /// Returns requests for keyframes of those streams that need one.
    private mutating func requests(of ids: [UInt32], now: Duration) -> [Effect] {
        var effects: [Effect] = []
        for id in ids {
            guard let stream = streams[id], stream.closed == nil, stream.videoEnded == nil,
                stream.queue.needsKeyframe, isDrawn(id)
            else { continue }
            if let requested = stream.requested, now - requested < Self.requestInterval { continue }
            streams[id]?.requested = now
            effects.append(.send(.needKeyframe(stream: id)))
        }
        return effects
    }

    /// A decoder failed on what a plan contained. `LiveComposition` continues at the stream's next keyframe.
    public mutating func decoderFailed(_ id: UInt32) { streams[id]?.queue.decoderFailed() }

    /// Returns what is to be done for the frame of this time. Call it for times that do not decrease.
    public mutating func plan(for time: Duration) -> Plan {
        while let next = layouts.first, next.time <= time {
            current = next.layout
            layouts.removeFirst()
        }
        var plan = Plan()
        plan.cells = current.cells
        for (id, stream) in streams {
            let hasVideo = stream.videoEnded.map { time <= $0 } ?? true
            if !hasVideo || !isDrawn(id) {
                plan.hidden.append(id)
                streams[id]?.queue.clear()
            } else if let items = streams[id]?.queue.take(until: time), !items.isEmpty {
                plan.decode[id] = items
            }
            if let closed = stream.closed, time > closed {
                plan.ended.append(id)
                droppedBefore += streams.removeValue(forKey: id)?.queue.dropped ?? 0
            }
        }
        return plan
    }

    /// Returns the requests for keyframes that are due. Call it a few times a second.
    public mutating func requests(now: Duration) -> [Effect] { requests(of: streams.keys.sorted(), now: now) }
}
