import RTC

/// Who gets which of a publisher's encodings, and which of them anybody wants.
///
/// The choice is made when something changes: a wish, a size, which encodings live. Another encoding takes over at
/// its next keyframe; until then the former goes on, so that no picture stands still.
extension Router {
    /// Decides for all who watch a track. Allocates nothing.
    func select(_ track: IncomingTrack) {
        track.needsSelection = false
        track.judgeLife()
        for encoding in track.encodings { encoding.isWatched = false }
        track.announcement.wanted = 0
        for subscriber in track.subscribers { select(for: subscriber, of: track) }
    }

    private func select(for subscriber: OutgoingTrack, of track: IncomingTrack) {
        let current = subscriber.target?.index
        let preference = subscriber.preference
        let ideal = Layer.best(of: track.layers, for: preference, current: current, livingOnly: false)
        let living = Layer.best(of: track.layers, for: preference, current: current, livingOnly: true)
        guard let ideal else { return }
        let index = living ?? current ?? ideal
        guard track.encodings.indices.contains(index) else { return }
        let target = track.encodings[index]
        if subscriber.target !== target || subscriber.encoding == nil {
            subscriber.target = target
            if track.kind == .video, subscriber.encoding !== target {
                target.keyframes.want()
                urgent.append(track.peer)
            }
        }
        subscriber.thinning.wanted = track.layers[index].rates.temporalLayer(
            for: preference.frameRate, current: subscriber.thinning.wanted
        )
        target.isWatched = true
        subscriber.encoding?.isWatched = true
        track.announcement.wanted |= 1 << UInt8(ideal) | 1 << UInt8(index)
        if let encoding = subscriber.encoding { track.announcement.wanted |= 1 << UInt8(encoding.index) }
    }

    /// What time does to encodings.
    func attendLayers(of peer: Peer, now: MediaTime) {
        for track in peer.incoming where track.kind == .video {
            for index in track.layers.indices where track.layers[index].rates.measure(now: now) {
                track.needsSelection = true
            }
            if track.hasFallenSilent { track.needsSelection = true }
            if track.needsSelection { select(track) }
            if track.encodings.count > 1 { announce(track, now: now) }
        }
    }

    private func announce(_ track: IncomingTrack, now: MediaTime) {
        guard let publication = track.publication,
            let wanted = track.announcement.next(for: publication.stream, now: now)
        else { return }
        let rids = track.encodings.filter { wanted >> UInt8($0.index) & 1 == 1 }.compactMap(\.rid)
        events.append(
            .layersWanted(
                stream: publication.stream, session: publication.session, client: publication.client, rids: rids
            )
        )
    }
}

extension IncomingTrack {
    /// An encoding is dead when another of the same picture went on for this long without it: a line that is down, or
    /// a picture that stands still, kills none.
    static let lifetime = MediaInterval.milliseconds(500)

    private var newestPacketAt: MediaTime? {
        var newest: MediaTime?
        for encoding in encodings {
            if let at = encoding.lastPacketAt { newest = newest.map { max($0, at) } ?? at }
        }
        return newest
    }

    private func isAlive(_ encoding: IncomingEncoding, _ newest: MediaTime?) -> Bool {
        guard let newest, let at = encoding.lastPacketAt else { return false }
        return newest - at <= Self.lifetime
    }

    func judgeLife() {
        let newest = newestPacketAt
        for encoding in encodings { layers[encoding.index].isAlive = isAlive(encoding, newest) }
    }

    var hasFallenSilent: Bool {
        guard encodings.count > 1 else { return false }
        let newest = newestPacketAt
        return encodings.contains { layers[$0.index].isAlive && !isAlive($0, newest) }
    }
}

/// What the publisher is told of the encodings that are wanted: of another one at once, of one that is not any more
/// after a while, since whoever comes back or changes his mind should not wait for a keyframe. So there are few
/// messages, whatever subscribers do.
struct LayerAnnouncement: Sendable {
    /// Without anybody who wants it for this long an encoding need not be made.
    static let patience = MediaInterval.seconds(2)

    /// A bit for each encoding that somebody gets or should.
    var wanted: UInt8 = 0
    private var stream: Key?
    private var told: UInt8?
    private var begunAt: MediaTime?
    private var wantedAt = [MediaTime?](repeating: nil, count: IncomingTrack.mostEncodings)

    /// - Returns: what to tell now, if it is news.
    mutating func next(for stream: Key, now: MediaTime) -> UInt8? {
        if self.stream != stream {
            (self.stream, told, begunAt) = (stream, nil, now)
            for index in wantedAt.indices { wantedAt[index] = nil }
        }
        var current: UInt8 = 0
        for index in wantedAt.indices {
            let bit = UInt8(1) << UInt8(index)
            if wanted & bit != 0 { wantedAt[index] = now }
            if let at = wantedAt[index], now - at < Self.patience { current |= bit }
        }
        // Of a new stream it is not known what is made: it is told what is wanted, or after a while that nothing is.
        if told == nil, current == 0, let begunAt, now - begunAt < Self.patience { return nil }
        guard told != current else { return nil }
        told = current
        return current
    }
}
