import RTC

/// The packets of one stream in an Ogg file (RFC 3533). Of several streams it takes the first whose first packet begins
/// as asked, and of a chain of them the first link.
public struct OggFile: Equatable, Sendable {
    /// Eleven hours of packets of 20 ms.
    public static let mostPackets = 2_000_000
    /// In bytes: what RFC 7845 §6 asks a reader of Opus to take.
    public static let mostPacket = 61_440
    /// Places that look like a page and are none; each costs a checksum over up to 64 kB, which a file must not ask for
    /// at will.
    public static let mostBadPages = 100

    /// All packets one after the other, without what is between them in the file.
    public let bytes: [UInt8]
    /// Of `bytes`, in order.
    public let packets: [Range<Int>]
    /// Pages were missing or damaged, or the file ends within a packet.
    public let isDamaged: Bool

    /// - Parameters:
    ///   - file: the whole file.
    ///   - magic: what the stream's first packet begins with.
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
                guard bad <= Self.mostBadPages else {
                    throw MediaFileError(.damaged, "is an Ogg file with more than \(Self.mostBadPages) damaged pages")
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
            throw MediaFileError(.otherCodec, "is an Ogg file without a stream of the kind wanted")
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

/// Puts packets together from the pages of one stream.
private struct OggPacketAssembly {
    var bytes: [UInt8] = []
    var packets: [Range<Int>] = []
    var isDamaged = false
    /// Where in `bytes` the packet begins that the next page continues, if there is one.
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
        // Of a packet whose beginning is lost the rest is skipped.
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
        guard bytes.count - start <= OggFile.mostPacket else {
            throw MediaFileError(.tooLarge, "has a packet of more than \(OggFile.mostPacket) bytes")
        }
        guard isEnd else {
            self.start = start
            return
        }
        self.start = nil
        guard packets.count < OggFile.mostPackets else {
            throw MediaFileError(.tooLarge, "has more than \(OggFile.mostPackets) packets; cut it")
        }
        packets.append(start..<bytes.count)
    }
}
