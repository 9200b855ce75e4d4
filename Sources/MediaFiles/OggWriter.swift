/// Writes the pages of one Ogg stream (RFC 3533). Packets never span pages, so if the writer is killed, its file is valid up to
/// the last complete page.
public struct OggWriter {
    /// The maximum size of a packet in bytes, the longest that fits on one page.
    public static let maxPacket = OggPage.maxSegments * OggPage.fullSegment - 1

    private let serial: UInt32
    private var sequence: UInt32 = 0
    private var lacing: [UInt8] = []
    private var body: [UInt8] = []
    private var granulePosition: UInt64 = 0

    /// - Parameter serial: the number that identifies the stream in its file. Any number is allowed.
    public init(serial: UInt32) { self.serial = serial }

    public var isPageEmpty: Bool { lacing.isEmpty }

    /// Returns whether the packet fits on the current page.
    public func hasRoom(for packet: UnsafeRawBufferPointer) -> Bool {
        lacing.count + packet.count / OggPage.fullSegment + 1 <= OggPage.maxSegments
    }

    /// Adds a packet to the current page. Returns false, without adding the packet, if it does not fit.
    ///
    /// - Parameter granulePosition: the position in the stream at the end of this packet.
    @discardableResult
    public mutating func append(_ packet: UnsafeRawBufferPointer, granulePosition: UInt64) -> Bool {
        guard hasRoom(for: packet) else { return false }
        lacing += [UInt8](repeating: 255, count: packet.count / OggPage.fullSegment)
        lacing.append(UInt8(packet.count % OggPage.fullSegment))
        body.append(contentsOf: packet)
        self.granulePosition = granulePosition
        return true
    }

    /// Returns the current page and starts a new one.
    ///
    /// - Parameter isLast: whether this page ends the stream. The last page may be empty.
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
