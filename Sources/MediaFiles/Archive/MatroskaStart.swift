/// What the beginning of a Matroska or WebM file says about the rest: its tracks, and when the first frame is shown.
///
/// Unlike `WebMScan`, it also reads files of other programs, and files that are still being written.
public struct MatroskaStart: Hashable, Sendable {
    /// The maximum size of the elements Info and Tracks in bytes. They are read as a whole.
    static let maxElement: Int64 = 64 << 10
    /// The maximum number of elements to look at: five minutes of audio before the first frame.
    static let maxElements = 20_000

    /// Whether there is a track of video, also if it has no blocks.
    public private(set) var hasVideo = false
    /// Whether there is a track of audio, also if it has no blocks.
    public private(set) var hasAudio = false
    /// The time of the first block of video in milliseconds; nil if none was found.
    public private(set) var firstFrame: Int64?
    /// In milliseconds; nil while the file is written.
    public private(set) var duration: Int64?

    /// The number of the track of video; nil if there is none.
    private(set) var videoTrack: UInt64?
    /// The unit of times in nanoseconds.
    private(set) var scale: UInt64 = 1_000_000
    private var clusterTime: Int64 = 0

    /// Reads the beginning of a file.
    ///
    /// - Parameters:
    ///   - size: of the file in bytes.
    ///   - read: returns bytes at an offset, or fewer if the file ends.
    /// - Returns: nil if this is not a Matroska file with a track.
    public init?(size: Int64, read: (_ offset: Int64, _ count: Int) -> [UInt8]) {
        guard let header = EBMLElement(read(0, 64)), header.id == EBMLID.header, let headerSize = header.size,
            headerSize < Self.maxElement
        else { return nil }
        var position = Int64(header.headerLength) + headerSize
        for _ in 0..<Self.maxElements {
            guard position < size else { break }
            let bytes = read(position, 64)
            guard let element = EBMLElement(bytes) else { break }
            let content = position + Int64(element.headerLength)
            if Self.parents.contains(element.id) {
                position = content
                continue
            }
            guard let length = element.size, length <= size - content else { break }
            if element.id == EBMLID.info || element.id == EBMLID.tracks {
                guard length <= Self.maxElement else { break }
                take(element.id, read(content, Int(length))[...])
                if element.id == EBMLID.tracks, !hasVideo { break }
            } else if element.id == EBMLID.timestamp {
                let time = Self.unsigned(bytes.dropFirst(element.headerLength).prefix(Int(min(length, 8))))
                clusterTime = Int64(clamping: time.map { min($0, 1 << 40) } ?? 0)
            } else if element.id == EBMLID.simpleBlock || element.id == 0xa1 {
                takeBlock(bytes.dropFirst(element.headerLength))
                if firstFrame != nil { break }
            }
            position = content + length
        }
        guard hasVideo || hasAudio else { return nil }
    }

    /// Segment, Cluster and BlockGroup, whose children are read one after another.
    private static let parents: Set<UInt32> = [EBMLID.segment, EBMLID.cluster, 0xa0]

    private mutating func take(_ id: UInt32, _ bytes: ArraySlice<UInt8>) {
        var length: Double?
        Self.children(bytes) { child, content in
            switch (id, child) {
            case (EBMLID.tracks, EBMLID.trackEntry): takeTrack(content)
            // TimestampScale, in nanoseconds.
            case (EBMLID.info, 0x2ad7b1): scale = max(1, Self.unsigned(content.prefix(8)) ?? scale)
            case (EBMLID.info, EBMLID.duration): length = Self.float(content)
            default: break
            }
        }
        if let length, length.isFinite, length >= 0 { duration = milliseconds(length) }
    }

    private mutating func takeTrack(_ bytes: ArraySlice<UInt8>) {
        var (number, kind): (UInt64?, UInt64?) = (nil, nil)
        Self.children(bytes) { child, content in
            if child == EBMLID.trackNumber { number = Self.unsigned(content.prefix(8)) }
            if child == 0x83 { kind = Self.unsigned(content.prefix(8)) }
        }
        // TrackType (RFC 9559 §5.1.4.1.3).
        if kind == 1, !hasVideo { (hasVideo, videoTrack) = (true, number) }
        if kind == 2 { hasAudio = true }
    }

    private mutating func takeBlock(_ bytes: ArraySlice<UInt8>) {
        // A track number of more than one byte is not from a recorder of a call.
        guard bytes.count >= 3, let first = bytes.first, first & 0x80 != 0, UInt64(first & 0x7f) == videoTrack else {
            return
        }
        let offset = Int16(
            bitPattern: UInt16(bytes[bytes.startIndex + 1]) << 8 | UInt16(bytes[bytes.startIndex + 2]))
        firstFrame = milliseconds(Double(max(0, clusterTime + Int64(offset))))
    }

    func milliseconds(_ units: Double) -> Int64 {
        Int64(min(units * Double(scale) / 1_000_000, Double(Int64(1) << 50)))
    }

    private static func children(_ bytes: ArraySlice<UInt8>, _ body: (UInt32, ArraySlice<UInt8>) -> Void) {
        var rest = bytes
        while let element = EBMLElement(rest), let size = element.size,
            size <= Int64(rest.count - element.headerLength)
        {
            let content = rest.dropFirst(element.headerLength)
            body(element.id, content.prefix(Int(size)))
            rest = content.dropFirst(Int(size))
        }
    }

    static func unsigned(_ bytes: ArraySlice<UInt8>) -> UInt64? {
        bytes.isEmpty ? nil : bytes.reduce(0) { $0 << 8 | UInt64($1) }
    }

    private static func float(_ bytes: ArraySlice<UInt8>) -> Double? {
        switch bytes.count {
        case 4: unsigned(bytes).map { Double(Float(bitPattern: UInt32($0))) }
        case 8: unsigned(bytes).map { Double(bitPattern: $0) }
        default: nil
        }
    }
}
