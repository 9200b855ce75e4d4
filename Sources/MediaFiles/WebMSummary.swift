import RTC

/// What must be known of a recording to finish it. The writer collects it as it writes, and the scan of a file after a crash
/// collects the same, so both finish a file with the same bytes.
struct WebMSummary: Equatable {
    /// A Cluster, for the index.
    private struct Cluster: Equatable {
        var time: Int64
        /// The offset from the start of the file.
        var position: Int64
        /// Whether its first block is a keyframe of video.
        var beginsWithKeyframe: Bool
    }

    /// The maximum number of Clusters in the index: a day of one per second. Later ones are found by reading on.
    static let maxClusters = 86_400

    var layout: WebMLayout
    private var clusters: [Cluster] = []
    /// The current Cluster's offset; nil before the first.
    private(set) var cluster: Int64?
    private(set) var clusterTime: Int64 = 0
    private var isClusterEmpty = true
    private(set) var hasVideo = false
    private(set) var hasAudio = false
    private var largest = PictureSize(width: 0, height: 0)
    /// The end of the last block, in milliseconds.
    private(set) var duration: Int64 = 0

    init(layout: WebMLayout) { self.layout = layout }

    mutating func beginCluster(at position: Int64, time: Int64) {
        (cluster, clusterTime, isClusterEmpty) = (position, time, true)
    }

    /// Records a block.
    ///
    /// - Parameters:
    ///   - frame: the start of its frame, at least `WebMScan.frameStart` bytes if it is that long.
    mutating func note(track: UInt8, time: Int64, isKeyframe: Bool, frame: some Collection<UInt8>) {
        let isVideo = track == WebMHeader.videoTrack
        if isClusterEmpty, let cluster {
            isClusterEmpty = false
            if clusters.count < Self.maxClusters {
                clusters.append(
                    Cluster(time: clusterTime, position: cluster, beginsWithKeyframe: isVideo && isKeyframe))
            }
        }
        guard isVideo else {
            hasAudio = true
            let samples = Array(frame.prefix(2)).withUnsafeBytes { OpusPacket.samples($0) } ?? 0
            duration = max(duration, time + Int64(samples * 1_000 / OpusPacket.clockRate))
            return
        }
        hasVideo = true
        duration = max(duration, time)
    }

    /// Records the size of a keyframe's picture. The file has the largest one.
    mutating func note(size: PictureSize) {
        if size.area > largest.area { largest = size }
    }

    /// Returns the edits that finish a file which ends at `end`: players then show its duration and can seek.
    ///
    /// The size of the Segment is last. A file with it is complete, so a finish that a crash interrupts is repeated.
    func finish(at end: Int64) -> [FileEdit] {
        guard let cluster else { return [] }
        var edits: [FileEdit] = [.replace(Self.sizeOfCluster(cluster, to: end), at: cluster + 4)]
        let index = cues()
        edits.append(.append(index))
        if !hasVideo { edits.append(Self.removal(layout.videoEntry)) }
        if !hasAudio { edits.append(Self.removal(layout.audioEntry)) }
        if hasVideo, largest.area > 0, let width = layout.width, let height = layout.height {
            edits.append(.replace(EBML.bigEndian(UInt64(largest.width), count: 2), at: width))
            edits.append(.replace(EBML.bigEndian(UInt64(largest.height), count: 2), at: height))
        }
        edits.append(.replace(EBML.float(EBMLID.duration, Double(duration)), at: layout.duration))
        edits.append(.replace(seekHead(cues: end), at: layout.seekHead))
        let size = end + Int64(index.count) - layout.seekHead
        edits.append(.replace(EBML.fixedSize(size), at: layout.segmentSize))
        return edits
    }

    /// Returns the size field of a Cluster that begins at `start`: its content is behind an id of four bytes and this field.
    static func sizeOfCluster(_ start: Int64, to end: Int64) -> [UInt8] { EBML.fixedSize(end - start - 12) }

    private static func removal(_ entry: Range<Int64>) -> FileEdit {
        .replace(EBML.void(length: entry.count), at: entry.lowerBound)
    }

    /// The index (RFC 9559 §5.1.5): with video, the Clusters that begin with a keyframe, otherwise all.
    private func cues() -> [UInt8] {
        let track = hasVideo ? WebMHeader.videoTrack : WebMHeader.audioTrack
        var content: [UInt8] = []
        for cluster in clusters where cluster.beginsWithKeyframe || !hasVideo {
            let position = UInt64(cluster.position - layout.seekHead)
            content += EBML.element(
                0xbb,
                EBML.unsigned(0xb3, UInt64(cluster.time))
                    + EBML.element(0xb7, EBML.unsigned(0xf7, UInt64(track)) + EBML.unsigned(0xf1, position)))
        }
        return EBML.element(EBMLID.cues, content)
    }

    private func seekHead(cues: Int64) -> [UInt8] {
        let places = [(EBMLID.info, layout.info), (EBMLID.tracks, layout.tracks), (EBMLID.cues, cues)]
        let content = places.flatMap { id, position in
            EBML.element(
                EBMLID.seek,
                EBML.element(EBMLID.seekID, EBML.id(id))
                    + EBML.unsigned(EBMLID.seekPosition, UInt64(position - layout.seekHead)))
        }
        let bytes = EBML.element(EBMLID.seekHead, content)
        return bytes + EBML.void(length: WebMHeader.seekHeadLength - bytes.count)
    }
}
