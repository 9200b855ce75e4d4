import RTC

/// Assembles AV1 temporal units from payloads in order (RTP Payload Format For AV1 §4), in the form of Matroska files: each unit
/// has its size, and units that carry nothing for decoders are left out.
struct AV1Assembler: FrameAssembler {
    /// The maximum size of a frame in bytes, as for VP8.
    static let maxFrame = VP8Assembler.maxFrame

    private(set) var needsKeyframe = true
    private var bytes: [UInt8] = []
    private var timestamp: UInt32?
    private var isKeyframe = false
    /// The beginning of a unit that continues in the next packet; nil if there is none.
    private var fragment: [UInt8]?
    /// The parameters of the newest sequence header. A file has one.
    private var configuration: [UInt8]?

    mutating func skipGap() {
        drop()
        needsKeyframe = true
    }

    mutating func assemble(_ payload: UnsafeRawBufferPointer, timestamp: UInt32, marker: Bool) -> AssembledFrame? {
        if payload.isEmpty { return nil }
        guard let header = AV1AggregationHeader(payload) else {
            skipGap()
            return nil
        }
        if let current = self.timestamp, current != timestamp { skipGap() }
        if self.timestamp == nil {
            guard !header.continues, !needsKeyframe || header.isKeyframeStart else {
                needsKeyframe = true
                return nil
            }
            (self.timestamp, isKeyframe) = (timestamp, header.isKeyframeStart)
        }
        guard header.continues == (fragment != nil), take(payload.dropFirst(), header) else {
            skipGap()
            return nil
        }
        return marker ? finish(timestamp) : nil
    }

    /// - Returns: false if the payload is malformed.
    private mutating func take(_ payload: Slice<UnsafeRawBufferPointer>, _ header: AV1AggregationHeader) -> Bool {
        var (rest, count) = (payload, 0)
        while !rest.isEmpty {
            count += 1
            var length = rest.count
            // The last of a known number of elements has no length.
            if header.elements == 0 || count < Int(header.elements) {
                guard let size = AV1OBU.size(&rest), size <= rest.count else { return false }
                length = size
            }
            let element = rest.prefix(length)
            rest = rest.dropFirst(length)
            guard bytes.count + (fragment?.count ?? 0) + length + 16 <= Self.maxFrame else { return false }
            let unit = (fragment ?? []) + element
            fragment = nil
            if rest.isEmpty, header.isContinued { fragment = unit } else if !append(unit) { return false }
        }
        return header.elements == 0 || count == Int(header.elements)
    }

    private mutating func append(_ bytes: [UInt8]) -> Bool {
        guard let unit = AV1OBU(bytes) else { return false }
        switch unit.type {
        case AV1OBU.temporalDelimiter, AV1OBU.tileList, AV1OBU.padding: return true
        case AV1OBU.sequenceHeader:
            guard let record = AV1Configuration.record(sequenceHeader: unit.payload) else { return false }
            configuration = record
        default: break
        }
        self.bytes += AV1OBU.bytes(unit.header, unit.layers, unit.payload)
        return true
    }

    private mutating func finish(_ timestamp: UInt32) -> AssembledFrame? {
        guard fragment == nil, !bytes.isEmpty, let configuration else {
            skipGap()
            return nil
        }
        needsKeyframe = false
        let frame = AssembledFrame(
            timestamp: timestamp, isKeyframe: isKeyframe, bytes: bytes, video: .av1(configuration: configuration))
        drop()
        return frame
    }

    private mutating func drop() {
        bytes.removeAll(keepingCapacity: true)
        (timestamp, isKeyframe, fragment) = (nil, false, nil)
    }
}
