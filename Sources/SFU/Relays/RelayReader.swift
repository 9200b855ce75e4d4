import RTC

/// Sends a track of one of this node's publishers over a relay, as far as the other node's subscribers watch it.
final class RelayReader: FeedReader {
    let id: UInt32
    unowned let track: FeedTrack
    private unowned let sender: RelaySender
    private unowned let listing: RelayListing
    /// What the other node demands.
    private var demand: RelayDemand.Track
    /// For each encoding that is sent, its channel.
    private var channels = [RelayChannel?](repeating: nil, count: RelayMessage.maxEncodings)
    /// For each encoding, how often it has started with another source.
    private var generations = [UInt8](repeating: 0, count: RelayMessage.maxEncodings)

    init(_ track: FeedTrack, id: UInt32, sender: RelaySender, listing: RelayListing) {
        (self.track, self.id, self.sender, self.listing) = (track, id, sender, listing)
        demand = RelayDemand.Track(id: id)
    }

    /// Returns what the other node must know about the track.
    /// - Parameter level: the number of the largest layers that are not offered. They are listed as if the publisher did not send them, so
    ///   the other node's subscribers switch to smaller layers.
    func state(level: Int, now: MediaTime) -> RemoteTrackState {
        let hidden = hidden(at: level)
        return RemoteTrackState(
            id: id, mid: track.mid, isVideo: track.kind == .video, codecs: track.codecs.forRelay,
            extensions: track.extensions.filter { $0.key.isForwarded },
            encodings: track.feeds.prefix(RelayMessage.maxEncodings).map { feed in
                let layer = track.layers[feed.index]
                return RemoteTrackState.Encoding(
                    rid: feed.rid, generation: generations[feed.index], codec: feed.codec.map { UInt8(clamping: $0) },
                    size: layer.size, isAlive: layer.isAlive && hidden >> UInt8(feed.index) & 1 == 0,
                    isMissing: layer.isMissingUntil.map { $0 > now } ?? false,
                    hasTemporalLayers: layer.rates.hasTemporalLayers, framesPer10s: layer.rates.framesPer10s,
                    bytesPerSecond: layer.rates.bytesPerSecond)
            })
    }

    /// Returns one bit for each layer that is not offered at a level of `RelayThinning`. These are the largest layers that the publisher
    /// sends. The smallest one is always offered.
    private func hidden(at level: Int) -> UInt8 {
        guard level > 0, track.kind == .video else { return 0 }
        let layers = track.layers.indices.prefix(channels.count).filter { track.layers[$0].isAlive }
            .sorted { (track.area($0), $1) > (track.area($1), $0) }
        return layers.dropLast().prefix(level).reduce(0) { $0 | 1 << UInt8($1) }
    }

    /// Whether a level drops a layer that is sent now.
    func drops(at level: Int) -> Bool {
        let hidden = hidden(at: level)
        return channels.indices.contains { channels[$0] != nil && hidden >> UInt8($0) & 1 == 1 }
    }

    /// Sends what is demanded, and nothing else.
    func apply(_ demand: RelayDemand.Track, now: MediaTime) {
        self.demand = demand
        var wanted = [UInt16?](repeating: nil, count: channels.count)
        for encoding in demand.encodings where encoding.generation == generations[Int(encoding.index)] {
            wanted[Int(encoding.index)] = encoding.channel
        }
        for index in channels.indices where channels[index].map({ $0.number != wanted[index] }) ?? false { end(index) }
        for (index, number) in wanted.enumerated() where channels[index] == nil {
            guard let number, track.feeds.indices.contains(index) else { continue }
            begin(track.feeds[index], in: number, now: now)
        }
        track.select()
    }

    private func begin(_ feed: Feed, in number: UInt16, now: MediaTime) {
        guard let channel = sender.begin(feed, of: self, in: number) else { return }
        channels[feed.index] = channel
        if let report = feed.report {
            // The other node uses the time of arrival as the time of the report. Publishers report audio only every few seconds, so
            // without this, a recording would place the stream up to that much too late.
            let present = report.advanced(by: now - report.arrivedAt, clockRate: track.clockRate)
            sender.send(present, on: channel)
        }
        guard track.kind == .video else { return }
        feed.keyframes.subscriberElsewhere(.start, now: now)
        track.requestKeyframeSoon()
    }

    private func end(_ index: Int) {
        channels[index]?.end()
        channels[index] = nil
    }

    /// Stops sending. Nothing more is read from the track.
    func stop() {
        for index in channels.indices { end(index) }
    }

    // MARK: FeedReader

    /// False although packets wait: a channel carries only packets that arrive after it has begun, so a waiting keyframe is not sent on
    /// channels that begin later.
    var holdsPackets: Bool { false }

    func receive(_ packet: FeedPacket, of feed: Feed, arrivedAt: MediaTime) {
        guard feed.index < channels.count, let channel = channels[feed.index],
            track.codecs.indices.contains(packet.codec)
        else {
            return
        }
        // The other node finds the copies in redundant audio itself.
        guard track.codecs[packet.codec].payloadType == packet.packet.payloadType else { return }
        sender.add(packet, to: channel)
    }

    /// The channel's sequence numbers and timestamps have no relation to those of the new source, so the other node must demand the
    /// encoding again.
    func restart(_ feed: Feed) {
        guard feed.index < channels.count else { return }
        end(feed.index)
        generations[feed.index] &+= 1
        listing.needsUpdate = true
    }

    func reported(_ feed: Feed) {
        if feed.index < channels.count, let channel = channels[feed.index], let report = feed.report {
            sender.send(report, on: channel)
        }
    }

    /// The other node must also know the new codecs.
    func forget(_ feed: Feed) {
        if feed.index < channels.count { channels[feed.index]?.pending.removeAll(keepingCapacity: true) }
        listing.needsUpdate = true
    }

    /// The packets that are missing until the next one were not sent to anybody.
    func pause() { for case let channel? in channels { sender.beginPause(of: channel) } }

    func end() {
        stop()
        listing.remove(self)
    }

    func select() {
        listing.needsUpdate = true
        track.demand.wanted |= demand.wanted
        track.demand.refused |= demand.refused
        for feed in track.feeds where feed.index < channels.count && channels[feed.index] != nil {
            feed.isWatched = true
        }
    }

    func decoders(of codec: Int) -> Int { demand.decoders.indices.contains(codec) ? Int(demand.decoders[codec]) : 0 }
}

extension [Codec] {
    /// The codecs as another node gets them: with the publisher's payload types, but of their parameters only those of redundant audio,
    /// and with retransmissions for each video codec.
    var forRelay: [Codec] {
        let codecs = prefix(RelayMessage.maxCodecs)
        var used = Set(codecs.map(\.payloadType)).union(codecs.compactMap(\.rtxPayloadType))
        return codecs.map { codec in
            var repair = codec.kind.isAudio ? nil : codec.rtxPayloadType
            if repair == nil, !codec.kind.isAudio {
                // The ranges for dynamic payload types, without those that look like RTCP (RFC 5761 §4).
                repair = ([96...127, 35...63] as [ClosedRange<UInt8>]).joined().first { !used.contains($0) }
                if let repair { used.insert(repair) }
            }
            return Codec(
                codec.kind, payloadType: codec.payloadType, rtxPayloadType: repair,
                fmtp: codec.redundantPayloadTypes.sorted().map { "\($0)" }.joined(separator: "/"))
        }
    }
}
