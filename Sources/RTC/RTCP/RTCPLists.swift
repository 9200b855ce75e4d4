// The lists in RTCP packets, as views that parse their elements on demand. `RTCPCompound` creates each view from
// exactly the bytes of its list, so no view can read past the end of the datagram.

extension RTCP {
    /// The report blocks of a packet, at most 31 (RFC 3550 §6.4.1).
    public struct ReportBlocks: Sequence, IteratorProtocol {
        private var reader: ByteReader

        init(_ bytes: UnsafeRawBufferPointer) { reader = ByteReader(bytes) }

        /// The number of blocks not yet read.
        public var count: Int { reader.remaining / ReportBlock.length }

        public mutating func next() -> ReportBlock? {
            guard reader.remaining >= ReportBlock.length, let ssrc = reader.u32(), let fraction = reader.u8(),
                let lost = reader.u24(), let highest = reader.u32(), let jitter = reader.u32(),
                let lastReport = reader.u32(), let delay = reader.u32()
            else { return nil }
            return ReportBlock(
                ssrc: ssrc, fractionLost: fraction, lost: Int32(bitPattern: lost << 8) >> 8,
                highestSequenceNumber: highest, jitter: jitter, lastSenderReport: lastReport,
                delaySinceLastSenderReport: delay)
        }
    }

    /// A list of SSRCs.
    public struct Sources: Sequence, IteratorProtocol {
        private var reader: ByteReader

        init(_ bytes: UnsafeRawBufferPointer) { reader = ByteReader(bytes) }

        /// The number of SSRCs not yet read.
        public var count: Int { reader.remaining / 4 }

        public mutating func next() -> UInt32? { reader.u32() }
    }

    /// The sequence numbers in a NACK. Each item in the packet is one number and a bit for each of the 16 numbers after it (RFC
    /// 4585 §6.2.1). Numbers may appear more than once.
    public struct LostSequenceNumbers: Sequence, IteratorProtocol {
        /// The maximum number of sequence numbers read from one NACK. Browsers track at most a thousand missing
        /// packets. A datagram could contain six times as many, and each needs a search.
        public static let most = 1_000

        private var reader: ByteReader
        private var number: UInt16 = 0
        private var mask: UInt16 = 0
        private var given = 0

        init(_ bytes: UnsafeRawBufferPointer) { reader = ByteReader(bytes) }

        public mutating func next() -> UInt16? {
            guard given < Self.most else { return nil }
            if mask == 0 {
                guard let first = reader.u16(), let following = reader.u16() else { return nil }
                (number, mask) = (first, following)
            } else {
                let step = UInt16(truncatingIfNeeded: mask.trailingZeroBitCount) + 1
                number &+= step
                mask = step < 16 ? mask >> step : 0
            }
            given += 1
            return number
        }
    }

    /// The chunks of a source description. Only the CNAME is read (RFC 3550 §6.5.1).
    public struct SourceDescription: Sequence, IteratorProtocol {
        private static let end: UInt8 = 0
        private static let cname: UInt8 = 1

        /// The description of one source.
        public struct Chunk {
            public var ssrc: UInt32
            /// The source's CNAME in UTF-8, at most 255 bytes; nil if the chunk contains none.
            public var cname: UnsafeRawBufferPointer?
        }

        private var reader: ByteReader
        private var left: Int

        /// Returns nil if the chunks are truncated.
        init?(_ bytes: UnsafeRawBufferPointer, count: Int) {
            reader = ByteReader(bytes)
            left = count
            var trial = self
            while trial.left > 0 { if trial.next() == nil { return nil } }
        }

        public mutating func next() -> Chunk? {
            guard left > 0, let ssrc = reader.u32() else { return nil }
            var chunk = Chunk(ssrc: ssrc, cname: nil)
            while let type = reader.u8() {
                guard type != Self.end else {
                    // A chunk ends with one or more zeros, at a word boundary. Skip them.
                    guard reader.skip((4 - reader.position & 3) & 3) else { return nil }
                    left -= 1
                    return chunk
                }
                guard let length = reader.u8(), let text = reader.take(Int(length)) else { return nil }
                if type == Self.cname, chunk.cname == nil { chunk.cname = text }
            }
            return nil
        }
    }
}

extension RTCP.FullIntraRequest {
    /// The entries of a full intra request, one for each source.
    public struct Entries: Sequence, IteratorProtocol {
        private var reader: ByteReader

        init(_ bytes: UnsafeRawBufferPointer) { reader = ByteReader(bytes) }

        public mutating func next() -> Entry? {
            guard let ssrc = reader.u32(), let number = reader.u8(), reader.skip(3) else { return nil }
            return Entry(ssrc: ssrc, sequenceNumber: number)
        }
    }
}
