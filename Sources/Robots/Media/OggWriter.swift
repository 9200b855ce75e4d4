/// Writes pages of one stream (RFC 3533). Whole packets only: each page ends with one, so that a file whose writer was
/// killed is good up to its last page.
public struct OggWriter {
    /// In bytes: the longest packet that one page can hold.
    public static let mostPacket = OggPage.mostSegments * OggPage.fullSegment - 1

    private let serial: UInt32
    private var sequence: UInt32 = 0
    private var lacing: [UInt8] = []
    private var body: [UInt8] = []
    private var granulePosition: UInt64 = 0

    /// - Parameter serial: names the stream in its file; any number.
    public init(serial: UInt32) { self.serial = serial }

    public var isPageEmpty: Bool { lacing.isEmpty }

    /// Whether the packet fits on the page that is being filled.
    public func hasRoom(for packet: UnsafeRawBufferPointer) -> Bool {
        lacing.count + packet.count / OggPage.fullSegment + 1 <= OggPage.mostSegments
    }

    /// Adds a packet to the page that is being filled. One for which there is no room is left out, and the answer is
    /// false.
    ///
    /// - Parameter granulePosition: of the stream where this packet ends.
    @discardableResult
    public mutating func append(_ packet: UnsafeRawBufferPointer, granulePosition: UInt64) -> Bool {
        guard hasRoom(for: packet) else { return false }
        lacing += [UInt8](repeating: 255, count: packet.count / OggPage.fullSegment)
        lacing.append(UInt8(packet.count % OggPage.fullSegment))
        body.append(contentsOf: packet)
        self.granulePosition = granulePosition
        return true
    }

    /// The page with what was added, after which an empty one begins.
    ///
    /// - Parameter isLast: the stream ends with it. Such a page may be empty.
    public mutating func page(isLast: Bool = false) -> [UInt8] {
        var page = OggPage.signature
        page.append(0)
        page.append((sequence == 0 ? OggPage.beginsFlag : 0) | (isLast ? OggPage.endsFlag : 0))
        page.append(littleEndian: granulePosition)
        page.append(littleEndian: serial)
        page.append(littleEndian: sequence)
        page.append(littleEndian: UInt32(0))
        page.append(UInt8(lacing.count))
        page += lacing
        page += body
        let checksum = page.withUnsafeBytes { OggChecksum.of(page: $0) }
        for index in 0..<4 { page[22 + index] = UInt8(truncatingIfNeeded: checksum >> UInt32(8 * index)) }
        sequence &+= 1
        lacing.removeAll(keepingCapacity: true)
        body.removeAll(keepingCapacity: true)
        return page
    }
}
