/// What begins in a packet of H.264 (RFC 6184 §5.2): whether a receiver can start with it.
public struct H264Payload: Equatable, Sendable {
    private static let idrSlice: UInt8 = 5
    private static let sequenceParameterSet: UInt8 = 7
    private static let pictureParameterSet: UInt8 = 8
    private static let singleTimeAggregation: UInt8 = 24
    private static let fragment: UInt8 = 28

    public private(set) var hasSequenceParameterSet = false
    public private(set) var hasPictureParameterSet = false
    /// A slice of a picture that refers to none begins here.
    public private(set) var hasIDRSlice = false

    /// A keyframe is its parameter sets and its slices, and begins with any of them: with the sequence parameter set,
    /// where the encoder sends it, as browsers' do.
    public var isKeyframeStart: Bool { hasSequenceParameterSet || hasPictureParameterSet || hasIDRSlice }

    /// Nil for a payload that ends too early, and for the types that non-interleaved mode does not have (RFC 6184
    /// §5.4).
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

    /// A size of two bytes before each unit (RFC 6184 §5.7.1).
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

    /// The sequence parameter set in a payload, as much of it as the packet has.
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
