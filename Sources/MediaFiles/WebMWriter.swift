import RTC

/// Writes one stream to a WebM or Matroska file (RFC 9559), block by block.
///
/// A program that is killed leaves a file that players read up to its last whole block, and that `WebMRecovery` finishes. The
/// writer keeps only its index in memory, which is bounded by `WebMSummary.maxClusters`.
public struct WebMWriter: Sendable {
    /// A video frame or an audio packet with its time.
    public struct Block: Equatable, Sendable {
        public var isVideo: Bool
        /// The time from the start of the file in milliseconds, not negative.
        public var time: Int64
        /// Whether it can be decoded without earlier ones. Always true for audio.
        public var isKeyframe: Bool
        /// A whole frame, as the file has it.
        public var bytes: [UInt8]

        public init(isVideo: Bool, time: Int64, isKeyframe: Bool, bytes: [UInt8]) {
            (self.isVideo, self.time, self.isKeyframe, self.bytes) = (isVideo, time, isKeyframe, bytes)
        }
    }

    /// A Cluster ends at a keyframe once it has this length in milliseconds, so that players can seek to the keyframe.
    static let minClusterLength: Int64 = 1_000
    /// The maximum length of a Cluster in milliseconds, and its maximum size in bytes, both as RFC 9559 §25 recommends. Blocks
    /// have 16 bits for their time in a Cluster.
    static let maxClusterLength: Int64 = 5_000
    static let maxClusterSize: Int64 = 5_000_000

    private var header: [UInt8]
    private var summary: WebMSummary
    private let video: RecordedVideo
    /// The size of the file in bytes.
    public private(set) var size: Int64 = 0
    private var lastVideo: Int64 = -1
    private var lastAudio: Int64 = -1
    private var isFinished = false

    /// - Parameters:
    ///   - video: the codec of the video; any for a file of sound alone.
    ///   - date: the wall-clock time at which the file begins, in nanoseconds since 2001-01-01 UTC.
    ///   - application: the name and version of the writing program, at most 256 bytes.
    /// - Returns: nil if the codec's configuration or the name is too long.
    public init?(video: RecordedVideo, date: Int64, application: String) {
        header = WebMHeader(video: video, date: date, application: application).bytes
        guard application.utf8.count <= 256, let layout = WebMLayout(header) else { return nil }
        if let configuration = video.configuration, configuration.count > WebMHeader.maxConfiguration { return nil }
        summary = WebMSummary(layout: layout)
        self.video = video
    }

    /// The end of the last block, in milliseconds from the start of the file.
    public var duration: Int64 { summary.duration }

    /// Writes a block. The header precedes the first one.
    ///
    /// The caller puts the blocks of both tracks in order of time. Within a track, time never goes back: a video frame is at
    /// least a millisecond after the previous one.
    public mutating func write(_ block: Block) -> [FileEdit] {
        guard !isFinished else { return [] }
        let time = block.isVideo ? max(block.time, lastVideo + 1, 0) : max(block.time, lastAudio, 0)
        if block.isVideo { lastVideo = time } else { lastAudio = time }
        var edits: [FileEdit] = []
        var bytes = size == 0 ? header : []
        if needsCluster(block, time) {
            let start = size + Int64(bytes.count)
            if let cluster = summary.cluster {
                edits.append(.replace(WebMSummary.sizeOfCluster(cluster, to: size), at: cluster + 4))
            }
            summary.beginCluster(at: start, time: time)
            bytes += EBML.id(EBMLID.cluster) + EBML.unknownSize + EBML.unsigned(EBMLID.timestamp, UInt64(time))
        }
        let track = block.isVideo ? WebMHeader.videoTrack : WebMHeader.audioTrack
        let offset = Int16(clamping: time - summary.clusterTime)
        bytes += EBML.id(EBMLID.simpleBlock) + EBML.size(4 + block.bytes.count)
        bytes.append(0x80 | track)
        bytes += EBML.bigEndian(UInt64(UInt16(bitPattern: offset)), count: 2)
        bytes.append(block.isKeyframe ? 0x80 : 0x00)
        bytes += block.bytes
        summary.note(track: track, time: time, isKeyframe: block.isKeyframe, frame: block.bytes)
        if block.isVideo, block.isKeyframe, let size = PictureSize(of: block.bytes, video) { summary.note(size: size) }
        size += Int64(bytes.count)
        return edits + [.append(bytes)]
    }

    /// Finishes the file. Returns nothing if it has no block or is already finished.
    public mutating func finish() -> [FileEdit] {
        guard !isFinished else { return [] }
        isFinished = true
        return summary.finish(at: size)
    }

    private func needsCluster(_ block: Block, _ time: Int64) -> Bool {
        guard let cluster = summary.cluster else { return true }
        let age = time - summary.clusterTime
        if block.isVideo, block.isKeyframe, age >= Self.minClusterLength { return true }
        return age >= Self.maxClusterLength || age < -Self.maxClusterLength || size - cluster >= Self.maxClusterSize
    }
}

extension PictureSize {
    /// Parses the size of a keyframe.
    ///
    /// - Parameters:
    ///   - frame: the start of the frame as it is in a file.
    init?(of frame: some Collection<UInt8>, _ video: RecordedVideo) {
        // RTC's parsers expect the payload of a packet. A minimal descriptor makes the frame one: S for VP8, B for VP9.
        let format: VideoPayloadFormat
        let payload: [UInt8]
        switch video {
        case .vp8: (format, payload) = (.vp8, [0x10] + frame.prefix(WebMScan.frameStart))
        case .vp9: (format, payload) = (.vp9, [0x08] + frame.prefix(WebMScan.frameStart))
        case .h264(let configuration):
            guard let parameters = H264Configuration.sequenceParameterSet(in: configuration) else { return nil }
            (format, payload) = (.h264, parameters)
        case .av1(let configuration):
            guard let size = AV1Configuration.size(in: configuration) else { return nil }
            self = size
            return
        }
        guard let size = payload.withUnsafeBytes({ format.pictureSize($0) }) else { return nil }
        self = size
    }
}
