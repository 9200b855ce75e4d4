import RTC

/// One peer connection between a client and the server: its transport, and the tracks in it. What the tracks mean to
/// anybody else is the router's business.
final class Peer {
    let client: Key
    let side: Side
    let transport: PeerTransport
    /// Which `RTCPeerConnection` it is the other end of (RFC 8829 §5.2.1).
    let originSessionID: String
    var remoteUfrag = ""
    /// In the order of the description's media sections.
    var incoming: [IncomingTrack] = []
    var outgoing: [OutgoingTrack] = []
    /// Which encoding an SSRC belongs to, and whether it carries repeats.
    private(set) var sources: [UInt32: Source] = [:]
    private(set) var outgoingBySSRC: [UInt32: OutgoingTrack] = [:]
    /// Header extensions that say to which section a packet belongs; the same in all sections of a bundle.
    var midID: UInt8 = 0
    var ridID: UInt8 = 0
    var repairedRidID: UInt8 = 0
    var transportSequenceID: UInt8 = 0
    /// For a publisher whose bandwidth estimation asks for it; 33 kB.
    var arrivals: TransportFeedback?
    var feedbackAt: MediaTime?
    var reportsAt: MediaTime?
    /// Until when nothing has to be done for a subscriber, whatever the time.
    var restsUntil = MediaTime(nanoseconds: .min)
    /// What the client's wall clock has to be added to make it ours.
    var clockOffset: MediaInterval?
    /// The subscriber's queue is too long.
    var isBehind = false
    var hasFailed = false
    /// As its owner was last told.
    var wasConnected = false
    /// Ours as a receiver of reports (RFC 3550 §6.4.2).
    let ownSSRC: UInt32
    let cname: String
    /// Counts our answers (RFC 3264 §8).
    var descriptions: UInt64 = 0
    /// The names that the client's checks may use: those of before an ICE restart too.
    var ufrags: [String] = []
    /// Where it is or was, the newest last.
    var paths: [Path] = []
    static let mostPaths = 16
    /// TCP connections that ended since the last tick; at most as many as there were paths.
    var closedSockets: [UInt32] = []
    /// Of the certificate that the first description named; another needs another connection (RFC 8842 §3.1).
    var remoteFingerprint: Fingerprint?
    /// Any of the client's SSRCs, for feedback that concerns them all.
    var mediaSSRC: UInt32 { sources.keys.first ?? 0 }

    struct Source {
        var encoding: IncomingEncoding
        var isRepair: Bool
    }

    /// More than a camera, a screen and a microphone in three encodings each need; an SSRC that comes later is not
    /// learned.
    static let mostSources = 64
    /// Encodings of all sections: a camera and a screen in three each, and their sound, four times over. A video
    /// encoding's history takes 750 kB.
    static let mostEncodings = 32
    var encodingCount: Int { incoming.reduce(0) { $0 + $1.encodings.count } }

    init(
        client: Key, side: Side, transport: PeerTransport, originSessionID: String,
        using generator: inout some RandomNumberGenerator
    ) {
        (self.client, self.side, self.transport, self.originSessionID) = (client, side, transport, originSessionID)
        ownSSRC = UInt32.random(in: 1...UInt32.max, using: &generator)
        // Says nothing of anybody, and is the same for sound and picture (RFC 7022 §4.2).
        cname = String(UInt64.random(in: 0...UInt64.max, using: &generator), radix: 36)
    }

    func incoming(_ mid: String) -> IncomingTrack? { incoming.first { $0.mid == mid } }
    func outgoing(_ mid: String) -> OutgoingTrack? { outgoing.first { $0.mid == mid } }

    /// Whether nothing can come over it any more.
    var isOver: Bool {
        switch transport.state {
        case .closed, .failed(.dtls): true
        case .new, .connecting, .connected, .disconnected, .failed(.noPath): hasFailed
        }
    }

    func remove(_ track: IncomingTrack) {
        incoming.removeAll { $0 === track }
        sources = sources.filter { $0.value.encoding.track !== track }
    }

    func remove(_ track: OutgoingTrack) {
        outgoing.removeAll { $0 === track }
        outgoingBySSRC[track.ssrc] = nil
    }

    func add(_ track: OutgoingTrack) {
        outgoing.append(track)
        outgoingBySSRC[track.ssrc] = track
    }

    /// Remembers whose packets an SSRC carries. What was learned first stays: a packet cannot take another's place.
    func learn(_ ssrc: UInt32, _ encoding: IncomingEncoding, isRepair: Bool) {
        guard sources[ssrc] == nil, sources.count < Self.mostSources else { return }
        sources[ssrc] = Source(encoding: encoding, isRepair: isRepair)
        if isRepair {
            encoding.repairSSRC = ssrc
        } else {
            encoding.begin(ssrc)
        }
    }

    /// The client says that it sends this encoding under another SSRC from now on.
    func forget(_ encoding: IncomingEncoding) {
        sources = sources.filter { $0.value.encoding !== encoding }
    }

    /// Whose packet this is, from what it says itself (RFC 8843 §9.2): its section, and its encoding in that.
    func identify(_ packet: RTPPacket, in bytes: UnsafeRawBufferPointer) -> Source? {
        if let known = sources[packet.ssrc] { return known }
        guard let track = section(of: packet, in: bytes) else { return nil }
        let repairedRid = text(repairedRidID, packet, bytes)
        let rid = repairedRid ?? text(ridID, packet, bytes)
        let isRepair = repairedRid != nil || track.repaired(packet.payloadType) != nil
        guard let encoding = track.encoding(rid: rid) else { return nil }
        learn(packet.ssrc, encoding, isRepair: isRepair)
        return sources[packet.ssrc]
    }

    private func section(of packet: RTPPacket, in bytes: UnsafeRawBufferPointer) -> IncomingTrack? {
        if let mid = text(midID, packet, bytes) { return incoming(mid) }
        // Only one section may have the payload type then.
        let fitting = incoming.filter {
            $0.codecIndex(packet.payloadType) != nil || $0.repaired(packet.payloadType) != nil
        }
        return fitting.count == 1 ? fitting.first : nil
    }

    private func text(_ id: UInt8, _ packet: RTPPacket, _ bytes: UnsafeRawBufferPointer) -> String? {
        guard id != 0, let range = packet.headerExtension(id, in: bytes), !range.isEmpty else { return nil }
        return String(validating: bytes[range], as: UTF8.self)
    }
}
