import RTC

/// Assembles VP8 frames from payloads in order (RFC 7741 §4). It starts at a keyframe. After a loss it continues at
/// the next keyframe, because the frames between the loss and that keyframe refer to missing data.
public struct VP8Assembler: Sendable {
    /// A complete VP8 frame, and the RTP timestamp of its packets.
    public struct Frame: Equatable, Sendable {
        public var timestamp: UInt32
        public var isKeyframe: Bool
        public var bytes: [UInt8]
    }

    /// The maximum size of a frame in bytes. A 4K keyframe is smaller, so a larger frame is an attack or not VP8.
    public static let maxFrame = 4 << 20

    /// Whether frames are being dropped until the next keyframe. If so, the owner should request one.
    public private(set) var needsKeyframe = true
    private var bytes: [UInt8] = []
    /// The RTP timestamp of the frame being assembled; nil between frames.
    private var timestamp: UInt32?

    public init() {}

    /// Records that packets are missing at this point.
    public mutating func skipGap() {
        drop()
        needsKeyframe = true
    }

    /// Adds the next payload, in order.
    ///
    /// - Parameters:
    ///   - payload: the payload without padding. An empty one, from a packet that contains only padding, is ignored.
    ///   - marker: true for the last packet of a frame.
    /// - Returns: the frame, if this payload completes one.
    public mutating func take(_ payload: UnsafeRawBufferPointer, timestamp: UInt32, marker: Bool) -> Frame? {
        if payload.isEmpty { return nil }
        guard let descriptor = VP8Descriptor(payload) else {
            skipGap()
            return nil
        }
        if descriptor.isFrameStart {
            // If another frame starts, the previous frame is incomplete, so drop it.
            if self.timestamp != nil { skipGap() }
            if needsKeyframe, !descriptor.isKeyframeStart { return nil }
            needsKeyframe = false
            self.timestamp = timestamp
        }
        guard let began = self.timestamp else {
            // The start of this frame is missing. Wait for a keyframe, because later frames may refer to missing
            // data.
            needsKeyframe = true
            return nil
        }
        let part = payload[descriptor.length...]
        guard began == timestamp, bytes.count + part.count <= Self.maxFrame else {
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

/// Extends 32-bit RTP timestamps to numbers that do not wrap.
package struct TimestampUnwrapper: Sendable {
    private var last: Int64?

    package init() {}

    /// Extends the next timestamp.
    ///
    /// - Returns: the extended timestamp. Its low 32 bits are `timestamp`, and of all such numbers it is closest to the
    ///   previous result.
    package mutating func unwrap(_ timestamp: UInt32) -> Int64 {
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
