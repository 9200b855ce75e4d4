import RTC

/// A bounded ring in which one router writes the packets and messages of the streams that a recorder records.
///
/// The recorder reads it on a thread of its own. If that thread is delayed, for example by a slow disk, packets are dropped and
/// counted, and media between the clients is not affected.
public final class RecordingRing: Sendable {
    /// Two seconds of 50 streams with 2.5 Mbit/s each. Memory is used only as far as packets wait.
    static let capacity = 32 << 20
    let ring: PipeRing

    public init() { ring = PipeRing(capacity: Self.capacity) }
}

/// The recorder's end of a ring. It belongs to the recorder's thread.
public final class RecordingRingReader {
    private let reader: PipeRingReader

    public init(_ ring: RecordingRing) { reader = PipeRingReader(ring.ring) }

    /// A packet of a stream.
    public struct Packet {
        /// The id that was passed to `Router.record`.
        public var recording: UInt32
        /// Whether this is a packet of the video; otherwise it is one of the audio.
        public var isVideo: Bool
        /// The extended sequence number.
        public var number: Int64
        /// The RTP timestamp of the source that was announced last.
        public var timestamp: UInt32
        /// The marker bit: for video, whether this is the last packet of a frame.
        public var marker: Bool
        /// When the datagram arrived.
        public var arrivedAt: MediaTime
        /// The payload without padding. Valid until `release`.
        public var payload: UnsafeRawBufferPointer
    }

    /// A packet or a message that was read.
    public enum Item {
        /// A packet of the source that was announced last.
        case packet(Packet)
        /// A message about a recording.
        case message(recording: UInt32, RecordingMessage)
    }

    /// Returns the next item; nil if there is none.
    public func next() -> Item? {
        while let item = reader.next() {
            switch item {
            case .packet(let record):
                let (record, packet) = (record.pointee, record.pointee.packet)
                return .packet(
                    Packet(
                        recording: record.track, isVideo: record.feed >= 0, number: packet.sequence,
                        timestamp: packet.packet.timestamp, marker: packet.packet.marker, arrivedAt: record.arrivedAt,
                        payload: packet.payload))
            case .message(.recorded(let id, let message)): return .message(recording: id, message)
            case .message: continue
            }
        }
        return nil
    }

    /// Lets the router reuse the memory of everything that was read.
    public func release() { reader.release() }
}

/// A router's end of a ring.
final class RecordingWriter {
    let ring: RecordingRing
    private let writer: PipeRingWriter
    private let output: RouterOutput

    init(_ ring: RecordingRing, output: RouterOutput) {
        (self.ring, self.output) = (ring, output)
        writer = PipeRingWriter(ring.ring)
    }

    /// The time of the router's owner.
    var now: MediaTime { output.now }

    func send(_ message: RecordingMessage, of recording: UInt32) {
        // Reports repeat, so they need no place in a ring that is full.
        if case .report = message { return writer.writeIfRoom(.recorded(recording, message)) }
        writer.write(.recorded(recording, message))
    }

    /// - Parameter isVideo: stored as the feed, because a recording has one feed at a time.
    func send(_ packet: FeedPacket, isVideo: Bool, of recording: UInt32, arrivedAt: MediaTime) {
        if writer.write(packet, track: recording, feed: isVideo ? 0 : -1, arrivedAt: arrivedAt) {
            output.counters.packetsRecorded &+= 1
        } else {
            output.counters.recordingPacketsDropped &+= 1
        }
    }

    /// Makes everything that was sent visible to the recorder, which looks regularly and needs no wake-up.
    func commit() { _ = writer.commit() }
}

extension Router {
    /// Records a stream: passes its packets to a ring until `stopRecording`, or until the stream ends.
    ///
    /// Routers of several event loops all get this call. The one that serves the publisher sends the packets, and each ends with
    /// `RecordingMessage.ended`.
    /// - Parameters:
    ///   - id: the recording's id in the ring. Must not be in use.
    ///   - ring: always the same one for a router.
    public func record(_ stream: Key, as id: UInt32, _ request: RecordingRequest, into ring: RecordingRing) {
        let writer = recordings ?? RecordingWriter(ring, output: output)
        recordings = writer
        guard writer.ring === ring else { return }
        streams.record(stream, RecordedStream(id, request, writer))
    }

    /// Stops a recording. Does nothing if it has ended.
    public func stopRecording(_ stream: Key, _ id: UInt32) { streams.stopRecording(stream, id) }

    /// Requests a keyframe of the video that is recorded.
    public func requestKeyframe(of stream: Key, for id: UInt32) { streams.recording(stream, id)?.requestKeyframe() }
}
