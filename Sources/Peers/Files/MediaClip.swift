import MediaFiles
import RTC

/// The media that a bot plays: a VP8 file, an Opus file, or both. Several VP8 files are the simulcast layers of one video. A clip
/// is parsed once and shared by all bots of a process.
public struct MediaClip: Sendable {
    /// A video frame or an audio packet.
    package struct Item: Equatable, Sendable {
        /// The item's offset from the start of the track.
        package var at: MediaInterval
        /// The range of the item in the track's bytes.
        package var range: Range<Int>
        package var isKeyframe: Bool
    }

    /// A clip's video or audio. It has at least one item, and the first video item is a keyframe at time zero.
    package struct Track: Equatable, Sendable {
        package var bytes: [UInt8]
        package var items: [Item]
        /// The duration of the track, including its last item.
        package var length: MediaInterval

        package func withItem(_ item: Item, _ body: (UnsafeRawBufferPointer) -> Void) {
            bytes.withUnsafeBytes { bytes in
                guard item.range.upperBound <= bytes.count else { return }
                body(UnsafeRawBufferPointer(rebasing: bytes[item.range]))
            }
        }
    }

    /// The maximum file size in bytes, about half an hour of good video. A file is kept in memory as a whole.
    public static let maxFile = 512 << 20
    /// The maximum frame size in bytes. A frame is sent in one burst, and a larger one would flood any connection.
    package static let maxFrame = 1 << 20
    /// The maximum interval between two frames. Longer pauses in a file are shortened to this, so that a new viewer
    /// gets a frame within this time.
    static let longestPause = MediaInterval.seconds(10)
    /// The minimum interval between two frames. If two frames had the same RTP timestamp, receivers would treat them as one
    /// frame.
    static let shortestStep = MediaInterval.milliseconds(1)

    /// One simulcast layer, or the only encoding, with its size in pixels.
    struct Layer: Sendable {
        var track: Track
        var width: Int
        var height: Int
    }

    /// The RIDs under which the layers are sent, the largest layer first. The letters stand for full, half and quarter
    /// size, as in many web applications.
    static let rids = ["f", "h", "q"]

    /// The layers of the video, the largest first.
    private(set) var layers: [Layer] = []
    package var audio: Track?

    /// The largest layer of the video; nil without video.
    package var video: Track? { layers.first?.track }
    /// The width of the video in pixels; nil without video.
    public var width: Int? { layers.first?.width }
    public var height: Int? { layers.first?.height }

    public var hasVideo: Bool { !layers.isEmpty }
    /// The RIDs to send; empty without simulcast.
    package var rids: [String] { layers.count > 1 ? Array(Self.rids.prefix(layers.count)) : [] }

    /// The widths of the layers in pixels, the largest layer first.
    package var widths: [Int] { layers.map(\.width) }

    /// Returns a clip with only the layer at this index, if there is one. The clip for index 0, the largest layer,
    /// also has the audio.
    package func layer(_ index: Int) -> MediaClip {
        var clip = MediaClip()
        clip.layers = Array(layers.dropFirst(index).prefix(1))
        if index == 0 { clip.audio = audio }
        return clip
    }

    public var hasAudio: Bool { audio != nil }

    public init() {}

    package mutating func removeAudio() { audio = nil }
    package mutating func removeVideo() { layers = [] }

    /// Adds a file and detects its format.
    ///
    /// - Throws: `MediaFileError` if the format is not supported, if the file is damaged or exceeds a limit, or if the
    ///   clip already has three videos (for a video file) or an audio track (for an audio file).
    public mutating func add(_ file: [UInt8]) throws(MediaFileError) {
        if file.starts(with: IVFHeader.signature) {
            try add(video: file)
        } else if file.starts(with: OggPage.signature) {
            try add(audio: file)
        } else {
            throw MediaFileError(.notThisFormat, "is neither an IVF file with VP8 nor an Ogg file with Opus")
        }
    }

    private mutating func add(video bytes: [UInt8]) throws(MediaFileError) {
        guard layers.count < Self.rids.count else {
            throw MediaFileError(.otherCodec, "is one video file too many; a bot plays \(Self.rids.count) layers")
        }
        let file = try bytes.withRawBytes { bytes throws(MediaFileError) in try IVFFile(bytes) }
        guard file.header.codec == "VP80" else {
            throw MediaFileError(
                .otherCodec,
                "has the codec \(printable(file.header.codec)) and not VP8; convert it with ffmpeg -c:v libvpx")
        }
        let (width, height) = (Int(file.header.width), Int(file.header.height))
        layers.append(Layer(track: try Self.track(of: file, bytes), width: width, height: height))
        layers.sort { $0.width * $0.height > $1.width * $1.height }
    }

    private static func track(of file: IVFFile, _ bytes: [UInt8]) throws(MediaFileError) -> Track {
        var items: [Item] = []
        var at = MediaInterval.zero
        var step = MediaInterval.milliseconds(33)
        var before: UInt64?
        try bytes.withRawBytes { bytes throws(MediaFileError) in
            for frame in file.frames {
                guard let header = VP8FrameHeader(UnsafeRawBufferPointer(rebasing: bytes[frame.range])) else {
                    throw MediaFileError(.damaged, "has a frame that is not VP8")
                }
                guard frame.range.count <= maxFrame else {
                    throw MediaFileError(
                        .tooLarge, "has a frame of \(frame.range.count) bytes; \(maxFrame) are allowed")
                }
                // Skip frames before the first keyframe, because they cannot be decoded.
                if items.isEmpty, !header.isKeyframe { continue }
                if let before {
                    step = interval(from: before, to: frame.time, file.header)
                    at = at + step
                }
                before = frame.time
                items.append(Item(at: at, range: frame.range, isKeyframe: header.isKeyframe))
            }
        }
        guard !items.isEmpty else { throw MediaFileError(.damaged, "has no keyframe") }
        return Track(bytes: bytes, items: items, length: at + step)
    }

    private static func interval(from: UInt64, to: UInt64, _ header: IVFHeader) -> MediaInterval {
        // Limit the ticks, which last at most a minute each, so that the product stays small. With ticks of 10 ns or
        // more, a count above this limit is longer than the longest pause and would be shortened anyway.
        let ticks = to > from ? min(to - from, 1_000_000_000) : 0
        let nanoseconds = (Double(ticks) * 1e9 * Double(header.unitNumerator) / Double(header.unitDenominator))
            .rounded()
        let interval = MediaInterval(nanoseconds: Int64(min(nanoseconds, Double(longestPause.nanoseconds))))
        return max(interval, shortestStep)
    }

    private mutating func add(audio bytes: [UInt8]) throws(MediaFileError) {
        guard audio == nil else { throw MediaFileError(.otherCodec, "is a second audio file; a bot plays only one") }
        let file = try bytes.withRawBytes { bytes throws(MediaFileError) in try OpusFile(bytes) }
        if let long = file.packets.first(where: { $0.range.count > VP8Packetizer.maxPayload }) {
            throw MediaFileError(
                .tooLarge, "has packets of \(long.range.count) bytes, too long for the network; encode it at 256 kbit/s"
            )
        }
        let items = file.packets.map { packet in
            Item(at: Self.samples(packet.time), range: packet.range, isKeyframe: true)
        }
        guard !items.isEmpty else { throw MediaFileError(.damaged, "has no audio packets") }
        audio = Track(bytes: file.bytes, items: items, length: Self.samples(file.samples))
    }

    /// Converts a number of samples at 48 kHz to an interval. A file has at most eleven hours of audio, so this does not
    /// overflow.
    private static func samples(_ count: Int) -> MediaInterval {
        MediaInterval(nanoseconds: Int64(count) * 1_000_000_000 / Int64(OpusPacket.clockRate))
    }
}

extension MediaInterval {
    package static func + (left: MediaInterval, right: MediaInterval) -> MediaInterval {
        MediaInterval(nanoseconds: left.nanoseconds &+ right.nanoseconds)
    }
}

/// Replaces control and formatting characters, so that text from strangers is safe to print in a terminal.
package func printable(_ text: String) -> String {
    String(
        text.unicodeScalars.map { scalar in
            switch scalar.properties.generalCategory {
            case .control, .format, .lineSeparator, .paragraphSeparator: " "
            default: Character(scalar)
            }
        })
}
