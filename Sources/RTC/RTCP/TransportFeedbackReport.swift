/// What a receiver says of the packets of a transport: a view of a feedback packet that `TransportFeedback` or somebody
/// like it wrote (draft-holmer-rmcat-transport-wide-cc-extensions-01 §3.1).
public struct TransportFeedbackReport {
    /// A packet that tells of more is not believed: two bytes claim as many as 8191, and we remember no more than this.
    public static let mostStatuses = 8_192
    private static let fixedLength = 8

    public let sender: UInt32
    public let media: UInt32
    public let baseSequenceNumber: UInt16
    /// How many packets it tells of, from the base on.
    public let statusCount: Int
    /// In 64 ms, 24 bits with a sign, of a clock whose origin is the receiver's own.
    public let referenceTime: Int32
    /// Goes up by one with each packet of feedback.
    public let feedbackCount: UInt8

    private let chunks: UnsafeRawBufferPointer
    private let deltas: UnsafeRawBufferPointer

    /// Nil if there are fewer chunks or deltas than it says, no statuses, or too many.
    ///
    /// - Parameter body: what follows the two SSRCs; must outlive this.
    init?(sender: UInt32, media: UInt32, body: UnsafeRawBufferPointer) {
        var reader = ByteReader(body)
        guard let base = reader.u16(), let count = reader.u16(), let time = reader.u24(), let number = reader.u8(),
            (1...Self.mostStatuses).contains(Int(count))
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

    /// Every packet that it tells of, in order.
    ///
    /// - Parameter body: is given when the packet arrived by the receiver's clock, which wraps after 12.4 days; nil for
    ///   one that did not arrive.
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

    /// 16 bits that say the status of one packet or of many (§3.1.2 to §3.1.4).
    private struct Chunk {
        let bits: UInt16

        init(_ bits: UInt16) { self.bits = bits }

        private var isRun: Bool { bits & 0x8000 == 0 }
        private var isTwoBit: Bool { bits & 0x4000 != 0 }

        var count: Int { isRun ? max(Int(bits & 0x1fff), 0) : isTwoBit ? 7 : 14 }

        /// - Parameter index: 0..<count.
        /// - Returns: 0 not received, 1 a small delta, 2 a large one; 3, which is reserved, has no delta.
        func status(_ index: Int) -> Int {
            if isRun { return Int(bits >> 13 & 3) }
            return isTwoBit ? Int(bits >> UInt16(12 - index * 2) & 3) : Int(bits >> UInt16(13 - index) & 1)
        }

        func deltaBytes(ofFirst count: Int) -> Int {
            if isRun { return count * Self.deltaBytes(status(0)) }
            return (0..<count).reduce(0) { $0 + Self.deltaBytes(status($1)) }
        }

        private static func deltaBytes(_ status: Int) -> Int { status == 3 ? 0 : status }
    }
}
