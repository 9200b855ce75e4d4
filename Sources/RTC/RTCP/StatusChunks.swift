/// The status of one packet in transport-wide feedback (draft-holmer-rmcat-transport-wide-cc-extensions-01 §3.1.1).
enum PacketStatus: UInt8 {
    case notReceived = 0
    case smallDelta = 1
    case largeDelta = 2

    var deltaBytes: Int { Int(rawValue) }
}

/// Packs statuses greedily into few chunks. A chunk contains a run of equal statuses, 14 one-bit statuses, or 7 two-bit
/// statuses (draft-holmer-rmcat-transport-wide-cc-extensions-01 §3.1.2 to §3.1.4).
struct StatusChunks {
    private static let maxInRun = 0x1fff
    private static let oneBitStatuses = 14
    private static let twoBitStatuses = 7

    /// The pending statuses, two bits each, the earliest in the lowest bits. Of a longer run, only the first 14 are stored.
    private var pending: UInt32 = 0
    private var count = 0
    private var isUniform = true
    private var hasLarge = false

    private var first: UInt32 { pending & 3 }

    mutating func add(_ status: PacketStatus, to writer: inout ByteWriter) {
        if !hasRoom(for: status) { writeChunk(to: &writer) }
        let bits = UInt32(status.rawValue)
        if count > 0, bits != first { isUniform = false }
        if status == .largeDelta { hasLarge = true }
        if count < Self.oneBitStatuses { pending |= bits << UInt32(count * 2) }
        count += 1
    }

    private func hasRoom(for status: PacketStatus) -> Bool {
        if count < Self.twoBitStatuses { return true }
        if isUniform, UInt32(status.rawValue) == first { return count < Self.maxInRun }
        return count < Self.oneBitStatuses && !hasLarge && status != .largeDelta
    }

    /// Writes one chunk with all pending statuses. Exception: if 8 to 13 statuses that are not all equal are pending,
    /// and the next one needs two bits, the chunk contains only the first 7.
    private mutating func writeChunk(to writer: inout ByteWriter) {
        if isUniform {
            writer.u16(UInt16(truncatingIfNeeded: first << 13 | UInt32(count)))
            self = StatusChunks()
        } else if count == Self.oneBitStatuses {
            writeOneBitChunk(to: &writer)
        } else {
            writeTwoBitChunk(to: &writer)
        }
    }

    private mutating func writeOneBitChunk(to writer: inout ByteWriter) {
        var chunk: UInt32 = 0x8000
        for index in 0..<Self.oneBitStatuses { chunk |= (pending >> UInt32(index * 2) & 1) << UInt32(13 - index) }
        writer.u16(UInt16(truncatingIfNeeded: chunk))
        self = StatusChunks()
    }

    private mutating func writeTwoBitChunk(to writer: inout ByteWriter) {
        var chunk: UInt32 = 0xc000
        for index in 0..<Self.twoBitStatuses { chunk |= (pending >> UInt32(index * 2) & 3) << UInt32(12 - index * 2) }
        writer.u16(UInt16(truncatingIfNeeded: chunk))
        let rest = (pending >> UInt32(Self.twoBitStatuses * 2), max(count - Self.twoBitStatuses, 0))
        self = StatusChunks()
        (pending, count) = rest
        for index in 0..<count where pending >> UInt32(index * 2) & 3 != first { isUniform = false }
    }

    /// Writes the pending statuses. Receivers ignore unused positions of the final chunk.
    mutating func finish(to writer: inout ByteWriter) {
        guard count > 0 else { return }
        if isUniform {
            writeChunk(to: &writer)
        } else if hasLarge {
            writeTwoBitChunk(to: &writer)
        } else {
            writeOneBitChunk(to: &writer)
        }
    }
}
