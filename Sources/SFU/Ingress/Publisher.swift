import RTC

/// The half of a peer connection over which a client publishes: its tracks, and the SSRCs that belong to them.
final class Publisher: PeerHalf {
    let link: PeerLink
    /// Whether the client is connected to another node, so that its packets arrive over a relay.
    let isRemote: Bool
    /// Whether subscribers' demand of a track may have changed. Read and reset by the relay of a remote publisher.
    var isDemandChanged = false {
        didSet { if isDemandChanged, !oldValue { onDemandChange?() } }
    }
    /// Called when `isDemandChanged` becomes true.
    var onDemandChange: (() -> Void)?
    private unowned let ingress: Ingress
    /// The tracks that the client publishes, in the order of the description's media sections.
    private(set) var tracks: [IncomingTrack] = []
    /// Maps each SSRC of the client to the encoding that it belongs to, and to whether it carries retransmissions
    /// (RTX).
    private(set) var sources: [UInt32: Source] = [:]
    /// The ids of the header extensions that identify a packet's section and encoding. They are the same in all sections of a
    /// bundle.
    private var midID: UInt8 = 0
    private var ridID: UInt8 = 0
    private var repairedRidID: UInt8 = 0
    private var transportSequenceID: UInt8 = 0
    /// Arrival times of the publisher's packets, if transport-wide congestion control was negotiated. They take 33 kB.
    var arrivals: TransportFeedback?
    var feedbackAt: MediaTime?
    var reportsAt: MediaTime?
    /// The number to add to the client's wall clock to get the server's; nil before the client's first sender report.
    private var clockOffset: MediaInterval? {
        didSet { for track in tracks { track.feedTrack.clockOffset = clockOffset } }
    }

    /// The encoding that an SSRC belongs to, and whether the SSRC carries the encoding's retransmissions.
    struct Source {
        var encoding: IncomingEncoding
        var isRepair: Bool
    }

    /// The maximum number of SSRCs. A camera and a screen, each in three encodings with retransmissions, and a
    /// microphone need fewer. Further SSRCs are ignored.
    static let maxSources = 64
    /// The maximum number of encodings in all sections. A camera and a screen, each in three encodings and with audio,
    /// need a quarter of this number. The history of a video encoding takes 750 kB.
    static let maxEncodings = 32
    var encodingCount: Int { tracks.reduce(0) { $0 + $1.encodings.count } }

    /// One of the client's SSRCs, for feedback about the whole transport; 0 if none is known.
    var mediaSSRC: UInt32 { sources.keys.first ?? 0 }

    init(link: PeerLink, ingress: Ingress, isRemote: Bool = false) {
        (self.link, self.ingress, self.isRemote) = (link, ingress, isRemote)
    }

    // MARK: Negotiation

    func kind(of mid: String) -> MediaKind? { track(mid)?.feedTrack.kind }
    func localSource(_ mid: String) -> (ssrc: UInt32, repairSSRC: UInt32?)? { nil }

    func track(_ mid: String) -> IncomingTrack? { tracks.first { $0.feedTrack.mid == mid } }

    func apply(_ media: NegotiatedMedia, using generator: inout any RandomNumberGenerator) {
        let track: IncomingTrack
        if let known = self.track(media.mid) {
            track = known
        } else {
            track = IncomingTrack(publisher: self, mid: media.mid, kind: media.kind)
            track.feedTrack.clockOffset = clockOffset
            tracks.append(track)
        }
        track.update(media)
        midID = media.extensions[.mid] ?? midID
        ridID = media.extensions[.rtpStreamID] ?? ridID
        repairedRidID = media.extensions[.repairedRtpStreamID] ?? repairedRidID
        transportSequenceID = media.extensions[.transportWideCC] ?? transportSequenceID
        if transportSequenceID != 0, arrivals == nil { arrivals = TransportFeedback() }
        for rid in media.rids { _ = track.encoding(rid: rid.id) }
        guard media.rids.isEmpty, let source = media.remoteSources.first,
            let encoding = track.encoding(rid: nil)
        else { return }
        if encoding.ssrc != source.ssrc { forget(encoding) }
        learn(source.ssrc, encoding, isRepair: false)
        if let repair = source.rtxSSRC { learn(repair, encoding, isRepair: true) }
    }

    func removeTracks(except mids: Set<String>) {
        for track in tracks where !mids.contains(track.feedTrack.mid) {
            track.feedTrack.end()
            tracks.removeAll { $0 === track }
            sources = sources.filter { $0.value.encoding.track !== track }
        }
    }

    // MARK: Publishers on other nodes

    /// Adds a track that the publisher's node has listed.
    func addRemoteTrack(mid: String, kind: MediaKind) -> IncomingTrack {
        let track = IncomingTrack(publisher: self, mid: mid, kind: kind)
        track.feedTrack.clockOffset = clockOffset
        tracks.append(track)
        return track
    }

    /// Ends a track that the publisher's node does not list any more.
    func removeRemoteTrack(_ track: IncomingTrack) {
        track.feedTrack.end()
        tracks.removeAll { $0 === track }
        sources = sources.filter { $0.value.encoding.track !== track }
    }

    /// Begins to receive an encoding with SSRCs of the relay: one for packets, and the next one for retransmissions.
    func bind(_ encoding: IncomingEncoding, to ssrc: UInt32) {
        learn(ssrc, encoding, isRepair: false)
        learn(ssrc + 1, encoding, isRepair: true)
    }

    /// Stops receiving an encoding.
    func unbind(_ encoding: IncomingEncoding) {
        forget(encoding)
        encoding.stop()
    }

    // MARK: Life

    func enter() { ingress.enter(self) }

    func end() {
        ingress.leave(self)
        for track in tracks { track.feedTrack.end() }
    }

    /// Requests keyframes, because too many packets were lost on the previous path to be retransmitted.
    func pathChanged() {
        for track in tracks where track.feedTrack.kind == .video {
            for feed in track.feedTrack.feeds where feed.isWatched { feed.keyframes.publisherMoved() }
        }
        requestKeyframesSoon()
    }

    func writabilityChanged() {}

    // MARK: Packets and time

    /// Publishers are never idle.
    var idleUntil: MediaTime { MediaTime(nanoseconds: .min) }
    func wake() {}

    func receiveMedia(_ bytes: UnsafeRawBufferPointer, spare: Int, now: MediaTime, arrivedAt: MediaTime) {
        ingress.receive(bytes, spare: spare, from: self, now: now, arrivedAt: arrivedAt)
    }

    func receiveControl(_ packet: RTCP.Packet, now: MediaTime) {
        guard case .senderReport(let report) = packet else { return }
        note(report.info, now: now)
    }

    private func note(_ info: RTCP.SenderInfo, now: MediaTime) {
        guard let source = sources[info.ssrc], !source.isRepair else { return }
        source.encoding.statistics?.receive(senderReport: info.ntp, at: now)
        source.encoding.feed.note(SourceReport(ntp: info.ntp, timestamp: info.rtpTimestamp, arrivedAt: now))
        // This is the offset from the publisher's clock to the server's. Keep the minimum, because the report with the least
        // network delay is the most accurate.
        let offset = ingress.settings.wallClock(now) - info.ntp
        clockOffset = clockOffset.map { min($0, offset) } ?? offset
    }

    func tick(now: MediaTime) { ingress.tick(self, now: now) }

    func requestKeyframesSoon() { ingress.requestKeyframesSoon(from: self) }

    /// Records the arrival of a packet of any kind, for the publisher's bandwidth estimation.
    func noteArrival(_ packet: RTPPacket, _ bytes: UnsafeRawBufferPointer, at arrivedAt: MediaTime) {
        guard transportSequenceID != 0, let range = packet.headerExtension(transportSequenceID, in: bytes),
            range.count >= 2
        else { return }
        arrivals?.receive(bytes.bigEndian16(at: range.lowerBound), at: arrivedAt)
    }

    // MARK: Sources

    func sends(_ ssrc: UInt32) -> Bool { sources[ssrc] != nil }

    /// Records the encoding that an SSRC belongs to. The initial assignment stays, so no later packet can move the SSRC to
    /// another encoding.
    private func learn(_ ssrc: UInt32, _ encoding: IncomingEncoding, isRepair: Bool) {
        guard sources[ssrc] == nil, sources.count < Self.maxSources else { return }
        sources[ssrc] = Source(encoding: encoding, isRepair: isRepair)
        if !isRepair { encoding.begin(ssrc) }
    }

    /// Removes the SSRCs of an encoding whose SSRC has changed in the client's description.
    private func forget(_ encoding: IncomingEncoding) {
        sources = sources.filter { $0.value.encoding !== encoding }
    }

    /// Finds the source of a packet. If its SSRC is new, identifies the source by the packet's MID and RID header
    /// extensions (RFC 8843 §9.2), and records it. Returns nil for an unknown source.
    func identify(_ packet: RTPPacket, in bytes: UnsafeRawBufferPointer) -> Source? {
        if let known = sources[packet.ssrc] { return known }
        // Ignore SSRC 0, with which libwebrtc probes the bandwidth before it sends media.
        guard packet.ssrc != 0 else { return nil }
        guard let track = section(of: packet, in: bytes) else { return nil }
        let repairedRid = text(repairedRidID, packet, bytes)
        let rid = repairedRid ?? text(ridID, packet, bytes)
        let isRepair = repairedRid != nil || track.repaired(packet.payloadType) != nil
        guard let encoding = track.encoding(rid: rid) else { return nil }
        learn(packet.ssrc, encoding, isRepair: isRepair)
        return sources[packet.ssrc]
    }

    private func section(of packet: RTPPacket, in bytes: UnsafeRawBufferPointer) -> IncomingTrack? {
        if let mid = text(midID, packet, bytes) { return track(mid) }
        // Without a MID, the payload type must be unique to one section.
        let fitting = tracks.filter {
            $0.feedTrack.codecIndex(packet.payloadType) != nil || $0.repaired(packet.payloadType) != nil
        }
        return fitting.count == 1 ? fitting.first : nil
    }

    private func text(_ id: UInt8, _ packet: RTPPacket, _ bytes: UnsafeRawBufferPointer) -> String? {
        guard id != 0, let range = packet.headerExtension(id, in: bytes), !range.isEmpty else { return nil }
        return String(validating: bytes[range], as: UTF8.self)
    }
}
