import RTC

/// The packets of one stream in an Ogg file (RFC 3533). If there are several streams, it takes the first one whose
/// first packet starts with the given magic. Of chained streams it takes the first link.
public struct OggFile: Equatable, Sendable {
    /// Eleven hours of 20 ms packets.
    public static let maxPackets = 2_000_000
    /// Maximum packet size in bytes, which RFC 7845 §6 requires of Opus readers.
    public static let maxPacket = 61_440
    /// Maximum number of false page starts. Each costs a checksum over up to 64 kB, so the file must not choose how
    /// many there are.
    public static let maxBadPages = 100

    /// All packets concatenated, without page headers.
    public let bytes: [UInt8]
    /// Ranges of `bytes`, in order.
    public let packets: [Range<Int>]
    /// True if pages were missing or damaged, or if the file ends within a packet.
    public let isDamaged: Bool

    /// - Parameters:
    ///   - file: the whole file.
    ///   - magic: the start of the stream's first packet.
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
    /// Start in `bytes` of a packet that continues on the next page.
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
        // If the start of a packet is lost, skip the rest of it.
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
