import RTC

/// Assembles H.264 access units from payloads in order (RFC 6184 §5, non-interleaved mode), in the form of Matroska files: each NAL
/// unit is preceded by its length in four bytes.
///
/// Parameter sets are in the file's header, the `AVCDecoderConfigurationRecord`, and stay in the frames too. A frame with other
/// sets has another header, so it belongs into another file.
struct H264Assembler: FrameAssembler {
    /// The maximum size of a frame in bytes, as for VP8.
    static let maxFrame = VP8Assembler.maxFrame
    /// The maximum number of NAL units in a frame. Browsers send one slice per frame, and encoders at most one per row.
    static let maxUnits = 1_024

    private enum UnitType {
        static let idrSlice: UInt8 = 5
        static let sequenceParameterSet: UInt8 = 7
        static let pictureParameterSet: UInt8 = 8
        static let delimiter: UInt8 = 9
        static let filler: UInt8 = 12
        static let singleTimeAggregation: UInt8 = 24
        static let fragment: UInt8 = 28
    }

    private(set) var needsKeyframe = true
    private var bytes: [UInt8] = []
    private var units = 0
    private var timestamp: UInt32?
    private var hasIDRSlice = false
    /// Where the NAL unit that is received in fragments begins in `bytes`; nil if there is none.
    private var fragmentStart: Int?
    private var sequence: [UInt8] = []
    private var picture: [UInt8] = []
    private var configuration: [UInt8]?

    mutating func skipGap() {
        drop()
        needsKeyframe = true
    }

    mutating func assemble(_ payload: UnsafeRawBufferPointer, timestamp: UInt32, marker: Bool) -> AssembledFrame? {
        guard let first = payload.first else { return nil }
        if let current = self.timestamp, current != timestamp {
            // The end of the previous frame is missing, or it had no marker.
            skipGap()
        }
        self.timestamp = timestamp
        guard take(payload, first) else {
            skipGap()
            return nil
        }
        return marker ? finish(timestamp) : nil
    }

    /// - Returns: false if the payload is malformed or does not continue the previous one.
    private mutating func take(_ payload: UnsafeRawBufferPointer, _ first: UInt8) -> Bool {
        switch first & 0x1f {
        case 1...23:
            guard fragmentStart == nil else { return false }
            return append(payload)
        case UnitType.singleTimeAggregation:
            guard fragmentStart == nil else { return false }
            return takeAggregated(payload)
        case UnitType.fragment: return takeFragment(payload, first)
        default: return false
        }
    }

    private mutating func takeAggregated(_ payload: UnsafeRawBufferPointer) -> Bool {
        var reader = ByteReader(payload)
        guard reader.skip(1), !reader.isAtEnd else { return false }
        while !reader.isAtEnd {
            guard let size = reader.u16(), let unit = reader.take(Int(size)), append(unit) else { return false }
        }
        return true
    }

    private mutating func takeFragment(_ payload: UnsafeRawBufferPointer, _ first: UInt8) -> Bool {
        guard payload.count > 2 else { return false }
        let header = payload[1]
        let (isStart, isEnd) = (header & 0x80 != 0, header & 0x40 != 0)
        guard isStart == (fragmentStart == nil) else { return false }
        if isStart {
            guard hasRoom(for: payload.count) else { return false }
            fragmentStart = bytes.count
            bytes += [0, 0, 0, 0, first & 0xe0 | header & 0x1f]
        }
        guard let start = fragmentStart, hasRoom(for: payload.count) else { return false }
        bytes.append(contentsOf: payload[2...])
        guard isEnd else { return true }
        fragmentStart = nil
        let length = UInt32(bytes.count - start - 4)
        for index in 0..<4 { bytes[start + index] = UInt8(truncatingIfNeeded: length >> UInt32(24 - 8 * index)) }
        note(bytes[start + 4], bytes[(start + 4)...])
        return true
    }

    private func hasRoom(for count: Int) -> Bool {
        bytes.count + count + 8 <= Self.maxFrame && units < Self.maxUnits
    }

    private mutating func append(_ unit: UnsafeRawBufferPointer) -> Bool {
        guard let first = unit.first, hasRoom(for: unit.count) else { return false }
        let type = first & 0x1f
        // Matroska's frames need no delimiters, and fillers carry nothing.
        guard type != UnitType.delimiter, type != UnitType.filler else { return true }
        bytes += EBML.bigEndian(UInt64(unit.count), count: 4)
        bytes.append(contentsOf: unit)
        note(first, unit)
        return true
    }

    private mutating func note(_ first: UInt8, _ unit: some Collection<UInt8>) {
        units += 1
        switch first & 0x1f {
        case UnitType.idrSlice: hasIDRSlice = true
        case UnitType.sequenceParameterSet where unit.count <= WebMHeader.maxConfiguration: sequence = Array(unit)
        case UnitType.pictureParameterSet where unit.count <= WebMHeader.maxConfiguration: picture = Array(unit)
        default: break
        }
    }

    private mutating func finish(_ timestamp: UInt32) -> AssembledFrame? {
        guard fragmentStart == nil else {
            skipGap()
            return nil
        }
        let (frame, isKeyframe) = (bytes, hasIDRSlice)
        drop()
        guard !frame.isEmpty else { return nil }
        if isKeyframe { configuration = H264Configuration.record(sequence: sequence, picture: picture) }
        if needsKeyframe, !isKeyframe { return nil }
        guard let configuration else {
            needsKeyframe = true
            return nil
        }
        needsKeyframe = false
        return AssembledFrame(
            timestamp: timestamp, isKeyframe: isKeyframe, bytes: frame, video: .h264(configuration: configuration))
    }

    private mutating func drop() {
        bytes.removeAll(keepingCapacity: true)
        (units, timestamp, hasIDRSlice, fragmentStart) = (0, nil, false, nil)
    }
}
