import RTC

/// One transceiver of a client that receives: one RTP stream for as long as the connection lives, whoever is seen in
/// it.
final class OutgoingTrack {
    // What each packet needs stands together: of many subscribers little is still in the processor's cache.
    let ssrc: UInt32
    /// The subscriber is too slow for it.
    var isPaused = false
    var temporalFilter = TemporalLayerFilter()
    var packets: UInt32 = 0
    var octets: UInt32 = 0
    /// The peer's, without the way over the peer.
    let transport: PeerTransport
    /// The encoding whose packets are forwarded; another takes over at its next keyframe.
    private(set) var encoding: IncomingEncoding?
    /// The one that is to take over.
    var target: IncomingEncoding?
    /// By the source's codec index: how it is called here.
    private(set) var codecMap: [MappedCodec] = []
    /// By the source's header extension id: ours, 0 for those not passed on. The array is for ids 0 to 255.
    private(set) var extensionMap = [UInt8](repeating: 0, count: 256)
    var budget = RetransmissionBudget()
    var rewriting: Rewriting

    unowned let peer: Peer
    let mid: String
    let kind: MediaKind
    let repairSSRC: UInt32?
    private(set) var codecs: [Codec] = []
    private(set) var extensions: [HeaderExtension: UInt8] = [:]

    /// What is sent here now.
    private(set) weak var source: IncomingTrack?
    weak var subscription: Subscription?
    var preference = VideoPreference() {
        didSet { if preference != oldValue { source?.needsSelection = true } }
    }
    /// What the client's description says: false while the transceiver does not receive.
    private(set) var isWanted = true
    /// The subscriber cannot decode it.
    private(set) var isRefused = false
    /// Why no video is sent, as the subscriber is to know it.
    var pause: PauseReason? { isPaused ? .slow : isRefused ? .codec : nil }
    /// From the first report of a loss.
    var repeats: RepeatTimes?
    var repairSequence: UInt16
    var reportedAt: MediaTime?

    init(
        peer: Peer, mid: String, kind: MediaKind, ssrc: UInt32, repairSSRC: UInt32?, rewriting: Rewriting,
        repair: UInt16
    ) {
        (self.peer, self.mid, self.kind, self.ssrc) = (peer, mid, kind, ssrc)
        transport = peer.transport
        (self.repairSSRC, self.rewriting, self.repairSequence) = (repairSSRC, rewriting, repair)
    }

    /// See `Router.warm`: a field of each cache line that a packet needs.
    @inline(__always)
    func warm() -> UInt64 {
        UInt64(ssrc) &+ UInt64(bitPattern: rewriting.firstSequence) &+ rewriting.warm() &+ (encoding == nil ? 0 : 1)
    }

    func update(_ media: NegotiatedMedia) {
        codecs = media.codecs
        extensions = media.extensions
        isWanted = media.direction.sends
        if let source { remap(source) }
    }

    /// Sends another source from now on, from its next keyframe where it has such.
    func attach(_ source: IncomingTrack?) {
        guard self.source !== source else {
            if let source { remap(source) }
            return
        }
        self.source?.remove(self)
        self.source = source
        target = nil
        pauseForwarding()
        isRefused = false
        guard let source else { return }
        source.add(self)
        remap(source)
    }

    /// What comes next begins a new piece.
    func pauseForwarding() {
        encoding = nil
        reportedAt = nil
    }

    /// What comes next is of this encoding.
    func follow(_ encoding: IncomingEncoding) {
        pauseForwarding()
        self.encoding = encoding
        isRefused = false
        temporalFilter.begin()
        // Nobody may be left with the former one.
        encoding.track.needsSelection = true
    }

    /// The subscriber cannot decode this. What is left out is not to be reported as lost.
    func refuse() {
        if encoding != nil { pauseForwarding() }
        isRefused = true
    }

    private func remap(_ source: IncomingTrack) {
        codecMap = source.codecs.map { MappedCodec($0, among: codecs) }
        extensionMap = .init(repeating: 0, count: 256)
        for (name, id) in source.extensions where name.isPassedOn {
            extensionMap[Int(id)] = extensions[name] ?? 0
        }
    }
}

/// A publisher's codec in a subscriber's words: plain numbers, for the path of each packet.
struct MappedCodec: Equatable, Sendable {
    /// Of the subscriber; 255 where he cannot decode it.
    var payloadType: UInt8 = 255
    /// For repeats (RFC 4588); 255 where none was negotiated.
    var repairPayloadType: UInt8 = 255
    /// The publisher sends redundant audio (RFC 2198) and the subscriber wants it plain.
    var isUnwrapped = false
    var clockRate: UInt32

    var isDecodable: Bool { payloadType != 255 }

    init(_ theirs: Codec, among codecs: [Codec]) {
        clockRate = theirs.clockRate
        var ours = codecs.first { $0.kind.decodes(theirs.kind) }
        if ours == nil, theirs.kind == .red {
            ours = codecs.first { $0.kind == .opus }
            isUnwrapped = true
        }
        guard let ours else { return }
        payloadType = ours.payloadType
        repairPayloadType = ours.rtxPayloadType ?? 255
    }
}

extension HeaderExtension {
    /// Those that say something of the media. The others are between us and one client, and written anew or left out.
    var isPassedOn: Bool {
        switch self {
        case .audioLevel, .videoOrientation, .dependencyDescriptor, .absCaptureTime: true
        // A delay stays with the receiver's transceiver, so that whoever is seen there next would be late.
        case .playoutDelay: false
        default: false
        }
    }
}

extension Codec.Kind {
    /// Whether a decoder negotiated as this one takes what an encoder negotiated as the other writes.
    func decodes(_ other: Codec.Kind) -> Bool {
        switch (self, other) {
        case (.h264(let profile, let mode), .h264(let theirs, let theirMode)):
            // Profile and constraints, without the level (RFC 6184 §8.1): levels are asymmetric with browsers.
            profile >> 8 == theirs >> 8 && mode == theirMode
        default: self == other
        }
    }
}

/// When packets were last sent again, found by the low bits of their numbers. The memory, 2 kB, is taken once.
struct RepeatTimes: Sendable {
    /// No packet is sent again sooner than this after the last time, however often it is asked for.
    private static let interval: UInt32 = 20
    /// Milliseconds of the clock, wrapped; 0 is never.
    private var times = ContiguousArray<UInt32>(repeating: 0, count: PacketHistory.capacity)

    /// Whether the packet may be sent again now; then it is taken to be.
    mutating func take(_ sequence: Int64, now: MediaTime) -> Bool {
        let milliseconds = max(1, UInt32(truncatingIfNeeded: now.nanoseconds / 1_000_000))
        let index = Int(truncatingIfNeeded: sequence) & (PacketHistory.capacity - 1)
        guard times[index] == 0 || milliseconds &- times[index] >= Self.interval else { return false }
        times[index] = milliseconds
        return true
    }
}

extension Codec.Kind {
    /// How its packets are read; nil for audio.
    var payloadFormat: VideoPayloadFormat? {
        switch self {
        case .opus, .red: nil
        case .vp8: .vp8
        case .vp9: .vp9
        case .h264: .h264
        case .av1: .av1
        }
    }
}
