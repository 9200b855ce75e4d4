import RTC

/// One frame of a synthetic camera. To a receiver that does not decode it, it looks like VP8.
struct SyntheticPicture {
    /// A temporal layer of the frame.
    struct TemporalLayer: Hashable, Sendable {
        /// The layer: 0 or 1.
        var index: UInt8
        /// The number of the last frame of layer 0 (TL0PICIDX).
        var base: UInt8
    }

    /// The offset at which the packets of any frame have room for other content: behind the longest descriptor, and behind
    /// the header of a keyframe.
    static let contentOffset = 16
    /// The length of the descriptor of a frame with a temporal layer.
    static let layeredDescriptorLength = 6

    /// The picture ID, of which 15 bits are sent.
    var number: UInt16
    var isKeyframe: Bool
    var width: UInt16 = 640
    var height: UInt16 = 360
    /// The temporal layer; nil if the stream has only one.
    var layer: TemporalLayer?

    /// Writes the descriptor of one of the frame's packets (RFC 7741 §4.2). In the frame's first packet, also writes the
    /// header of the frame (RFC 6386 §9.1).
    func describe(isStart: Bool, to memory: UnsafeMutableRawBufferPointer) {
        memory[0] = isStart ? 0x90 : 0x80
        // The extension contains the picture ID, and TL0PICIDX and TID if there are layers.
        memory[1] = layer == nil ? 0x80 : 0xe0
        memory[2] = 0x80 | UInt8(truncatingIfNeeded: number >> 8)
        memory[3] = UInt8(truncatingIfNeeded: number)
        var end = 4
        if let layer {
            memory[4] = layer.base
            memory[5] = layer.index << 6
            end = Self.layeredDescriptorLength
        }
        guard isStart else { return }
        // The lowest bit is 0 in keyframes. The size of the first partition follows it.
        (memory[end], memory[end + 1], memory[end + 2]) = (isKeyframe ? 0x10 : 0x11, 2, 0)
        guard isKeyframe else { return }
        (memory[end + 3], memory[end + 4], memory[end + 5]) = (0x9d, 0x01, 0x2a)
        (memory[end + 6], memory[end + 7]) = (UInt8(truncatingIfNeeded: width), UInt8(truncatingIfNeeded: width >> 8))
        (memory[end + 8], memory[end + 9]) = (UInt8(truncatingIfNeeded: height), UInt8(truncatingIfNeeded: height >> 8))
    }
}
