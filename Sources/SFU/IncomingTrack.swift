import RTC

/// One media section that a client publishes: a microphone or a camera. It has one encoding, or several of the same
/// picture (simulcast, RFC 8853), and knows who watches.
final class IncomingTrack {
    unowned let peer: Peer
    let mid: String
    let kind: MediaKind
    private(set) var codecs: [Codec] = []
    /// Index into `codecs` by payload type, or none; looked up for every packet.
    private var codecByPayloadType = [Int8](repeating: -1, count: 128)
    private var repairedByPayloadType = [UInt8](repeating: 255, count: 128)
    var extensions: [HeaderExtension: UInt8] = [:]
    /// A bit for each id of those that subscribers get, for ids below 64.
    private(set) var passesOn: UInt64 = 0
    var audioLevelID: UInt8 = 0
    /// Whether lost packets can be asked for (RFC 4585), and keyframes by PLI rather than FIR.
    private(set) var repairs = false
    private(set) var takesPLI = true
    var clockRate: UInt32 { kind == .audio ? 48_000 : 90_000 }
    private(set) var encodings: [IncomingEncoding] = []
    /// What is known of each of the encodings.
    var layers: [Layer] = []
    /// Whether who gets which encoding is to be decided again.
    var needsSelection = false
    var announcement = LayerAnnouncement()
    /// What it is published as.
    weak var publication: Publication?
    var subscribers: [OutgoingTrack] = []

    /// More encodings of one picture than browsers make.
    static let mostEncodings = 4

    init(peer: Peer, mid: String, kind: MediaKind) {
        (self.peer, self.mid, self.kind) = (peer, mid, kind)
    }

    /// Takes over what was negotiated, again after each offer.
    func update(_ media: NegotiatedMedia) {
        codecs = media.codecs
        codecByPayloadType = .init(repeating: -1, count: 128)
        repairedByPayloadType = .init(repeating: 255, count: 128)
        for (index, codec) in codecs.enumerated() where codec.payloadType < 128 {
            codecByPayloadType[Int(codec.payloadType)] = Int8(clamping: index)
            if let repair = codec.rtxPayloadType, repair < 128 {
                repairedByPayloadType[Int(repair)] = codec.payloadType
            }
        }
        extensions = media.extensions
        passesOn = 0
        for (name, id) in extensions where name.isPassedOn { passesOn |= 1 << UInt64(min(id, 63)) }
        audioLevelID = media.extensions[.audioLevel] ?? 0
        repairs = codecs.contains(where: \.nack)
        takesPLI = codecs.contains(where: \.pli)
    }

    func codecIndex(_ payloadType: UInt8) -> Int? {
        let index = codecByPayloadType[Int(payloadType & 127)]
        return index < 0 ? nil : Int(index)
    }

    /// Whether subscribers get this header extension. Of the highest ids all do as soon as one does, which costs only time.
    func passes(_ extensionID: UInt8) -> Bool { passesOn >> UInt64(min(extensionID, 63)) & 1 == 1 }

    /// The payload type that packets of this one are repeats of (RFC 4588 §8.1).
    func repaired(_ payloadType: UInt8) -> UInt8? {
        let repaired = repairedByPayloadType[Int(payloadType & 127)]
        return repaired == 255 ? nil : repaired
    }

    /// The encoding with this restriction id, made when it is new; nil when there are too many.
    func encoding(rid: String?) -> IncomingEncoding? {
        if let known = encodings.first(where: { $0.rid == rid }) { return known }
        guard encodings.count < Self.mostEncodings, peer.encodingCount < Peer.mostEncodings else { return nil }
        let encoding = IncomingEncoding(track: self, rid: rid)
        encodings.append(encoding)
        layers.append(Layer())
        needsSelection = true
        return encoding
    }

    func add(_ subscriber: OutgoingTrack) {
        subscribers.append(subscriber)
        needsSelection = true
    }

    func remove(_ subscriber: OutgoingTrack) {
        subscribers.removeAll { $0 === subscriber }
        needsSelection = true
    }
}

/// One RTP stream that a client sends, and what is known of it.
final class IncomingEncoding {
    unowned let track: IncomingTrack
    let rid: String?
    /// Its place among the encodings of its track.
    let index: Int
    /// Whether a subscriber gets it, or is about to. What nobody gets is neither kept nor asked for again.
    var isWatched = false
    private(set) var ssrc: UInt32 = 0
    var repairSSRC: UInt32?
    /// From the moment when the SSRC is known.
    var statistics: ReceiverStatistics?
    var missing = NACKGenerator()
    private(set) var history: PacketHistory?
    var keyframes = KeyframeRequests()
    /// Arrived since the last flush, in order.
    var pending: [PendingPacket] = []
    var lastPacketAt: MediaTime?
    /// The publisher's last sender report, and when it came.
    var report: SourceReport?
    var firSequence: UInt8 = 0

    /// Of a stream that was silent this long nobody is asked for keyframes.
    private static let silence = MediaInterval.seconds(2)

    init(track: IncomingTrack, rid: String?) {
        (self.track, self.rid, index) = (track, rid, track.encodings.count)
        pending.reserveCapacity(64)
    }

    /// Its packets have this SSRC from now on; what was counted of another is over.
    func begin(_ ssrc: UInt32) {
        self.ssrc = ssrc
        statistics = ReceiverStatistics(ssrc: ssrc, clockRate: track.clockRate)
        missing = NACKGenerator()
        history = nil
        report = nil
        // They are numbered as the former ones were.
        pending.removeAll(keepingCapacity: true)
        for subscriber in track.subscribers where subscriber.encoding === self { subscriber.pauseForwarding() }
    }

    func isAlive(at now: MediaTime) -> Bool {
        lastPacketAt.map { now - $0 < Self.silence } ?? false
    }

    func keep(_ bytes: UnsafeRawBufferPointer, _ packet: RTPPacket, sequence: Int64, now: MediaTime) {
        guard track.kind == .video else { return }
        let history = history ?? PacketHistory()
        self.history = history
        history.store(bytes, packet, sequence: sequence, now: now)
    }
}

/// A packet between its arrival and the flush. The bytes are the receiver's buffer.
struct PendingPacket {
    var bytes: UnsafeRawBufferPointer
    var packet: RTPPacket
    var sequence: Int64
    var codec: Int
    var startsKeyframe: Bool
    var picture: UInt16?
    var layerZero: UInt8?
    /// VP8's (RFC 7741 §4.2, `TID`), 0 to 3.
    var temporalLayer = noLayer
    /// A receiver may go up to this temporal layer here (`Y`).
    var isLayerSync = false
    /// The first packet of a picture.
    var startsPicture = false
    /// Of VP8, if it has numbers that each subscriber gets others of.
    var descriptor: VP8Descriptor?
    /// Some of its header extensions are passed on.
    var hasExtensions = false

    /// Of a packet that names no temporal layer.
    static let noLayer: UInt8 = 255

    var payload: UnsafeRawBufferPointer { UnsafeRawBufferPointer(rebasing: bytes[packet.payloadRange]) }

    /// Writes a subscriber's numbers into the payload, over those of whoever was before: the buffer is ours, and a payload in
    /// one piece is encrypted at once.
    func renumber(_ numbers: Rewriting.Numbers) {
        guard let descriptor else { return }
        _ = descriptor.rewrite(
            into: UnsafeMutableRawBufferPointer(mutating: payload), pictureID: numbers.picture,
            temporalLayerZeroIndex: numbers.layerZero
        )
    }
}

/// A sender report of a publisher (RFC 3550 §6.4.1): how its media clock and its wall clock go together.
struct SourceReport {
    var ntp: NTPTime
    var timestamp: UInt32
}
