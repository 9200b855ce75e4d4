import RTC

/// The start of fragmented MP4, without audio and video: what a decoder needs before the first fragment (the boxes `ftyp` and
/// `moov`, ISO/IEC 14496-12 §8.8; the Media Initialization Section of RFC 8216 §3.3).
public struct MP4Initialization: Hashable, Sendable {
    /// A video track or an audio track.
    public struct Track: Hashable, Sendable {
        /// What a track contains.
        public enum Kind: Sendable { case video, audio }

        /// Its number in fragments.
        public var id: UInt32
        public var kind: Kind
        /// The units of time per second, at least 1.
        public var timescale: UInt32
        /// The codec as in `CODECS` of a playlist (RFC 6381), such as `avc1.42c01f` or `mp4a.40.2`.
        public var codec: String
        /// The size of the video in pixels; 0 for audio.
        public var width = 0, height = 0
        /// What applies to samples for which a fragment says nothing.
        var defaults = Defaults()

        /// Converts a time of this track. Fractions of a nanosecond are cut off.
        public func duration(of units: Int64) -> Duration {
            let (seconds, rest) = units.quotientAndRemainder(dividingBy: Int64(timescale))
            return .seconds(seconds) + .nanoseconds(rest * 1_000_000_000 / Int64(timescale))
        }
    }

    /// The values of a `trex` box, for samples whose fragment does not have them.
    struct Defaults: Hashable, Sendable {
        var duration: UInt32 = 0, size: UInt32 = 0, flags: UInt32 = 0
    }

    /// The boxes as they were read, for the start of a file.
    public let bytes: [UInt8]
    /// At most one video track and one audio track, in the order of the file.
    public private(set) var tracks: [Track] = []

    /// The track whose keyframes begin segments: the video if there is one.
    public var leading: Track { tracks.first { $0.kind == .video } ?? tracks[0] }

    /// - Parameter bytes: a `ftyp` box and a `moov` box.
    /// - Throws: `MediaFileError` with `damaged`, or with `otherCodec` for tracks that players of HLS would not play.
    init(_ bytes: [UInt8]) throws(MediaFileError) {
        self.bytes = bytes
        guard let movie = MP4BoxHeader.first("moov", in: bytes[...]) else {
            throw MediaFileError(.damaged, "has no movie box")
        }
        try MP4BoxHeader.children(movie) { kind, content throws(MediaFileError) in
            if kind == "trak" { tracks.append(try Track(trak: content)) }
        }
        guard let extends = MP4BoxHeader.first("mvex", in: movie) else {
            throw MediaFileError(.otherCodec, "is not fragmented MP4")
        }
        try MP4BoxHeader.children(extends) { kind, content throws(MediaFileError) in
            if kind == "trex" { try takeDefaults(content) }
        }
        let kinds = tracks.map(\.kind)
        guard !tracks.isEmpty, Set(kinds).count == kinds.count, Set(tracks.map(\.id)).count == tracks.count else {
            throw MediaFileError(.otherCodec, "does not have one video track, one audio track, or both")
        }
    }

    private mutating func takeDefaults(_ trex: ArraySlice<UInt8>) throws(MediaFileError) {
        let values = trex.read { reader -> (UInt32, Defaults)? in
            guard reader.skip(4), let id = reader.u32(), reader.skip(4), let duration = reader.u32(),
                let size = reader.u32(), let flags = reader.u32()
            else { return nil }
            return (id, Defaults(duration: duration, size: size, flags: flags))
        }
        guard let (id, defaults) = values else { throw MediaFileError(.damaged, "has a trex box that ends too early") }
        for index in tracks.indices where tracks[index].id == id { tracks[index].defaults = defaults }
    }
}

extension MP4Initialization.Track {
    /// Reads a `trak` box.
    fileprivate init(trak: ArraySlice<UInt8>) throws(MediaFileError) {
        guard let media = MP4BoxHeader.first("mdia", in: trak),
            let id = MP4BoxHeader.first("tkhd", in: trak).flatMap(Self.numberAfterTimes),
            let timescale = MP4BoxHeader.first("mdhd", in: media).flatMap(Self.numberAfterTimes), timescale > 0,
            let handler = MP4BoxHeader.first("hdlr", in: media)?.dropFirst(8).prefix(4),
            let table = MP4BoxHeader.first("minf", in: media).flatMap({ MP4BoxHeader.first("stbl", in: $0) }),
            let entries = MP4BoxHeader.first("stsd", in: table)?.dropFirst(8), let entry = MP4BoxHeader(entries),
            entry.size <= Int64(entries.count)
        else { throw MediaFileError(.damaged, "has a track that is not complete") }
        let content = entries.prefix(Int(entry.size)).dropFirst(entry.length)
        let codec: String?
        var size: (width: Int, height: Int) = (0, 0)
        let kind: Kind
        switch String(decoding: handler, as: UTF8.self) {
        case "vide":
            kind = .video
            size = content.read { reader in
                reader.skip(24) ? (Int(reader.u16() ?? 0), Int(reader.u16() ?? 0)) : (0, 0)
            }
            codec = Self.videoCodec(entry.kind, content.dropFirst(78))
        case "soun":
            kind = .audio
            codec = Self.audioCodec(entry.kind, content.dropFirst(28))
        default: throw MediaFileError(.otherCodec, "has a track that is neither video nor audio")
        }
        guard let codec else { throw MediaFileError(.otherCodec, "has a codec other than H.264, AAC and Opus") }
        self.init(id: id, kind: kind, timescale: timescale, codec: codec, width: size.width, height: size.height)
    }

    /// Returns the number after the times of creation and change, which have 64 bits in version 1: the id in `tkhd`, and the
    /// timescale in `mdhd`.
    private static func numberAfterTimes(_ content: ArraySlice<UInt8>) -> UInt32? {
        content.read { reader in
            guard let version = reader.u8(), reader.skip(3 + (version == 1 ? 16 : 8)) else { return nil }
            return reader.u32()
        }
    }

    private static func videoCodec(_ kind: String, _ boxes: ArraySlice<UInt8>) -> String? {
        guard kind == "avc1" || kind == "avc3", let record = MP4BoxHeader.first("avcC", in: boxes), record.count >= 4
        else { return nil }
        return kind + "." + record.dropFirst().prefix(3).map(hex).joined()
    }

    private static func audioCodec(_ kind: String, _ boxes: ArraySlice<UInt8>) -> String? {
        if kind == "Opus" { return "opus" }
        guard kind == "mp4a", let descriptor = MP4BoxHeader.first("esds", in: boxes) else { return nil }
        return descriptor.dropFirst(4).read { reader in
            // ES_Descriptor (ISO/IEC 14496-1 §7.2.6.5), with up to three optional parts.
            guard skipTag(3, &reader), reader.skip(2), let flags = reader.u8(),
                reader.skip((flags & 0x80 != 0 ? 2 : 0)),
                flags & 0x40 == 0 || reader.skip(Int(reader.u8() ?? 0)), reader.skip(flags & 0x20 != 0 ? 2 : 0),
                // DecoderConfigDescriptor, whose type 0x40 is AAC.
                skipTag(4, &reader), reader.u8() == 0x40, reader.skip(12),
                // AudioSpecificConfig begins with five bits for the kind of AAC. 31 would mean that more bits follow.
                skipTag(5, &reader), let first = reader.u8(), first >> 3 < 31
            else { return nil }
            return "mp4a.40.\(first >> 3)"
        }
    }

    /// Skips a descriptor's tag and its size, which has up to four bytes of seven bits.
    private static func skipTag(_ tag: UInt8, _ reader: inout ByteReader) -> Bool {
        guard reader.u8() == tag else { return false }
        for _ in 0..<4 {
            guard let byte = reader.u8() else { return false }
            if byte & 0x80 == 0 { return true }
        }
        return false
    }

    private static func hex(_ byte: UInt8) -> String {
        (byte < 16 ? "0" : "") + String(byte, radix: 16)
    }
}
