/// A view of a transport-wide feedback packet, as written by `TransportFeedback` or another implementation
/// (draft-holmer-rmcat-transport-wide-cc-extensions-01 §3.1).
public struct TransportFeedbackReport {
    /// The maximum number of statuses in an accepted packet. One chunk of two bytes can claim 8191 statuses, and
    /// `TransportFeedback` remembers no more packets than this.
    public static let maxStatuses = 8_192
    private static let fixedLength = 8

    public let sender: UInt32
    public let media: UInt32
    public let baseSequenceNumber: UInt16
    /// The number of packets in the report, starting at `baseSequenceNumber`.
    public let statusCount: Int
    /// The reference time in units of 64 ms of the receiver's clock, as a signed 24-bit number.
    public let referenceTime: Int32
    /// The feedback packet's number, which increases by one with each feedback packet.
    public let feedbackCount: UInt8

    private let chunks: UnsafeRawBufferPointer
    private let deltas: UnsafeRawBufferPointer

    /// Returns nil if chunks or deltas are truncated, or if there are no statuses or too many.
    ///
    /// - Parameter body: the bytes of the packet after the two SSRCs; must outlive this view.
    init?(sender: UInt32, media: UInt32, body: UnsafeRawBufferPointer) {
        var reader = ByteReader(body)
        guard let base = reader.u16(), let count = reader.u16(), let time = reader.u24(), let number = reader.u8(),
            (1...Self.maxStatuses).contains(Int(count))
        else { return nil }
        (self.sender, self.media) = (sender, media)
        baseSequenceNumber = base
        statusCount = Int(count)
        referenceTime = Int32(bitPattern: time << 8) >> 8
        feedbackCount = number
        var left = Int(count)
        var deltaBytes = 0
        while left > 0 {
            guard let chunk = reader.u16().map(Chunk.init) else { return nil }
            deltaBytes += chunk.deltaBytes(ofFirst: min(left, chunk.count))
            left -= min(left, chunk.count)
        }
        chunks = UnsafeRawBufferPointer(rebasing: body[Self.fixedLength..<reader.position])
        guard let deltas = reader.take(deltaBytes) else { return nil }
        self.deltas = deltas
    }

    /// Calls `body` with each packet in the report, in order.
    ///
    /// - Parameter body: receives the packet's transport-wide sequence number, and its arrival time on the receiver's
    ///   clock, which wraps after 12.4 days. The time is nil for a packet that did not arrive.
    public func forEachPacket(_ body: (_ number: UInt16, _ arrival: MediaInterval?) -> Void) {
        var chunkReader = ByteReader(chunks)
        var deltaReader = ByteReader(deltas)
        var number = baseSequenceNumber
        var ticks = Int64(referenceTime) * 256
        var left = statusCount
        while left > 0, let chunk = chunkReader.u16().map(Chunk.init) {
            for index in 0..<min(left, chunk.count) {
                switch chunk.status(index) {
                case 1: ticks += Int64(deltaReader.u8() ?? 0)
                case 2: ticks += Int64(Int16(bitPattern: deltaReader.u16() ?? 0))
                default:
                    body(number, nil)
                    number &+= 1
                    continue
                }
                body(number, MediaInterval(nanoseconds: ticks * 250_000))
                number &+= 1
            }
            left -= chunk.count
        }
    }

    /// A chunk: 16 bits with the status of one or more packets (draft-holmer-rmcat-transport-wide-cc-extensions-01 §3.1.2 to
    /// §3.1.4).
    private struct Chunk {
        let bits: UInt16

        init(_ bits: UInt16) { self.bits = bits }

        private var isRun: Bool { bits & 0x8000 == 0 }
        private var isTwoBit: Bool { bits & 0x4000 != 0 }

        var count: Int { isRun ? max(Int(bits & 0x1fff), 0) : isTwoBit ? 7 : 14 }

        /// Returns the status of one of the chunk's packets.
        ///
        /// - Parameter index: the position of the status in this chunk, in 0..<count.
        /// - Returns: 0 for not received, 1 for a small delta, 2 for a large delta, 3 for the reserved status, which has no
        ///   delta.
        func status(_ index: Int) -> Int {
            if isRun { return Int(bits >> 13 & 3) }
            return isTwoBit ? Int(bits >> UInt16(12 - index * 2) & 3) : Int(bits >> UInt16(13 - index) & 1)
        }

        func deltaBytes(ofFirst count: Int) -> Int {
            if isRun {
                let status = status(0)
                return status == 3 ? 0 : count * status
            }
            // The valid statuses are in the highest of the 14 bits. With two bits each, the high and low bits are
            // separated.
            let statuses = bits & 0x3fff & (0x3fff << UInt16(14 - count * (isTwoBit ? 2 : 1)))
            guard isTwoBit else { return statuses.nonzeroBitCount }
            let (high, low) = (statuses >> 1 & 0x1555, statuses & 0x1555)
            return (low & ~high).nonzeroBitCount + 2 * (high & ~low).nonzeroBitCount
        }
    }
}
