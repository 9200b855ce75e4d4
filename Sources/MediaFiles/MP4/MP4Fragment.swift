import RTC

/// A movie fragment: a short section of audio and video (`moof` and `mdat`, ISO/IEC 14496-12 §8.8).
public struct MP4Fragment: Hashable, Sendable {
    /// The samples of one track. A sample is a frame of video or audio.
    public struct Run: Hashable, Sendable {
        /// The number of the track.
        public var track: UInt32
        /// When the first sample is decoded, in the track's timescale.
        public var start: Int64
        /// The sum of the durations of all samples, in the track's timescale.
        public var duration: Int64
        public var samples: Int
        /// Whether a decoder can start with the first sample.
        public var startsWithSync: Bool
    }

    /// The maximum number of samples. Ten seconds with 50 video frames and 50 audio frames per second have 1,000.
    public static let maxSamples = 20_000
    /// The latest time in a track's timescale. Sums of times cannot overflow below it.
    static let maxTime: UInt64 = 1 << 56

    /// Both boxes as they were read, for a segment.
    public let bytes: [UInt8]
    /// At most one for each track.
    public private(set) var runs: [Run] = []

    /// Returns the samples of a track; nil if this fragment has none.
    public func run(of track: UInt32) -> Run? { runs.first { $0.track == track && $0.samples > 0 } }

    /// - Parameter bytes: a `moof` box and the `mdat` box that follows it.
    /// - Throws: `MediaFileError` with `damaged` or `tooLarge`, or with `otherCodec` if the fragment cannot be moved to another file.
    init(_ bytes: [UInt8], of file: MP4Initialization) throws(MediaFileError) {
        self.bytes = bytes
        guard let header = MP4BoxHeader(bytes[...]), header.kind == "moof", header.size <= Int64(bytes.count) else {
            throw MediaFileError(.damaged, "has a fragment without a header")
        }
        let media = Int(header.size) + 8..<max(bytes.count, Int(header.size) + 8)
        try MP4BoxHeader.children(bytes.prefix(Int(header.size)).dropFirst(header.length)) {
            kind, content throws(MediaFileError) in
            guard kind == "traf" else { return }
            var reading = TrackReading(media: media)
            try MP4BoxHeader.children(content) { kind, content throws(MediaFileError) in
                switch kind {
                case "tfhd": try reading.takeHeader(content, file)
                case "tfdt": try reading.takeTime(content)
                case "trun": try reading.takeSamples(content)
                default: break
                }
            }
            let run = try reading.run()
            guard !runs.contains(where: { $0.track == run.track }) else {
                throw MediaFileError(.damaged, "has a fragment with two parts of one track")
            }
            runs.append(run)
        }
        guard runs.reduce(0, { $0 + $1.samples }) <= Self.maxSamples else {
            throw MediaFileError(.tooLarge, "has a fragment with more than \(Self.maxSamples) samples")
        }
    }
}

/// What is known of a `traf` box while its boxes are read.
private struct TrackReading {
    private static let cutOff = MediaFileError(.damaged, "has a fragment whose boxes end too early")
    /// `sample_is_non_sync_sample` in the flags of a sample (ISO/IEC 14496-12 §8.8.3.1).
    private static let notSync: UInt32 = 0x1_0000

    /// Where the samples must be, from the start of the fragment.
    let media: Range<Int>
    private var track: UInt32?
    private var defaults = MP4Initialization.Defaults()
    private var start: Int64?
    private var duration: Int64 = 0
    private var samples = 0
    private var startsWithSync = false

    init(media: Range<Int>) { self.media = media }

    func run() throws(MediaFileError) -> MP4Fragment.Run {
        guard let track, let start else {
            throw MediaFileError(.damaged, "has a fragment without a track ID or a decode time")
        }
        return MP4Fragment.Run(
            track: track, start: start, duration: duration, samples: samples, startsWithSync: startsWithSync)
    }

    mutating func takeHeader(_ tfhd: ArraySlice<UInt8>, _ file: MP4Initialization) throws(MediaFileError) {
        try tfhd.read { reader throws(MediaFileError) in
            guard let flags = reader.u32().map({ $0 & 0xff_ffff }), let id = reader.u32() else { throw Self.cutOff }
            guard let known = file.tracks.first(where: { $0.id == id }) else {
                throw MediaFileError(.damaged, "has a fragment of an unknown track")
            }
            // Positions must count from the fragment (`default-base-is-moof`), and not from the start of the file.
            guard flags & 0x1 == 0, flags & 0x2_0000 != 0 else {
                throw MediaFileError(.otherCodec, "has fragments that depend on their place in the file")
            }
            guard track == nil else { throw MediaFileError(.damaged, "has a fragment with two headers of a track") }
            (track, defaults) = (id, known.defaults)
            if flags & 0x2 != 0, !reader.skip(4) { throw Self.cutOff }
            if flags & 0x8 != 0 { defaults.duration = try Self.next(&reader) }
            if flags & 0x10 != 0 { defaults.size = try Self.next(&reader) }
            if flags & 0x20 != 0 { defaults.flags = try Self.next(&reader) }
        }
    }

    mutating func takeTime(_ tfdt: ArraySlice<UInt8>) throws(MediaFileError) {
        let time = tfdt.read { reader -> UInt64? in
            guard let version = reader.u8(), reader.skip(3) else { return nil }
            return version == 1 ? reader.u64() : reader.u32().map(UInt64.init)
        }
        guard let time else { throw Self.cutOff }
        guard time <= MP4Fragment.maxTime else { throw MediaFileError(.damaged, "has a time that is too late") }
        start = Int64(time)
    }

    mutating func takeSamples(_ trun: ArraySlice<UInt8>) throws(MediaFileError) {
        guard track != nil else { throw MediaFileError(.damaged, "has samples before their track") }
        try trun.read { reader throws(MediaFileError) in
            let flags = try Self.next(&reader) & 0xff_ffff
            let count = Int(try Self.next(&reader))
            guard count <= MP4Fragment.maxSamples - samples else {
                throw MediaFileError(.tooLarge, "has a fragment with more than \(MP4Fragment.maxSamples) samples")
            }
            guard flags & 0x1 != 0 else { throw MediaFileError(.damaged, "has samples without a position") }
            let position = Int(Int32(bitPattern: try Self.next(&reader)))
            let firstFlags = flags & 0x4 != 0 ? try Self.next(&reader) : nil
            var size = 0
            for index in 0..<count {
                duration += Int64(flags & 0x100 != 0 ? try Self.next(&reader) : defaults.duration)
                size += Int(flags & 0x200 != 0 ? try Self.next(&reader) : defaults.size)
                let ownFlags = flags & 0x400 != 0 ? try Self.next(&reader) : defaults.flags
                // The offset of its presentation.
                if flags & 0x800 != 0 { _ = try Self.next(&reader) }
                if samples == 0, index == 0 { startsWithSync = (firstFlags ?? ownFlags) & Self.notSync == 0 }
            }
            guard count == 0 || position >= media.lowerBound && size <= media.upperBound - position else {
                throw MediaFileError(.damaged, "has samples outside of their fragment")
            }
            samples += count
        }
    }

    private static func next(_ reader: inout ByteReader) throws(MediaFileError) -> UInt32 {
        guard let number = reader.u32() else { throw cutOff }
        return number
    }
}
