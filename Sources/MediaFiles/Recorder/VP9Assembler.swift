import RTC

/// Assembles VP9 pictures from payloads in order (RFC 9628 §4). All layers of a picture become one frame of the file.
struct VP9Assembler: FrameAssembler {
    /// The maximum size of a frame in bytes, as for VP8.
    static let maxFrame = VP8Assembler.maxFrame
    /// The maximum number of spatial layers in a superframe (VP9 bitstream specification, annex B).
    static let maxLayers = 8

    private(set) var needsKeyframe = true
    private var bytes: [UInt8] = []
    private var timestamp: UInt32?
    private var isKeyframe = false
    /// Where each layer of the current picture begins in `bytes`.
    private var layers: [Int] = []
    /// Whether a layer was begun and not ended.
    private var isInLayer = false

    mutating func skipGap() {
        drop()
        needsKeyframe = true
    }

    mutating func assemble(_ payload: UnsafeRawBufferPointer, timestamp: UInt32, marker: Bool) -> AssembledFrame? {
        if payload.isEmpty { return nil }
        guard let descriptor = VP9Descriptor(payload) else {
            skipGap()
            return nil
        }
        // The end of the previous picture is missing.
        if let current = self.timestamp, current != timestamp { skipGap() }
        if self.timestamp == nil {
            guard descriptor.isFrameStart, !needsKeyframe || descriptor.isKeyframeStart else {
                needsKeyframe = true
                return nil
            }
            (self.timestamp, isKeyframe) = (timestamp, descriptor.isKeyframeStart)
        }
        let part = payload[descriptor.length...]
        guard begin(descriptor), bytes.count + part.count <= Self.maxFrame else {
            skipGap()
            return nil
        }
        bytes.append(contentsOf: part)
        if descriptor.isFrameEnd { isInLayer = false }
        return marker ? finish(timestamp) : nil
    }

    /// - Returns: false if the packet does not continue the current layer.
    private mutating func begin(_ descriptor: VP9Descriptor) -> Bool {
        guard descriptor.isFrameStart else { return isInLayer }
        guard !isInLayer, layers.count < Self.maxLayers else { return false }
        layers.append(bytes.count)
        isInLayer = true
        return true
    }

    private mutating func finish(_ timestamp: UInt32) -> AssembledFrame? {
        guard !isInLayer, !bytes.isEmpty else {
            skipGap()
            return nil
        }
        if layers.count > 1 { appendIndex() }
        let frame = AssembledFrame(timestamp: timestamp, isKeyframe: isKeyframe, bytes: bytes, video: .vp9)
        needsKeyframe = false
        drop()
        return frame
    }

    /// Makes the layers a superframe (VP9 bitstream specification, annex B), so that decoders find each of them.
    private mutating func appendIndex() {
        let sizes = zip(layers, layers.dropFirst() + [bytes.count]).map { $1 - $0 }
        let count = sizes.max().map { $0 > 0xffff ? 3 : $0 > 0xff ? 2 : 1 } ?? 1
        let marker = UInt8(0xc0 | (count - 1) << 3 | (sizes.count - 1))
        bytes.append(marker)
        for size in sizes { for index in 0..<count { bytes.append(UInt8(truncatingIfNeeded: size >> (8 * index))) } }
        bytes.append(marker)
    }

    private mutating func drop() {
        bytes.removeAll(keepingCapacity: true)
        layers.removeAll(keepingCapacity: true)
        (timestamp, isInLayer) = (nil, false)
    }
}
