import RTC

/// Puts VP8 frames together from payloads in order (RFC 7741 §4). It begins at a keyframe, and after a loss again at
/// the next: what lies between would refer to what is missing.
public struct VP8Assembler {
    public struct Frame: Equatable, Sendable {
        public var timestamp: UInt32
        public var isKeyframe: Bool
        public var bytes: [UInt8]
    }

    /// In bytes. A keyframe of 4K takes less; more is an attack, or no VP8.
    public static let mostFrame = 4 << 20

    /// Frames are left out until a keyframe comes: ask for one.
    public private(set) var needsKeyframe = true
    private var bytes: [UInt8] = []
    /// Of the frame that is being put together, nil between two frames.
    private var timestamp: UInt32?

    public init() {}

    /// Packets are missing here.
    public mutating func skipGap() {
        drop()
        needsKeyframe = true
    }

    /// The next payload in order.
    ///
    /// - Parameters:
    ///   - payload: without padding; an empty one, which is nothing but padding, means nothing.
    ///   - marker: it is its frame's last.
    /// - Returns: the frame that it completes.
    public mutating func take(_ payload: UnsafeRawBufferPointer, timestamp: UInt32, marker: Bool) -> Frame? {
        if payload.isEmpty { return nil }
        guard let descriptor = VP8Descriptor(payload) else {
            skipGap()
            return nil
        }
        if descriptor.isFrameStart {
            // The frame before had no end.
            if self.timestamp != nil { skipGap() }
            if needsKeyframe, !descriptor.isKeyframeStart { return nil }
            needsKeyframe = false
            self.timestamp = timestamp
        }
        guard let began = self.timestamp else {
            // The rest of a frame without its beginning: nothing may refer to it.
            needsKeyframe = true
            return nil
        }
        let part = payload[descriptor.length...]
        guard began == timestamp, bytes.count + part.count <= Self.mostFrame else {
            skipGap()
            return nil
        }
        bytes.append(contentsOf: part)
        return marker ? finish(timestamp) : nil
    }

    private mutating func finish(_ timestamp: UInt32) -> Frame? {
        guard let header = bytes.withUnsafeBytes({ VP8FrameHeader($0) }) else {
            skipGap()
            return nil
        }
        let frame = Frame(timestamp: timestamp, isKeyframe: header.isKeyframe, bytes: bytes)
        drop()
        return frame
    }

    private mutating func drop() {
        timestamp = nil
        bytes.removeAll(keepingCapacity: true)
    }
}

/// Gives RTP's 32-bit timestamps their place in a count that does not wrap, however they jump.
struct TimestampUnwrapper {
    private var last: Int64?

    /// - Returns: the same modulo 2^32, and the nearest to the one before.
    mutating func unwrap(_ timestamp: UInt32) -> Int64 {
        guard let last else {
            self.last = Int64(timestamp)
            return Int64(timestamp)
        }
        let step = Int32(bitPattern: timestamp &- UInt32(truncatingIfNeeded: last))
        let next = last &+ Int64(step)
        self.last = next
        return next
    }
}
