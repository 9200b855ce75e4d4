import RTC

/// What a bot shows: one file of VP8, one of Opus, or both, taken apart once and shared by all bots of a process.
public struct Programme: Sendable {
    /// A frame of video or a packet of sound.
    struct Item: Equatable, Sendable {
        /// From the track's beginning.
        var at: MediaInterval
        /// Of the track's bytes.
        var range: Range<Int>
        var isKeyframe: Bool
    }

    /// Never without items, and the first is a keyframe at zero.
    struct Track: Equatable, Sendable {
        var bytes: [UInt8]
        var items: [Item]
        /// How long it is, the last item included.
        var length: MediaInterval

        func withItem(_ item: Item, _ body: (UnsafeRawBufferPointer) -> Void) {
            bytes.withUnsafeBytes { bytes in
                guard item.range.upperBound <= bytes.count else { return }
                body(UnsafeRawBufferPointer(rebasing: bytes[item.range]))
            }
        }
    }

    /// In bytes. A keyframe of a large picture; it is sent at once, and a larger one would drown every line.
    static let mostFrame = 1 << 20
    /// Between two frames. A longer pause in a file is cut to this: whoever joins waits no longer for a picture.
    static let longestPause = MediaInterval.seconds(10)
    /// Two frames of one time are sent this far apart: in RTP they would be one.
    static let shortestStep = MediaInterval.milliseconds(1)

    var video: Track?
    var audio: Track?
    /// Of the video, in pixels.
    public private(set) var width: Int?
    public private(set) var height: Int?

    public var hasVideo: Bool { video != nil }
    public var hasAudio: Bool { audio != nil }

    public init() {}

    /// The sample that comes with the program: a teal picture with bars at its edges, and a soft tone.
    public static let sample: Programme = {
        var programme = Programme()
        // Both are compiled in and tested: should one be broken, the bot would show less rather than end.
        try? programme.add(video: PackageResources.picture_ivf)
        try? programme.add(audio: PackageResources.sound_ogg)
        return programme
    }()

    /// Takes a file, whichever of the two kinds it is.
    ///
    /// - Throws: `MediaFileError` for any other file, and for a second one of a kind.
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
        guard video == nil else { throw MediaFileError(.otherCodec, "is a second video; a bot shows one") }
        let file = try bytes.withRawBytes { bytes throws(MediaFileError) in try IVFFile(bytes) }
        guard file.header.codec == "VP80" else {
            throw MediaFileError(
                .otherCodec,
                "has the codec \(printable(file.header.codec)) and not VP8; make it with ffmpeg -c:v libvpx")
        }
        video = try Self.track(of: file, bytes)
        (width, height) = (Int(file.header.width), Int(file.header.height))
    }

    private static func track(of file: IVFFile, _ bytes: [UInt8]) throws(MediaFileError) -> Track {
        var items: [Item] = []
        var at = MediaInterval.zero
        var step = MediaInterval.milliseconds(33)
        var before: UInt64?
        try bytes.withRawBytes { bytes throws(MediaFileError) in
            for frame in file.frames {
                guard let header = VP8FrameHeader(UnsafeRawBufferPointer(rebasing: bytes[frame.range])) else {
                    throw MediaFileError(.damaged, "has a frame that is no VP8")
                }
                guard frame.range.count <= mostFrame else {
                    throw MediaFileError(
                        .tooLarge, "has a frame of \(frame.range.count) bytes; \(mostFrame) are allowed")
                }
                // Before the first keyframe there is nothing to be seen.
                if items.isEmpty, !header.isKeyframe { continue }
                if let before {
                    step = interval(from: before, to: frame.time, file.header)
                    at = at + step
                }
                before = frame.time
                items.append(Item(at: at, range: frame.range, isKeyframe: header.isKeyframe))
            }
        }
        guard !items.isEmpty else { throw MediaFileError(.damaged, "has no frame from which a picture could begin") }
        return Track(bytes: bytes, items: items, length: at + step)
    }

    private static func interval(from: UInt64, to: UInt64, _ header: IVFHeader) -> MediaInterval {
        // A unit is at most a minute, so beyond this it is longer than the longest pause in any case.
        let ticks = to > from ? min(to - from, 1_000_000_000) : 0
        let nanoseconds = (Double(ticks) * 1e9 * Double(header.unitNumerator) / Double(header.unitDenominator))
            .rounded()
        let interval = MediaInterval(nanoseconds: Int64(min(nanoseconds, Double(longestPause.nanoseconds))))
        return max(interval, shortestStep)
    }

    private mutating func add(audio bytes: [UInt8]) throws(MediaFileError) {
        guard audio == nil else { throw MediaFileError(.otherCodec, "is a second file of sound; a bot plays one") }
        let file = try bytes.withRawBytes { bytes throws(MediaFileError) in try OpusFile(bytes) }
        if let long = file.packets.first(where: { $0.range.count > VP8Packetiser.mostPayload }) {
            throw MediaFileError(
                .tooLarge, "has packets of \(long.range.count) bytes, too long for the network; encode it at 256 kbit/s"
            )
        }
        let items = file.packets.map { packet in
            Item(at: Self.samples(packet.time), range: packet.range, isKeyframe: true)
        }
        guard !items.isEmpty else { throw MediaFileError(.damaged, "has no sound in it") }
        audio = Track(bytes: file.bytes, items: items, length: Self.samples(file.samples))
    }

    /// At 48 kHz, from a file of at most eleven hours.
    private static func samples(_ count: Int) -> MediaInterval {
        MediaInterval(nanoseconds: Int64(count) * 1_000_000_000 / Int64(OpusPacket.clockRate))
    }
}

extension MediaInterval {
    static func + (left: MediaInterval, right: MediaInterval) -> MediaInterval {
        MediaInterval(nanoseconds: left.nanoseconds &+ right.nanoseconds)
    }
}

/// Text from strangers, harmless in a terminal.
func printable(_ text: String) -> String {
    String(
        text.unicodeScalars.map { scalar in
            switch scalar.properties.generalCategory {
            case .control, .format, .lineSeparator, .paragraphSeparator: " "
            default: Character(scalar)
            }
        })
}
