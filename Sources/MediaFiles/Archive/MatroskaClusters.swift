/// Where the clusters of a Matroska or WebM file begin. Read together with the bytes before the first cluster, each cluster is a file of
/// its own.
///
/// The bytes before a cluster do not change while a recorder appends to the file, and when it completes the file, only the header does.
/// So the beginning of a cluster also identifies what was recorded before it.
public struct MatroskaClusters: Hashable, Sendable {
    /// One cluster.
    public struct Cluster: Hashable, Sendable {
        /// In milliseconds from the start of the file.
        public var time: Int64
        /// The offset of its first byte in the file.
        public var offset: Int64
        /// Whether its first block is a keyframe of video.
        public var startsWithKeyframe: Bool
    }

    /// The maximum number of elements to look at. Recorders write at most one cluster per second, so a day has half of it. Only the blocks
    /// of a cluster that is being written are looked at one by one.
    static let maxElements = 200_000
    /// The bytes to read for the ids and sizes of a cluster, its time, and its first block.
    private static let headLength = 64

    /// In the order of the file.
    public private(set) var all: [Cluster] = []

    /// Reads the beginnings of all clusters, also of a file that is still being written.
    ///
    /// - Parameters:
    ///   - start: the beginning of the same file.
    ///   - size: of the file in bytes.
    ///   - read: returns bytes at an offset, or fewer if the file ends.
    public init(_ start: MatroskaStart, size: Int64, read: (_ offset: Int64, _ count: Int) -> [UInt8]) {
        var position: Int64 = 0
        for _ in 0..<Self.maxElements where position < size {
            let bytes = read(position, Self.headLength)
            guard let element = EBMLElement(bytes) else { return }
            let content = position + Int64(element.headerLength)
            if element.id == EBMLID.cluster,
                let cluster = Self.cluster(bytes.dropFirst(element.headerLength), at: position, start)
            {
                all.append(cluster)
            }
            if element.id == EBMLID.segment || element.id == EBMLID.cluster && element.size == nil {
                position = content
                continue
            }
            guard let length = element.size, length <= size - content else { return }
            position = content + length
        }
    }

    /// Returns where the last cluster begins that starts with a keyframe at this time or before; the first cluster if there is none.
    public func start(for time: Int64) -> Int64? {
        (all.last { $0.startsWithKeyframe && $0.time <= time } ?? all.first)?.offset
    }

    /// Returns where the first cluster begins that has only blocks of this time or later, unless some were written late; nil if there is
    /// none.
    public func end(after time: Int64) -> Int64? { all.first { $0.time >= time }?.offset }

    /// - Parameter bytes: the content of the cluster, from its beginning.
    private static func cluster(_ bytes: ArraySlice<UInt8>, at offset: Int64, _ start: MatroskaStart) -> Cluster? {
        guard let timestamp = EBMLElement(bytes), timestamp.id == EBMLID.timestamp, let length = timestamp.size,
            (1...8).contains(length)
        else { return nil }
        let rest = bytes.dropFirst(timestamp.headerLength)
        guard rest.count >= length, let units = MatroskaStart.unsigned(rest.prefix(Int(length))) else { return nil }
        let block = rest.dropFirst(Int(length))
        var startsWithKeyframe = false
        if let element = EBMLElement(block), element.id == EBMLID.simpleBlock {
            // The number of the track in one byte, the time in two, and the flags, of which the first is `keyframe`.
            let head = Array(block.dropFirst(element.headerLength).prefix(4))
            startsWithKeyframe =
                head.count == 4 && head[0] & 0x80 != 0 && UInt64(head[0] & 0x7f) == start.videoTrack
                && head[3] & 0x80 != 0
        }
        return Cluster(
            time: start.milliseconds(Double(min(units, 1 << 40))), offset: offset,
            startsWithKeyframe: startsWithKeyframe)
    }
}
