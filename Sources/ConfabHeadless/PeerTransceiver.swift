import Confab
import Peers
import RTC

/// A transceiver that this side has added.
struct PeerTransceiver {
    let handle: TransceiverHandle
    let mid: String
    let kind: TrackKind
    var direction: Confab.MediaDirection
    var media: (any PeerMedia)?
    /// The RIDs of the layers to offer; empty for one encoding.
    let rids: [String]
    /// The RIDs of the layers to send; nil for all.
    var activeRIDs: Set<String>?
    /// Whether a local description has contained this transceiver's section.
    var isDescribed = false
    /// The SSRCs and the msid of the single encoding; nil with layers, or if the transceiver did not send when it was
    /// added.
    private let source: LocalSource?

    init(
        _ setup: TransceiverSetup, _ media: (any PeerMedia)?, number: Int, mid: String, of connection: RobotConnection
    ) {
        handle = TransceiverHandle(number: number)
        (self.mid, kind, direction, self.media) = (mid, setup.kind, setup.direction, media)
        // Use only the layers that the SDK requests and the media has.
        let existing = setup.kind == .video ? media?.rids ?? [] : []
        let wanted = setup.layers.map(\.rid).filter(existing.contains)
        rids = wanted.count > 1 ? wanted : []
        let sends = setup.direction == .sendOnly || setup.direction == .sendAndReceive
        // Do not use SSRC 0, which means "none" in RTCP.
        let numbers = (1...2).map { _ in UInt32.random(in: 1...UInt32.max, using: &connection.random) }
        source =
            sends && rids.isEmpty
            ? LocalSource(
                ssrc: numbers[0], rtxSSRC: setup.kind == .video ? numbers[1] : nil,
                msid: MediaStreamID(stream: setup.streamID ?? "-", track: mid))
            : nil
    }

    var isVideo: Bool { kind == .video }

    /// Returns the section to offer.
    ///
    /// - Parameter known: a negotiated section of the same kind that the other peer created; nil if there is none. All
    ///   sections must share its payload types and extension ids (RFC 8843 §9.2).
    func section(like known: NegotiatedMedia?) -> OfferedMedia {
        let direction = RTC.MediaDirection(direction)
        var section: OfferedMedia
        if isVideo {
            section = .video(mid: mid, direction)
            section.rids = rids
        } else {
            section = direction.sends ? .redundantAudio(mid: mid, direction) : .audio(mid: mid, direction)
        }
        if let known {
            let codecs = known.codecs.filter { isVideo ? $0.kind == .vp8 : $0.kind == .opus }
            if !codecs.isEmpty { section.codecs = codecs }
            section.extensions = known.extensions
        }
        section.source = direction.sends ? source : nil
        return section
    }
}

extension RTC.MediaDirection {
    init(_ direction: Confab.MediaDirection) {
        switch direction {
        case .sendOnly: self = .sendonly
        case .receiveOnly: self = .recvonly
        case .sendAndReceive: self = .sendrecv
        case .inactive: self = .inactive
        }
    }
}

/// The received media of one section.
struct PeerArrival {
    let track: EncodedTrack
    var receiver: FrameReceiver
    /// The stream id that was reported with the track, which is nil if the track has none. The outer optional is nil
    /// until the track is reported.
    var reported: String??
    var hasPacket = false
    var hasFrame = false
}
