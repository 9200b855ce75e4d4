import LiveComposing
import Wire

/// Decides which media the compositor gets, and remembers what another run of it must know.
///
/// Invariant: each stream begins with a keyframe, in each run and after a gap. Audio is dropped only if the compositor reads nothing.
public struct CompositorQueue: Sendable {
    /// What to do with a message.
    public enum Decision: Hashable, Sendable {
        /// Send it to the compositor that runs.
        case send
        /// Drop it. The stream's publisher should send a keyframe if `wantsKeyframe`.
        case drop(wantsKeyframe: Bool)
        /// The compositor reads nothing. Kill it.
        case stuck
    }

    /// Video is dropped while this many bytes wait for the compositor: four seconds of 16 streams of 1 Mbit/s.
    public static let maxBytes = 8 << 20
    /// Audio and other messages may exceed `maxBytes` by this many bytes.
    public static let reserve = 1 << 20
    /// The maximum number of open streams, as in the compositor.
    public static let maxStreams = 128
    /// The minimum time between two requests for a keyframe of a stream.
    public static let keyframePause: Duration = .milliseconds(500)

    private struct Stream {
        var codec: CompositorCodec?
        var configuration: [UInt8]
        var needsKeyframe = true
        var requested: Timestamp?
    }

    private var streams: [UInt32: Stream] = [:]
    private var layout = CompositorLayout([])
    /// How many video frames were dropped because the queue was full.
    public private(set) var dropped = 0

    public init() {}

    /// Decides about a message. `config` and `stop` are sent by the owner, not through this function, and are dropped.
    ///
    /// - Parameter waiting: the number of bytes that wait for the compositor.
    public mutating func take(_ input: CompositorInput, waiting: Int, at now: Timestamp) -> Decision {
        switch input {
        case .config, .stop: return .drop(wantsKeyframe: false)
        case .layout(let layout, _): self.layout = layout
        case .open(let stream, let codec, let configuration):
            guard streams[stream] != nil || streams.count < Self.maxStreams else { return .drop(wantsKeyframe: false) }
            streams[stream] = Stream(codec: codec, configuration: configuration)
        case .close(let stream):
            guard streams.removeValue(forKey: stream) != nil else { return .drop(wantsKeyframe: false) }
        case .audio(let stream, _, _):
            guard streams[stream] != nil else { return .drop(wantsKeyframe: false) }
        case .video(let stream, _, let isKeyframe, let bytes):
            return video(stream, isKeyframe, fits: waiting + bytes.count <= Self.maxBytes, now)
        }
        return waiting <= Self.maxBytes + Self.reserve ? .send : .stuck
    }

    private mutating func video(_ id: UInt32, _ isKeyframe: Bool, fits: Bool, _ now: Timestamp) -> Decision {
        guard var stream = streams[id], stream.codec != nil else { return .drop(wantsKeyframe: false) }
        defer { streams[id] = stream }
        if fits, isKeyframe || !stream.needsKeyframe {
            (stream.needsKeyframe, stream.requested) = (false, nil)
            return .send
        }
        if !fits { dropped += 1 }
        stream.needsKeyframe = true
        if let requested = stream.requested, now - requested < Self.keyframePause { return .drop(wantsKeyframe: false) }
        stream.requested = now
        return .drop(wantsKeyframe: true)
    }

    /// Returns what another run of the compositor is sent first, after `config`: the layout and the open streams.
    ///
    /// - Parameter time: the present time of the timeline.
    public mutating func restart(at time: Duration) -> [CompositorInput] {
        for id in streams.keys {
            streams[id]?.needsKeyframe = true
            streams[id]?.requested = nil
        }
        let open = streams.sorted { $0.key < $1.key }.map {
            CompositorInput.open(stream: $0.key, $0.value.codec, configuration: $0.value.configuration)
        }
        return [.layout(layout, at: time)] + open
    }
}
