import RTC

/// One track in the list of a client's tracks. A list has one part for each track, or a single part without a track if it is empty.
struct RelayListingPart: Equatable, Sendable {
    var client: Key
    /// The number of the list.
    var number: UInt32
    /// The index of this part, and the number of parts.
    var index: UInt8
    var count: UInt8
    /// Nil if `count` is 0.
    var track: RemoteTrackState?

    init(client: Key, number: UInt32, index: UInt8, count: UInt8, track: RemoteTrackState?) {
        (self.client, self.number, self.index, self.count, self.track) = (client, number, index, count, track)
    }

    init?(_ reader: inout ByteReader) {
        guard let client = reader.key(), let number = reader.u32(), let index = reader.u8(), let count = reader.u8(),
            count <= RelayMessage.maxTracks
        else { return nil }
        self.init(client: client, number: number, index: index, count: count, track: nil)
        guard count > 0 else { return }
        guard index < count, let track = RemoteTrackState(&reader) else { return nil }
        self.track = track
    }

    func write(to writer: inout ByteWriter) {
        writer.key(client)
        writer.u32(number)
        writer.u8(index)
        writer.u8(count)
        if count > 0 { track?.write(to: &writer) }
    }
}

/// What the subscribers' node must know about a track whose publisher is on another node.
/// ```
///  id (4) · 0 for audio, 1 for video (1) · mid (text) · codecs (1) · for each: codec
///         · extensions (1) · for each: 0 for the audio level, 1 for the capture time (1) · id (1)
///         · encodings (1) · for each: Encoding
///  text:  length (1) · UTF-8
///  codec: kind (1) · payload type (1) · that of retransmissions, 255 if there is none (1) · parameters
/// ```
struct RemoteTrackState: Equatable, Sendable {
    /// Identifies the track. A client that connects again has other tracks, even if their mids are the same.
    var id: UInt32
    /// At most 16 bytes, the limit for descriptions.
    var mid: String
    var isVideo: Bool
    /// At most `RelayMessage.maxCodecs`, with the publisher's payload types.
    var codecs: [Codec]
    /// The publisher's ids of the extensions that are forwarded.
    var extensions: [HeaderExtension: UInt8]
    /// At most `RelayMessage.maxEncodings`.
    var encodings: [Encoding]

    /// One encoding, and what the choice of layers needs to know about it.
    /// ```
    ///  rid (text, empty if there is none) · generation (1) · flags (1) · codec, 255 if unknown (1) · width (2) · height (2)
    ///      · frames in 10 s up to each temporal layer (4 × 4) · bytes in 1 s up to each (4 × 4)
    /// ```
    struct Encoding: Equatable, Sendable {
        var rid: String?
        /// Increases, and wraps, when the encoding starts with another source.
        var generation: UInt8 = 0
        /// The index of the latest packet's codec.
        var codec: UInt8?
        var size: PictureSize?
        var isAlive = false
        var isMissing = false
        var hasTemporalLayers = false
        var framesPer10s: SIMD4<UInt32>?
        var bytesPerSecond: SIMD4<UInt32>?

        /// Which of the optional members follow, and the properties that are true or false.
        fileprivate struct Flags: OptionSet {
            let rawValue: UInt8
            static let alive = Flags(rawValue: 1)
            static let missing = Flags(rawValue: 2)
            static let temporalLayers = Flags(rawValue: 4)
            static let size = Flags(rawValue: 8)
            static let frames = Flags(rawValue: 16)
            static let bytes = Flags(rawValue: 32)
        }
    }

    /// The header extensions that are forwarded (`HeaderExtension.isForwarded`), in the order of their numbers in messages.
    private static let forwarded: [HeaderExtension] = [.audioLevel, .absCaptureTime]
    /// The maximum length of a mid or rid in bytes.
    static let maxText = 16

    init(
        id: UInt32, mid: String, isVideo: Bool, codecs: [Codec], extensions: [HeaderExtension: UInt8],
        encodings: [Encoding]
    ) {
        (self.id, self.mid, self.isVideo, self.codecs) = (id, mid, isVideo, codecs)
        (self.extensions, self.encodings) = (extensions, encodings)
    }
}

extension RemoteTrackState {
    fileprivate init?(_ reader: inout ByteReader) {
        guard let id = reader.u32(), let kind = reader.u8(), kind < 2, let mid = reader.text(), !mid.isEmpty,
            let codecCount = reader.u8(), codecCount <= RelayMessage.maxCodecs
        else { return nil }
        self.init(id: id, mid: mid, isVideo: kind == 1, codecs: [], extensions: [:], encodings: [])
        for _ in 0..<codecCount {
            guard let codec = Codec(relay: &reader), codec.kind.isAudio != isVideo else { return nil }
            codecs.append(codec)
        }
        guard let extensionCount = reader.u8(), extensionCount <= Self.forwarded.count else { return nil }
        for _ in 0..<extensionCount {
            guard let name = reader.u8(), Self.forwarded.indices.contains(Int(name)), let id = reader.u8(), id > 0
            else { return nil }
            extensions[Self.forwarded[Int(name)]] = id
        }
        guard let encodingCount = reader.u8(), encodingCount <= RelayMessage.maxEncodings else { return nil }
        for _ in 0..<encodingCount {
            guard let encoding = Encoding(&reader) else { return nil }
            encodings.append(encoding)
        }
    }

    fileprivate func write(to writer: inout ByteWriter) {
        writer.u32(id)
        writer.u8(isVideo ? 1 : 0)
        writer.text(mid)
        let codecs = codecs.prefix(RelayMessage.maxCodecs)
        writer.u8(UInt8(codecs.count))
        for codec in codecs { codec.write(relay: &writer) }
        writer.u8(UInt8(Self.forwarded.count(where: { extensions[$0] != nil })))
        for (index, name) in Self.forwarded.enumerated() {
            guard let id = extensions[name] else { continue }
            writer.u8(UInt8(index))
            writer.u8(id)
        }
        let encodings = encodings.prefix(RelayMessage.maxEncodings)
        writer.u8(UInt8(encodings.count))
        for encoding in encodings { encoding.write(to: &writer) }
    }
}

extension RemoteTrackState.Encoding {
    fileprivate init?(_ reader: inout ByteReader) {
        guard let rid = reader.text(), let generation = reader.u8(),
            let flags = reader.u8().map({ Flags(rawValue: $0) }), let codec = reader.u8(),
            let width = reader.u16(), let height = reader.u16(), let frames = reader.vector(),
            let bytes = reader.vector()
        else { return nil }
        self.init(rid: rid.isEmpty ? nil : rid, generation: generation, codec: codec == 255 ? nil : codec)
        if flags.contains(.size), width > 0, height > 0 { size = PictureSize(width: width, height: height) }
        (isAlive, isMissing) = (flags.contains(.alive), flags.contains(.missing))
        hasTemporalLayers = flags.contains(.temporalLayers)
        if flags.contains(.frames) { framesPer10s = frames }
        if flags.contains(.bytes) { bytesPerSecond = bytes }
    }

    fileprivate func write(to writer: inout ByteWriter) {
        writer.text(rid ?? "")
        writer.u8(generation)
        var flags: Flags = []
        if isAlive { flags.insert(.alive) }
        if isMissing { flags.insert(.missing) }
        if hasTemporalLayers { flags.insert(.temporalLayers) }
        if size != nil { flags.insert(.size) }
        if framesPer10s != nil { flags.insert(.frames) }
        if bytesPerSecond != nil { flags.insert(.bytes) }
        writer.u8(flags.rawValue)
        writer.u8(codec ?? 255)
        writer.u16(size?.width ?? 0)
        writer.u16(size?.height ?? 0)
        writer.vector(framesPer10s ?? .zero)
        writer.vector(bytesPerSecond ?? .zero)
    }
}

extension Codec {
    /// The codec in a message.
    private enum Tag: UInt8 { case opus, red, vp8, h264, vp9, av1 }
    /// The maximum number of payload types in the parameters of redundant audio.
    private static let maxRedundant = 8

    fileprivate init?(relay reader: inout ByteReader) {
        guard let tag = reader.u8().flatMap({ Tag(rawValue: $0) }), let payloadType = reader.u8(), payloadType < 128,
            let repair = reader.u8(), repair < 128 || repair == 255
        else { return nil }
        var (kind, fmtp) = (Kind.opus, "")
        switch tag {
        case .opus: kind = .opus
        case .vp8: kind = .vp8
        case .red:
            guard let count = reader.u8(), count <= Self.maxRedundant, let types = reader.take(Int(count)) else {
                return nil
            }
            (kind, fmtp) = (.red, Set(types).sorted().map { "\($0)" }.joined(separator: "/"))
        case .h264:
            guard let profile = reader.u24(), let mode = reader.u8() else { return nil }
            kind = .h264(profileLevelID: profile, packetizationMode: mode)
        case .vp9, .av1:
            guard let profile = reader.u8() else { return nil }
            kind = tag == .vp9 ? .vp9(profile: profile) : .av1(profile: profile)
        }
        self.init(kind, payloadType: payloadType, rtxPayloadType: repair == 255 ? nil : repair, fmtp: fmtp)
    }

    fileprivate func write(relay writer: inout ByteWriter) {
        func begin(_ tag: Tag) {
            writer.u8(tag.rawValue)
            writer.u8(payloadType)
            writer.u8(rtxPayloadType ?? 255)
        }
        switch kind {
        case .opus: begin(.opus)
        case .vp8: begin(.vp8)
        case .red:
            begin(.red)
            let types = redundantPayloadTypes.sorted().prefix(Self.maxRedundant)
            writer.u8(UInt8(types.count))
            for type in types { writer.u8(type) }
        case .h264(let profile, let mode):
            begin(.h264)
            writer.u24(profile)
            writer.u8(mode)
        case .vp9(let profile):
            begin(.vp9)
            writer.u8(profile)
        case .av1(let profile):
            begin(.av1)
            writer.u8(profile)
        }
    }
}

extension ByteReader {
    /// Reads a text of at most `RemoteTrackState.maxText` bytes.
    fileprivate mutating func text() -> String? {
        guard let length = u8(), length <= RemoteTrackState.maxText, let bytes = take(Int(length)) else { return nil }
        return String(validating: bytes, as: UTF8.self)
    }

    fileprivate mutating func vector() -> SIMD4<UInt32>? {
        guard let first = u32(), let second = u32(), let third = u32(), let fourth = u32() else { return nil }
        return SIMD4(first, second, third, fourth)
    }
}

extension ByteWriter {
    /// Writes a text, or an empty one if it is too long.
    fileprivate mutating func text(_ text: String) {
        let bytes = text.utf8.count <= RemoteTrackState.maxText ? Array(text.utf8) : []
        u8(UInt8(bytes.count))
        append(bytes)
    }

    fileprivate mutating func vector(_ vector: SIMD4<UInt32>) { for index in 0..<4 { u32(vector[index]) } }
}
