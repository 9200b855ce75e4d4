import RTC

/// The packets of one stream in an Ogg file (RFC 3533). If the file has several streams, reads the first one whose
/// initial packet starts with the given magic bytes. If it has a chain of such streams, one after the other, reads
/// only the first.
public struct OggFile: Equatable, Sendable {
    /// The maximum number of packets, eleven hours of 20 ms packets.
    public static let maxPackets = 2_000_000
    /// The maximum size of a packet in bytes. RFC 7845 §6 recommends that readers reject larger audio packets.
    public static let maxPacket = 61_440
    /// The maximum number of false page starts. Each of them costs a checksum over up to 64 kB, so a file could
    /// otherwise take a very long time to read.
    public static let maxBadPages = 100

    /// The contents of all packets, one after the other, without page headers.
    public let bytes: [UInt8]
    /// The ranges of the packets in `bytes`, in order.
    public let packets: [Range<Int>]
    /// Whether pages were missing or damaged, or the file ends within a packet.
    public let isDamaged: Bool

    /// - Parameters:
    ///   - file: the contents of the file.
    ///   - magic: the bytes at the start of the stream's first packet.
    public init(_ file: UnsafeRawBufferPointer, startingWith magic: [UInt8]) throws(MediaFileError) {
        guard file.count >= 4, file.prefix(4).elementsEqual(OggPage.signature) else {
            throw MediaFileError(.notThisFormat, "is not an Ogg file")
        }
        var assembly = OggPacketAssembly()
        var serial: UInt32?
        var bad = 0
        var offset = 0
        scan: while offset < file.count {
            guard let page = OggPage(in: file, at: offset) else {
                bad += 1
                guard bad <= Self.maxBadPages else {
                    throw MediaFileError(.damaged, "is an Ogg file with more than \(Self.maxBadPages) damaged pages")
                }
                offset = Self.nextSignature(in: file, after: offset)
                continue
            }
            offset = page.body.upperBound
            if serial == nil, page.isFirst, !page.continues, file[page.body].starts(with: magic) {
                serial = page.serial
            }
            guard page.serial == serial else { continue }
            try assembly.take(page, in: file)
            if page.isLast { break scan }
        }
        guard serial != nil else {
            throw MediaFileError(.otherCodec, "is an Ogg file without a stream of the requested codec")
        }
        guard let first = assembly.packets.first, assembly.bytes[first].starts(with: magic) else {
            throw MediaFileError(.damaged, "is an Ogg file that ends, or is damaged, in its first packet")
        }
        bytes = assembly.bytes
        packets = assembly.packets
        isDamaged = bad > 0 || assembly.isDamaged || assembly.isWithinPacket
    }

    private static func nextSignature(in file: UnsafeRawBufferPointer, after offset: Int) -> Int {
        var next = offset + 1
        while next + 4 <= file.count {
            if file[next] == 0x4f, file[next..<next + 4].elementsEqual(OggPage.signature) { return next }
            next += 1
        }
        return file.count
    }
}

/// Reassembles packets from the pages of one stream.
private struct OggPacketAssembly {
    var bytes: [UInt8] = []
    var packets: [Range<Int>] = []
    var isDamaged = false
    /// The offset in `bytes` of the packet that continues on the next page; nil if no packet does.
    private var start: Int?
    private var nextSequence: UInt32?

    var isWithinPacket: Bool { start != nil }

    mutating func take(_ page: OggPage, in file: UnsafeRawBufferPointer) throws(MediaFileError) {
        let isNext = nextSequence == nil || nextSequence == page.sequence
        nextSequence = page.sequence &+ 1
        if !isNext { isDamaged = true }
        if let start, !isNext || !page.continues {
            isDamaged = true
            bytes.removeSubrange(start...)
            self.start = nil
        }
        // Skip the rest of a packet whose start was lost.
        var isSkipping = page.continues && start == nil
        var position = page.body.lowerBound
        for segment in page.segments {
            let length = Int(file[segment])
            let range = position..<position + length
            position = range.upperBound
            let isEnd = length < OggPage.fullSegment
            if isSkipping {
                isDamaged = true
                isSkipping = !isEnd
                continue
            }
            try append(file[range], isEnd: isEnd)
        }
    }

    private mutating func append(_ segment: Slice<UnsafeRawBufferPointer>, isEnd: Bool) throws(MediaFileError) {
        let start = start ?? bytes.count
        bytes.append(contentsOf: segment)
        guard bytes.count - start <= OggFile.maxPacket else {
            throw MediaFileError(.tooLarge, "has a packet of more than \(OggFile.maxPacket) bytes")
        }
        guard isEnd else {
            self.start = start
            return
        }
        self.start = nil
        guard packets.count < OggFile.maxPackets else {
            throw MediaFileError(.tooLarge, "has more than \(OggFile.maxPackets) packets; cut it")
        }
        packets.append(start..<bytes.count)
    }
}
