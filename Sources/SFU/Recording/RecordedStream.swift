import RTC

/// A recording of a publication. It reads the tracks that this router's publisher sends; for a publisher of another router it does
/// nothing, because that router records the stream.
final class RecordedStream {
    let id: UInt32
    let request: RecordingRequest
    private let writer: RecordingWriter
    private var readers: [RecordedTrack] = []
    private var sentTracks: RecordingMessage?
    private var forwarded = (audio: true, video: true)

    init(_ id: UInt32, _ request: RecordingRequest, _ writer: RecordingWriter) {
        (self.id, self.request, self.writer) = (id, request, writer)
    }

    /// Reads the publication's current tracks. Called again when they or what is forwarded have changed.
    func attach(_ publication: Publication, _ feeds: FeedTable) {
        let own = [MediaKind.audio, .video].compactMap { kind -> FeedTrack? in
            let track = publication.mid(kind).flatMap { feeds.track($0, of: publication.client) }
            guard let track, track.kind == kind, track.loop == nil, !track.isEnded else { return nil }
            return track
        }
        let tracks = own.filter { $0.kind == .audio ? request.audio : request.video }
        for reader in readers where !tracks.contains(where: { $0 === reader.track }) { reader.detach() }
        readers.removeAll { reader in !tracks.contains { $0 === reader.track } }
        // A stream of which nothing is recorded is published too.
        guard !own.isEmpty else { return }
        sendTracks(publication)
        for track in tracks {
            let isOn = publication.forwards(track.kind)
            note(track.kind, isOn)
            if let reader = readers.first(where: { $0.track === track }) {
                reader.setForwarded(isOn)
            } else {
                let reader = RecordedTrack(track, of: self, isForwarded: isOn)
                readers.append(reader)
                track.add(reader)
                track.needsSelection = true
            }
            if track.needsSelection { track.select() }
        }
    }

    private func sendTracks(_ publication: Publication) {
        let message = RecordingMessage.tracks(
            audio: request.audio && publication.mids.audio != nil, video: request.video && publication.mids.video != nil
        )
        guard message != sentTracks else { return }
        sentTracks = message
        send(message)
    }

    private func note(_ kind: MediaKind, _ isOn: Bool) {
        let known = kind == .audio ? forwarded.audio : forwarded.video
        guard known != isOn else { return }
        if kind == .audio { forwarded.audio = isOn } else { forwarded.video = isOn }
        send(.forwarded(isVideo: kind == .video, isOn, at: writer.now))
    }

    func requestKeyframe() { for reader in readers { reader.requestKeyframe() } }

    /// The reader's track has ended.
    func remove(_ reader: RecordedTrack) { readers.removeAll { $0 === reader } }

    /// Stops reading.
    func end() {
        for reader in readers { reader.detach() }
        readers = []
        send(.ended)
    }

    func send(_ message: RecordingMessage) { writer.send(message, of: id) }

    func send(_ packet: FeedPacket, isVideo: Bool, arrivedAt: MediaTime) {
        writer.send(packet, isVideo: isVideo, of: id, arrivedAt: arrivedAt)
    }
}

/// Reads one track for a recording. Of simulcast it reads one layer, and switches to another one at a keyframe.
final class RecordedTrack: FeedReader {
    unowned let track: FeedTrack
    private unowned let stream: RecordedStream
    /// The feed whose packets are recorded; nil until it has begun.
    private var feed: Feed?
    /// The feed to switch to at its next keyframe.
    private var target: Feed?
    /// The index of the codec that was announced; nil if the source must be announced again.
    private var codec: Int?
    /// The feed that was announced last.
    private var announced: Feed?
    /// Whether the timestamps of this feed are unrelated to those that were announced.
    private var isNew = true
    private var isForwarded: Bool

    init(_ track: FeedTrack, of stream: RecordedStream, isForwarded: Bool) {
        (self.track, self.stream, self.isForwarded) = (track, stream, isForwarded)
    }

    private var isVideo: Bool { track.kind == .video }

    func setForwarded(_ isForwarded: Bool) {
        guard self.isForwarded != isForwarded else { return }
        self.isForwarded = isForwarded
        // What was not forwarded is not a loss, so the packets after it are announced as another source.
        if isVideo { feed = nil }
        (codec, target) = (nil, nil)
        track.needsSelection = true
    }

    func requestKeyframe() {
        guard isVideo, isForwarded, let feed = target ?? feed else { return }
        feed.keyframes.subscriberWaits()
        track.requestKeyframeSoon()
    }

    func detach() { track.remove(self) }

    // MARK: FeedReader

    var holdsPackets: Bool { false }

    func receive(_ packet: FeedPacket, of feed: Feed, arrivedAt: MediaTime) {
        guard isForwarded, track.codecs.indices.contains(packet.codec) else { return }
        guard isVideo else { return receiveAudio(packet, of: feed, arrivedAt: arrivedAt) }
        guard let format = track.codecs[packet.codec].kind.payloadFormat, stream.request.formats.contains(format) else {
            return
        }
        if feed !== self.feed, !begin(feed, packet) { return }
        announce(feed, packet, format)
        stream.send(packet, isVideo: true, arrivedAt: arrivedAt)
    }

    /// Switches to a feed if the packet begins a keyframe of the feed that was selected.
    private func begin(_ feed: Feed, _ packet: FeedPacket) -> Bool {
        guard feed === target else { return false }
        guard packet.startsKeyframe else {
            feed.keyframes.subscriberWaits()
            return false
        }
        (self.feed, codec) = (feed, nil)
        // The previous feed is no longer needed.
        track.needsSelection = true
        return true
    }

    private func receiveAudio(_ packet: FeedPacket, of feed: Feed, arrivedAt: MediaTime) {
        var packet = packet
        if track.codecs[packet.codec].kind == .red {
            // The copies of lost packets have been passed on before this packet.
            guard let primary = RedundantAudio.primary(packet.payload), let start = packet.bytes.baseAddress,
                let base = primary.baseAddress
            else { return }
            let offset = base - start
            packet.packet = packet.packet.carried(
                in: offset..<offset + primary.count, timestamp: packet.packet.timestamp)
        }
        if self.feed !== feed { (self.feed, codec) = (feed, nil) }
        // Redundant and plain packets may alternate. Both are the same source.
        if codec == nil { announce(feed, packet, nil) }
        stream.send(packet, isVideo: false, arrivedAt: arrivedAt)
    }

    private func announce(_ feed: Feed, _ packet: FeedPacket, _ format: VideoPayloadFormat?) {
        guard codec != packet.codec else { return }
        codec = packet.codec
        stream.send(.source(format, isNew: isNew || feed !== announced))
        (announced, isNew) = (feed, false)
        if let report = feed.report { send(report) }
    }

    private func send(_ report: SourceReport) {
        stream.send(
            .report(
                isVideo: isVideo, ntp: report.ntp, timestamp: report.timestamp, arrivedAt: report.arrivedAt))
    }

    func restart(_ feed: Feed) {
        guard feed === self.feed else { return }
        if isVideo { self.feed = nil }
        (codec, isNew) = (nil, true)
    }

    func reported(_ feed: Feed) {
        // Without an announced source, the report follows when the source begins.
        if feed === self.feed, codec != nil, let report = feed.report { send(report) }
    }

    func forget(_ feed: Feed) { if feed === self.feed { codec = nil } }

    /// Silence is added where nothing arrives.
    func pause() {}

    func end() { stream.remove(self) }

    func select() {
        guard isForwarded else { return }
        guard isVideo else {
            for feed in track.feeds { feed.isWatched = true }
            return
        }
        guard let ideal = layer(aliveOnly: false) else { return }
        let index = layer(aliveOnly: true) ?? target?.index ?? ideal
        guard track.feeds.indices.contains(index) else { return }
        let next = track.feeds[index]
        guard canRecord(next) else {
            // A demand that cannot be met: the publisher is advised to send another codec.
            if track.codecs.indices.contains(where: { decoders(of: $0) > 0 }) {
                track.demand.refused |= 1 << UInt8(ideal) | 1 << UInt8(index)
            }
            return
        }
        if next !== target || feed == nil {
            target = next
            if next !== feed {
                next.keyframes.subscriberSwitches()
                track.requestKeyframeSoon()
            }
        }
        next.isWatched = true
        feed?.isWatched = true
        track.demand.wanted |= 1 << UInt8(ideal) | 1 << UInt8(index)
        if let feed { track.demand.wanted |= 1 << UInt8(feed.index) }
    }

    /// Returns the largest layer within the requested height, or the smallest if all are higher.
    private func layer(aliveOnly: Bool) -> Int? {
        let layers = track.layers
        func height(_ index: Int) -> Int { Int((layers[index].size ?? Layer.guess(index, among: layers)).height) }
        let candidates = layers.indices.filter { layers[$0].isAlive || !aliveOnly }
        let fitting = candidates.filter { height($0) <= stream.request.maxHeight }
        return fitting.max { height($0) < height($1) } ?? candidates.min { height($0) < height($1) }
    }

    private func canRecord(_ feed: Feed) -> Bool { feed.codec.map { decoders(of: $0) > 0 } ?? true }

    func decoders(of codec: Int) -> Int {
        guard isForwarded, track.codecs.indices.contains(codec) else { return 0 }
        guard let format = track.codecs[codec].kind.payloadFormat else { return 1 }
        return stream.request.formats.contains(format) ? 1 : 0
    }
}
