/// How a recording's video is encoded in its file.
public enum RecordedVideo: Hashable, Sendable {
    case vp8
    case vp9
    /// H.264 in access units with lengths of four bytes.
    ///
    /// - configuration: the AVCDecoderConfigurationRecord (ISO/IEC 14496-15 §5.3.3.1).
    case h264(configuration: [UInt8])
    /// AV1 in temporal units without delimiters.
    ///
    /// - configuration: the AV1CodecConfigurationRecord (AV1 Codec ISO Media File Format Binding §2.3.3).
    case av1(configuration: [UInt8])

    /// The name of the codec in the file (https://www.matroska.org/technical/codec_specs.html).
    var codecID: String {
        switch self {
        case .vp8: "V_VP8"
        case .vp9: "V_VP9"
        case .h264: "V_MPEG4/ISO/AVC"
        case .av1: "V_AV1"
        }
    }

    /// The codec's parameters for the file's header; nil if it has none.
    var configuration: [UInt8]? {
        switch self {
        case .vp8, .vp9: nil
        case .h264(let configuration), .av1(let configuration): configuration
        }
    }

    /// The file's type: WebM does not allow H.264, which is in a Matroska file.
    public var fileExtension: String { codec.fileExtension }

    /// The codec, as the event log names it.
    public var codec: ArchivedFile.Codec {
        switch self {
        case .vp8: .vp8
        case .vp9: .vp9
        case .h264: .h264
        case .av1: .av1
        }
    }
}

/// A change of a file that is being recorded.
public enum FileEdit: Equatable, Sendable {
    /// Adds bytes at the end of the file.
    case append([UInt8])
    /// Replaces bytes that were written before.
    case replace([UInt8], at: Int64)
    /// Removes everything from this offset.
    case truncate(Int64)
}

/// The positions in a recording that are filled in when it ends, in bytes from the start of the file.
struct WebMLayout: Equatable {
    /// The size field of the Segment, eight bytes.
    var segmentSize: Int64
    /// The place for the index of Info, Tracks and Cues, `WebMHeader.seekHeadLength` bytes. It is also the Segment's first
    /// content, from which positions in the file are counted.
    var seekHead: Int64
    var info: Int64
    /// The place for the duration, `WebMHeader.durationLength` bytes.
    var duration: Int64
    var tracks: Int64
    /// The whole entries of video and audio.
    var videoEntry: Range<Int64>
    var audioEntry: Range<Int64>
    /// The contents of PixelWidth and PixelHeight, two bytes each. Nil if the entry was removed, because there is no video.
    var width: Int64?
    var height: Int64?
    /// The codec of the video; nil if the entry was removed.
    var video: RecordedVideo?
    /// The end of the header, where the first Cluster begins.
    var end: Int64
}

/// The beginning of a recording (RFC 9559 §5.1): everything before the first Cluster.
///
/// It always has an entry for video and one for audio. `WebMSummary.finish` removes the entry of a track without blocks.
struct WebMHeader {
    static let videoTrack: UInt8 = 1
    static let audioTrack: UInt8 = 2
    /// Room for three entries with positions of eight bytes.
    static let seekHeadLength = 92
    /// The length of the Duration element: an id of two bytes, a size, and eight bytes.
    static let durationLength = 11
    /// The largest codec configuration in bytes. Parameter sets of H.264 are below 200 bytes.
    static let maxConfiguration = 4_096
    /// The size of a picture until `WebMSummary.finish` writes the largest one, as in OpenTok's files.
    static let placeholderSize: (width: UInt16, height: UInt16) = (640, 480)
    /// How much earlier than a position a player must decode audio after seeking: 80 ms, as RFC 7845 §4.6 recommends.
    private static let seekPreRoll: UInt64 = 80_000_000

    var bytes: [UInt8]

    /// - Parameters:
    ///   - video: the codec of the video track.
    ///   - date: the time of the file's first block, in nanoseconds since 2001-01-01 UTC.
    ///   - application: the name of the writing program.
    init(video: RecordedVideo, date: Int64, application: String) {
        let docType = video.fileExtension == "mkv" ? "matroska" : "webm"
        bytes = EBML.element(
            EBMLID.header,
            EBML.unsigned(0x4286, 1) + EBML.unsigned(0x42f7, 1) + EBML.unsigned(0x42f2, 4) + EBML.unsigned(0x42f3, 8)
                + EBML.text(0x4282, docType)
                // CodecDelay and SeekPreRoll belong to version 4.
                + EBML.unsigned(0x4287, 4) + EBML.unsigned(0x4285, 2))
        bytes += EBML.id(EBMLID.segment) + EBML.unknownSize
        bytes += EBML.void(length: Self.seekHeadLength)
        bytes += EBML.element(
            EBMLID.info,
            EBML.unsigned(0x2ad7b1, 1_000_000)
                + EBML.element(0x4461, EBML.bigEndian(UInt64(bitPattern: date), count: 8))
                + EBML.text(0x4d80, application) + EBML.text(0x5741, application)
                + EBML.void(length: Self.durationLength))
        bytes += EBML.element(
            EBMLID.tracks,
            EBML.element(EBMLID.trackEntry, Self.video(video)) + EBML.element(EBMLID.trackEntry, Self.audio()))
    }

    private static func track(_ number: UInt8, _ codec: String) -> [UInt8] {
        EBML.unsigned(EBMLID.trackNumber, UInt64(number)) + EBML.unsigned(0x73c5, UInt64(number))
            + EBML.unsigned(0x83, UInt64(number)) + EBML.unsigned(0x9c, 0) + EBML.text(EBMLID.codec, codec)
    }

    private static func video(_ video: RecordedVideo) -> [UInt8] {
        var content = track(videoTrack, video.codecID)
        if let configuration = video.configuration {
            content += EBML.element(EBMLID.configuration, Array(configuration.prefix(maxConfiguration)))
        }
        return content
            + EBML.element(
                EBMLID.video,
                EBML.element(EBMLID.pixelWidth, EBML.bigEndian(UInt64(placeholderSize.width), count: 2))
                    + EBML.element(EBMLID.pixelHeight, EBML.bigEndian(UInt64(placeholderSize.height), count: 2)))
    }

    private static func audio() -> [UInt8] {
        // Without pre-skip, because no player may discard the first 80 ms of a conversation. The sound is then 6.5 ms late, as
        // it is for those who listen live.
        track(audioTrack, "A_OPUS") + EBML.element(EBMLID.configuration, OpusHead(channels: 2, preSkip: 0).bytes)
            + EBML.unsigned(0x56aa, 0) + EBML.unsigned(0x56bb, seekPreRoll)
            + EBML.element(0xe1, EBML.float(0xb5, Double(OpusPacket.clockRate)) + EBML.unsigned(0x9f, 2))
    }
}

extension WebMLayout {
    /// The most bytes of a file that `init` needs.
    static let maxHeader = 8_192

    /// Finds the positions in the first bytes of a recording.
    ///
    /// - Parameter bytes: the first `maxHeader` bytes of the file, or all of it.
    /// - Returns: nil if this is not the complete header of a recording by Confab.
    init?(_ bytes: [UInt8]) {
        guard let header = EBMLElement(bytes), header.id == EBMLID.header, let size = header.size else { return nil }
        guard let segment = Self.offset(header.headerLength, size, in: bytes),
            let element = EBMLElement(bytes[segment...]), element.id == EBMLID.segment, element.headerLength == 12
        else { return nil }
        let seekHead = segment + element.headerLength
        (segmentSize, self.seekHead) = (Int64(segment + 4), Int64(seekHead))
        let info = seekHead + WebMHeader.seekHeadLength
        guard info < bytes.count, let infoElement = EBMLElement(bytes[info...]), infoElement.id == EBMLID.info,
            let infoSize = infoElement.size,
            let tracks = Self.offset(info + infoElement.headerLength, infoSize, in: bytes),
            tracks - WebMHeader.durationLength > info, let trackElement = EBMLElement(bytes[tracks...]),
            trackElement.id == EBMLID.tracks, let trackSize = trackElement.size,
            let end = Self.offset(tracks + trackElement.headerLength, trackSize, in: bytes, mayEnd: true)
        else { return nil }
        (self.info, self.tracks, self.end) = (Int64(info), Int64(tracks), Int64(end))
        duration = Int64(tracks - WebMHeader.durationLength)
        let entries = Self.children(bytes, tracks + trackElement.headerLength..<end)
        guard entries.count == 2 else { return nil }
        videoEntry = Int64(entries[0].lowerBound)..<Int64(entries[0].upperBound)
        audioEntry = Int64(entries[1].lowerBound)..<Int64(entries[1].upperBound)
        (width, height, video) = (nil, nil, nil)
        if bytes[entries[0].lowerBound] == UInt8(EBMLID.trackEntry) {
            // The entry ends with PixelWidth and PixelHeight, each with an id, a size and two bytes.
            let tail = entries[0].upperBound - 8
            guard tail > entries[0].lowerBound, bytes[tail] == UInt8(EBMLID.pixelWidth),
                bytes[tail + 4] == UInt8(EBMLID.pixelHeight)
            else { return nil }
            (width, height) = (Int64(tail + 2), Int64(tail + 6))
            video = Self.codec(bytes, entries[0])
        }
    }

    /// Returns the offset after content, if there are bytes at it.
    private static func offset(_ start: Int, _ size: Int64, in bytes: [UInt8], mayEnd: Bool = false) -> Int? {
        guard size <= Int64(bytes.count - min(start, bytes.count)) else { return nil }
        let end = start + Int(size)
        return end < bytes.count || mayEnd ? end : nil
    }

    private static func codec(_ bytes: [UInt8], _ entry: Range<Int>) -> RecordedVideo? {
        guard let header = EBMLElement(bytes[entry]) else { return nil }
        var (name, configuration): ([UInt8], [UInt8]) = ([], [])
        for child in children(bytes, entry.lowerBound + header.headerLength..<entry.upperBound) {
            guard let element = EBMLElement(bytes[child]) else { return nil }
            let content = Array(bytes[child.dropFirst(element.headerLength)])
            if element.id == EBMLID.codec { name = content }
            if element.id == EBMLID.configuration { configuration = content }
        }
        let known: [RecordedVideo] = [
            .vp8, .vp9, .h264(configuration: configuration), .av1(configuration: configuration),
        ]
        return known.first { Array($0.codecID.utf8) == name }
    }

    private static func children(_ bytes: [UInt8], _ range: Range<Int>) -> [Range<Int>] {
        var found: [Range<Int>] = []
        var position = range.lowerBound
        while position < range.upperBound, found.count < 16 {
            guard let element = EBMLElement(bytes[position..<range.upperBound]), let size = element.size,
                size <= Int64(range.upperBound - position - element.headerLength)
            else { return [] }
            let end = position + element.headerLength + Int(size)
            found.append(position..<end)
            position = end
        }
        return found
    }
}
