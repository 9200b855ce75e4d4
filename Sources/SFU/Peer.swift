import RTC

/// One peer connection between a client and the server: its transport and its tracks. The router connects the tracks of
/// different peers.
final class Peer {
    let client: Key
    let side: Side
    let transport: PeerTransport
    /// The session id in the `o=` line, which identifies the client's `RTCPeerConnection` (RFC 8829 §5.2.1).
    let originSessionID: String
    var remoteUfrag = ""
    /// The tracks that the client publishes, in the order of the description's media sections.
    var incoming: [IncomingTrack] = []
    var outgoing: [OutgoingTrack] = []
    /// Maps each SSRC of the client to the encoding that it belongs to, and to whether it carries retransmissions
    /// (RTX).
    private(set) var sources: [UInt32: Source] = [:]
    /// Maps each SSRC that the client receives to its track.
    private(set) var outgoingBySSRC: [UInt32: OutgoingTrack] = [:]
    /// The ids of the header extensions that identify a packet's section and encoding. They are the same in all sections of a
    /// bundle.
    var midID: UInt8 = 0
    var ridID: UInt8 = 0
    var repairedRidID: UInt8 = 0
    var transportSequenceID: UInt8 = 0
    /// Arrival times of the publisher's packets, if transport-wide congestion control was negotiated. They take 33 kB.
    var arrivals: TransportFeedback?
    var feedbackAt: MediaTime?
    var reportsAt: MediaTime?
    /// When the client's last RTCP packet arrived; nil before the first.
    var heardAt: MediaTime?
    /// The time until which ticks skip this subscriber.
    var idleUntil = MediaTime(nanoseconds: .min)
    /// The offset to add to the client's wall clock to get the server's wall clock; nil before the client's first
    /// sender report.
    var clockOffset: MediaInterval?
    /// Whether the queue of data to send to the subscriber is too long.
    var isBehind = false
    /// The congestion control of the path to the client; nil if the client sends no feedback for it.
    var downlink: Downlink?
    /// Whether the allocation limits the client's videos.
    var isLimited = false
    var hasFailed = false
    /// The value of the connection's latest `RouterEvent.connected`; false before the first.
    var wasConnected = false
    /// Whether media could be sent to the client at the last check.
    var wasWritable = false
    /// The server's SSRC in RTCP packets (RFC 3550 §6.4.2).
    let ownSSRC: UInt32
    let cname: String
    /// The number of answers so far, used as the version in `o=` (RFC 3264 §8).
    var descriptions: UInt64 = 0
    /// The local username fragments that the client's checks may use, including those from before an ICE restart.
    var ufrags: [String] = []
    /// The peer's current and previous paths, the newest last.
    var paths: [Path] = []
    static let maxPaths = 16
    /// The path that was selected last; nil before the first.
    var lastPath: Path?
    /// The sockets of TCP connections that closed since the previous tick, at most as many as there were paths.
    var closedSockets: [UInt32] = []
    /// The certificate fingerprint of the client's first description; nil before that. A different one requires a new
    /// connection (RFC 8842 §3.1).
    var remoteFingerprint: Fingerprint?
    /// One of the client's SSRCs, for feedback about the whole transport; 0 if none is known.
    var mediaSSRC: UInt32 { sources.keys.first ?? 0 }

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
    var encodingCount: Int { incoming.reduce(0) { $0 + $1.encodings.count } }

    init(
        client: Key, side: Side, transport: PeerTransport, originSessionID: String,
        using generator: inout some RandomNumberGenerator
    ) {
        (self.client, self.side, self.transport, self.originSessionID) = (client, side, transport, originSessionID)
        ownSSRC = UInt32.random(in: 1...UInt32.max, using: &generator)
        // The CNAME is random, so it identifies no user, and is the same for audio and video (RFC 7022 §4.2).
        cname = String(UInt64.random(in: 0...UInt64.max, using: &generator), radix: 36)
    }

    func incoming(_ mid: String) -> IncomingTrack? { incoming.first { $0.mid == mid } }
    func outgoing(_ mid: String) -> OutgoingTrack? { outgoing.first { $0.mid == mid } }

    /// Whether the connection has ended and can no longer carry anything.
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

    /// Records the encoding that an SSRC belongs to. The initial assignment stays, so no later packet can move the SSRC to
    /// another encoding.
    func learn(_ ssrc: UInt32, _ encoding: IncomingEncoding, isRepair: Bool) {
        guard sources[ssrc] == nil, sources.count < Self.maxSources else { return }
        sources[ssrc] = Source(encoding: encoding, isRepair: isRepair)
        if isRepair {
            encoding.repairSSRC = ssrc
        } else {
            encoding.begin(ssrc)
        }
    }

    /// Removes the SSRCs of an encoding whose SSRC has changed in the client's description.
    func forget(_ encoding: IncomingEncoding) {
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
        if let mid = text(midID, packet, bytes) { return incoming(mid) }
        // Without a MID, the payload type must be unique to one section.
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
