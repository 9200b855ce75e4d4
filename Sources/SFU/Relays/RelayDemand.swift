import RTC

/// What the subscribers of one node demand of the tracks of a client on another node.
struct RelayDemand: Equatable, Sendable {
    var client: Key
    var number: UInt32
    /// At most `RelayMessage.maxTracks`.
    var tracks: [Track]

    /// The demand of one track.
    /// ```
    ///  id (4) · wanted (1) · refused (1) · codecs (1) · decoders (1 for each codec)
    ///         · encodings (1) · for each: index (1) · generation (1) · channel (2)
    /// ```
    struct Track: Equatable, Sendable {
        /// The track's id in the listing.
        var id: UInt32
        /// See `LayerDemand.wanted` and `LayerDemand.refused`.
        var wanted: UInt8 = 0
        var refused: UInt8 = 0
        /// For each codec of the track, the number of subscribers that can decode it, at most 255. Empty if there are none.
        var decoders: [UInt8] = []
        /// The encodings to send.
        var encodings: [Encoding] = []
    }

    /// An encoding that is demanded, and the SSRC that the receiver has chosen for it.
    struct Encoding: Equatable, Sendable {
        /// The index of the encoding in the track.
        var index: UInt8
        /// The encoding's generation in the listing. A demand for another generation is void.
        var generation: UInt8
        /// Below `RelayChannels.count`.
        var channel: UInt16
    }

    init(client: Key, number: UInt32, tracks: [Track]) {
        (self.client, self.number, self.tracks) = (client, number, tracks)
    }

    init?(_ reader: inout ByteReader) {
        guard let client = reader.key(), let number = reader.u32(), let count = reader.u8(),
            count <= RelayMessage.maxTracks
        else { return nil }
        var tracks: [Track] = []
        for _ in 0..<count {
            guard let track = Track(&reader) else { return nil }
            tracks.append(track)
        }
        self.init(client: client, number: number, tracks: tracks)
    }

    func write(to writer: inout ByteWriter) {
        writer.key(client)
        writer.u32(number)
        let tracks = tracks.prefix(RelayMessage.maxTracks)
        writer.u8(UInt8(tracks.count))
        for track in tracks { track.write(to: &writer) }
    }
}

extension RelayDemand.Track {
    fileprivate init?(_ reader: inout ByteReader) {
        guard let id = reader.u32(), let wanted = reader.u8(), let refused = reader.u8(), let codecs = reader.u8(),
            codecs <= RelayMessage.maxCodecs, let decoders = reader.take(Int(codecs)), let count = reader.u8(),
            count <= RelayMessage.maxEncodings
        else { return nil }
        (self.id, self.wanted, self.refused, self.decoders) = (id, wanted, refused, Array(decoders))
        for _ in 0..<count {
            guard let index = reader.u8(), index < RelayMessage.maxEncodings, let generation = reader.u8(),
                let channel = reader.u16(), channel < RelayChannels.count
            else { return nil }
            encodings.append(RelayDemand.Encoding(index: index, generation: generation, channel: channel))
        }
    }

    fileprivate func write(to writer: inout ByteWriter) {
        writer.u32(id)
        writer.u8(wanted)
        writer.u8(refused)
        let decoders = decoders.prefix(RelayMessage.maxCodecs)
        writer.u8(UInt8(decoders.count))
        for count in decoders { writer.u8(count) }
        let encodings = encodings.prefix(RelayMessage.maxEncodings)
        writer.u8(UInt8(encodings.count))
        for encoding in encodings {
            writer.u8(encoding.index)
            writer.u8(encoding.generation)
            writer.u16(encoding.channel)
        }
    }
}

/// Keeps demanding an encoding for a while after the last subscriber that needed it has gone. A subscriber that returns, or that
/// switches between two layers, then needs no keyframe. New demand takes effect at once.
struct HeldDemand: Equatable {
    /// How long an encoding is kept. Shorter than `LayerAnnouncement.layerReleaseDelay`, because its packets cross without a subscriber.
    static let releaseDelay = MediaInterval.milliseconds(500)

    /// When each encoding was last needed; nil if it never was.
    private var neededAt = [MediaTime?](repeating: nil, count: RelayMessage.maxEncodings)

    /// - Parameter needed: one bit for each encoding that subscribers need now.
    /// - Returns: one bit for each encoding to demand.
    mutating func update(_ needed: UInt8, now: MediaTime) -> UInt8 {
        var held: UInt8 = 0
        for index in neededAt.indices {
            let bit = UInt8(1) << UInt8(index)
            if needed & bit != 0 { neededAt[index] = now }
            if let at = neededAt[index], now - at < Self.releaseDelay { held |= bit }
        }
        return held
    }
}
