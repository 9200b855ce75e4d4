/// The NAL units that begin in an H.264 packet (RFC 6184 §5.2). They show whether a receiver can start with this
/// packet.
public struct H264Payload: Equatable, Sendable {
    private static let idrSlice: UInt8 = 5
    private static let sequenceParameterSet: UInt8 = 7
    private static let pictureParameterSet: UInt8 = 8
    private static let singleTimeAggregation: UInt8 = 24
    private static let fragment: UInt8 = 28

    public private(set) var hasSequenceParameterSet = false
    public private(set) var hasPictureParameterSet = false
    /// Whether an IDR slice begins in this packet.
    public private(set) var hasIDRSlice = false

    /// Whether a keyframe starts in this packet. A keyframe consists of parameter sets and slices and can begin with any of
    /// them. Browsers begin with the sequence parameter set.
    public var isKeyframeStart: Bool { hasSequenceParameterSet || hasPictureParameterSet || hasIDRSlice }

    /// Returns nil if the payload is truncated or its type is not allowed in non-interleaved mode (RFC 6184 §5.4).
    public init?(_ payload: UnsafeRawBufferPointer) {
        guard let first = payload.first else { return nil }
        let type = first & 0x1f
        switch type {
        case 1...23: note(type)
        case Self.singleTimeAggregation:
            guard noteAggregated(payload) else { return nil }
        case Self.fragment:
            guard payload.count > 2 else { return nil }
            if payload[1] & 0x80 != 0 { note(payload[1] & 0x1f) }
        default: return nil
        }
    }

    private mutating func note(_ type: UInt8) {
        switch type {
        case Self.idrSlice: hasIDRSlice = true
        case Self.sequenceParameterSet: hasSequenceParameterSet = true
        case Self.pictureParameterSet: hasPictureParameterSet = true
        default: break
        }
    }

    /// Reads an aggregation packet, which contains NAL units, each preceded by its size in two bytes (RFC 6184
    /// §5.7.1). Returns false if the packet is truncated.
    private mutating func noteAggregated(_ payload: UnsafeRawBufferPointer) -> Bool {
        var reader = ByteReader(payload)
        guard reader.skip(1), !reader.isAtEnd else { return false }
        while !reader.isAtEnd {
            guard let size = reader.u16(), let unit = reader.take(Int(size)), let first = unit.first else {
                return false
            }
            note(first & 0x1f)
        }
        return true
    }

    /// Returns the NAL unit of the sequence parameter set in a payload. Returns nil if there is none, or if it is
    /// split into fragments (FU-A).
    static func sequenceParameterSet(in payload: UnsafeRawBufferPointer) -> UnsafeRawBufferPointer? {
        guard let first = payload.first else { return nil }
        switch first & 0x1f {
        case sequenceParameterSet: return payload
        case singleTimeAggregation:
            var reader = ByteReader(payload)
            guard reader.skip(1) else { return nil }
            while let size = reader.u16(), let unit = reader.take(Int(size)), let first = unit.first {
                if first & 0x1f == sequenceParameterSet { return unit }
            }
            return nil
        default: return nil
        }
    }
}
