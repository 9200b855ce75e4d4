/// The element ids of EBML and Matroska that recordings use (RFC 8794 §11, RFC 9559 §5.1). Each includes its length marker.
enum EBMLID {
    static let header: UInt32 = 0x1a45_dfa3
    static let segment: UInt32 = 0x1853_8067
    static let void: UInt32 = 0xec
    static let seekHead: UInt32 = 0x114d_9b74
    static let seek: UInt32 = 0x4dbb
    static let seekID: UInt32 = 0x53ab
    static let seekPosition: UInt32 = 0x53ac
    static let info: UInt32 = 0x1549_a966
    static let duration: UInt32 = 0x4489
    static let tracks: UInt32 = 0x1654_ae6b
    static let trackEntry: UInt32 = 0xae
    static let trackNumber: UInt32 = 0xd7
    static let codec: UInt32 = 0x86
    static let configuration: UInt32 = 0x63a2
    static let video: UInt32 = 0xe0
    static let pixelWidth: UInt32 = 0xb0
    static let pixelHeight: UInt32 = 0xba
    static let cluster: UInt32 = 0x1f43_b675
    static let timestamp: UInt32 = 0xe7
    static let simpleBlock: UInt32 = 0xa3
    static let cues: UInt32 = 0x1c53_bb6b
}

/// Encodes EBML elements (RFC 8794 §4 to §7).
enum EBML {
    /// The eight bytes of a size that is not known yet (RFC 8794 §6.2). A size that `fixedSize` returns fits in its place.
    static let unknownSize: [UInt8] = [0x01, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff]

    /// Returns an id as it is written: big-endian, without leading zeros.
    static func id(_ id: UInt32) -> [UInt8] {
        bigEndian(UInt64(id), count: max(1, (32 - id.leadingZeroBitCount + 7) / 8))
    }

    /// Returns a size in as few bytes as possible.
    static func size(_ size: Int) -> [UInt8] {
        var count = 1
        // All ones mean an unknown size.
        while count < 8, size >= (1 << (7 * count)) - 1 { count += 1 }
        var bytes = bigEndian(UInt64(size), count: count)
        bytes[0] |= 0x80 >> UInt8(count - 1)
        return bytes
    }

    /// Returns a size in eight bytes.
    static func fixedSize(_ size: Int64) -> [UInt8] { [0x01] + bigEndian(UInt64(size), count: 7) }

    static func element(_ id: UInt32, _ content: [UInt8]) -> [UInt8] { self.id(id) + size(content.count) + content }

    /// Returns an element with an unsigned number in as few bytes as possible, at least one.
    static func unsigned(_ id: UInt32, _ value: UInt64) -> [UInt8] {
        element(id, bigEndian(value, count: max(1, (64 - value.leadingZeroBitCount + 7) / 8)))
    }

    static func text(_ id: UInt32, _ text: String) -> [UInt8] { element(id, Array(text.utf8)) }

    static func float(_ id: UInt32, _ value: Double) -> [UInt8] {
        element(id, bigEndian(value.bitPattern, count: 8))
    }

    /// Returns an element of this length in all, which readers ignore (RFC 8794 §11.3.2).
    ///
    /// - Parameter length: in bytes, at least 2.
    static func void(length: Int) -> [UInt8] {
        // A size of one byte is enough for most; the size of eight bytes fits where it is not.
        let size = length - 2 < 127 ? self.size(length - 2) : fixedSize(Int64(length - 9))
        return id(EBMLID.void) + size + [UInt8](repeating: 0, count: length - 1 - size.count)
    }

    static func bigEndian(_ value: UInt64, count: Int) -> [UInt8] {
        (0..<count).reversed().map { UInt8(truncatingIfNeeded: value >> UInt64(8 * $0)) }
    }
}

/// The id and size of an EBML element, parsed.
struct EBMLElement: Equatable {
    var id: UInt32
    /// The size of the content in bytes; nil if it is unknown.
    var size: Int64?
    /// The length of id and size in bytes.
    var headerLength: Int

    /// Parses the start of an element. Returns nil if the bytes end before the content, or are not an element.
    init?(_ bytes: some Collection<UInt8>) {
        var rest = bytes[...]
        // Ids have at most four bytes (RFC 8794 §5).
        guard let first = rest.popFirst(), first >= 0x10 else { return nil }
        let idLength = first.leadingZeroBitCount + 1
        var id = UInt32(first)
        for _ in 1..<idLength {
            guard let byte = rest.popFirst() else { return nil }
            id = id << 8 | UInt32(byte)
        }
        guard let marked = rest.popFirst(), marked != 0 else { return nil }
        let sizeLength = marked.leadingZeroBitCount + 1
        var size = UInt64(marked) & (0xff >> UInt64(sizeLength))
        for _ in 1..<sizeLength {
            guard let byte = rest.popFirst() else { return nil }
            size = size << 8 | UInt64(byte)
        }
        self.id = id
        self.size = size == (1 << UInt64(7 * sizeLength)) - 1 ? nil : Int64(size)
        headerLength = idLength + sizeLength
    }
}
