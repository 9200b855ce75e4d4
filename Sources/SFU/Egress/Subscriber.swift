import RTC

/// The half of a peer connection over which a client receives: its tracks, and the congestion control of its path.
final class Subscriber: PeerHalf {
    let link: PeerLink
    private unowned let egress: Egress
    /// The tracks that the client receives, in the order of the description's media sections.
    private(set) var tracks: [OutgoingTrack] = []
    /// Maps each SSRC that the client receives to its track.
    private(set) var tracksBySSRC: [UInt32: OutgoingTrack] = [:]
    /// Whether the queue of data to send to the subscriber is too long.
    var isBehind = false
    /// The congestion control of the path to the client; nil if the client sends no feedback for it.
    private(set) var downlink: Downlink?
    /// Whether the allocation limits the client's videos.
    var isLimited = false
    var idleUntil = MediaTime(nanoseconds: .min)
    /// What the current flush forwards to the client; empty between flushes.
    var due: [Due] = []

    /// The packets of one lane that go to one of the client's tracks.
    struct Due {
        var track: OutgoingTrack
        var lane: Fanout.Lane
    }

    init(link: PeerLink, egress: Egress) { (self.link, self.egress) = (link, egress) }

    func wake() { idleUntil = MediaTime(nanoseconds: .min) }

    // MARK: Negotiation

    func kind(of mid: String) -> MediaKind? { track(mid)?.kind }

    func localSource(_ mid: String) -> (ssrc: UInt32, repairSSRC: UInt32?)? {
        track(mid).map { ($0.ssrc, $0.repairSSRC) }
    }

    func track(_ mid: String) -> OutgoingTrack? { tracks.first { $0.mid == mid } }
    func track(ssrc: UInt32) -> OutgoingTrack? { tracksBySSRC[ssrc] }

    func apply(_ media: NegotiatedMedia, using generator: inout any RandomNumberGenerator) {
        let givesFeedback = media.extensions[.transportWideCC] != nil || media.codecs.contains(where: \.remb)
        if egress.settings.controlsCongestion, downlink == nil, givesFeedback { downlink = Downlink() }
        if let known = track(media.mid) { return known.update(media) }
        guard let source = media.localSource else { return }
        let track = OutgoingTrack(
            owner: self, mid: media.mid, kind: media.kind, ssrc: source.ssrc,
            repairSSRC: media.codecs.contains { $0.rtxPayloadType != nil } ? source.rtxSSRC : nil,
            rewriting: RTPRewriter(
                // Use the lower half, so that the number cannot wrap soon after the start (RFC 3711 §3.3.1).
                sequence: UInt16.random(in: 0..<0x8000, using: &generator),
                timestamp: UInt32.random(in: 0...UInt32.max, using: &generator)
            ),
            repair: UInt16.random(in: 0..<0x8000, using: &generator)
        )
        track.update(media)
        if isBehind, media.kind == .video { track.allow(0, 0) }
        tracks.append(track)
        tracksBySSRC[track.ssrc] = track
    }

    func removeTracks(except mids: Set<String>) {
        for track in tracks where !mids.contains(track.mid) {
            egress.attach(track, to: nil)
            tracks.removeAll { $0 === track }
            tracksBySSRC[track.ssrc] = nil
        }
    }

    // MARK: Life

    func enter() { egress.enter(self) }

    func end() {
        egress.leave(self)
        for track in tracks { egress.attach(track, to: nil) }
    }

    /// Resets the congestion control, because the estimate of the previous path does not apply to the new one.
    func pathChanged() { downlink?.control.pathChanged() }

    func writabilityChanged() { for track in tracks { track.source?.needsSelection = true } }

    // MARK: Packets and time

    /// A subscriber sends no media.
    func receiveMedia(_ bytes: UnsafeRawBufferPointer, spare: Int, now: MediaTime, arrivedAt: MediaTime) {
        egress.output.counters.malformed &+= 1
    }

    func receiveControl(_ packet: RTCP.Packet, now: MediaTime) { egress.receive(packet, from: self, now: now) }

    func sends(_ ssrc: UInt32) -> Bool { false }

    func tick(now: MediaTime) { egress.tick(self, now: now) }
}
