/// Writes the pages of one Ogg stream (RFC 3533). Packets never span pages, so the file of a killed writer is valid up
/// to its last page.
public struct OggWriter {
    /// The longest packet that fits on one page, in bytes.
    public static let maxPacket = OggPage.maxSegments * OggPage.fullSegment - 1

    private let serial: UInt32
    private var sequence: UInt32 = 0
    private var lacing: [UInt8] = []
    private var body: [UInt8] = []
    private var granulePosition: UInt64 = 0

    /// - Parameter serial: identifies the stream in its file; any number works.
    public init(serial: UInt32) { self.serial = serial }

    public var isPageEmpty: Bool { lacing.isEmpty }

    /// True if the packet fits on the current page.
    public func hasRoom(for packet: UnsafeRawBufferPointer) -> Bool {
        lacing.count + packet.count / OggPage.fullSegment + 1 <= OggPage.maxSegments
    }

    /// Adds a packet to the current page. Returns false, without adding it, if it does not fit.
    ///
    /// - Parameter granulePosition: position of the stream at the end of this packet.
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
    /// - Parameter isLast: marks the end of the stream. A last page may be empty.
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
