/// A supported codec with its negotiated parameters.
public struct Codec: Hashable, Sendable {
    /// The codec, with the parameters that determine which decoders can decode it.
    public enum Kind: Hashable, Sendable {
        case opus
        /// Redundant audio data with Opus (RFC 2198).
        case red
        case vp8
        /// H.264 (RFC 6184 §8.1). The `profileLevelID` has three bytes, such as `0x42e01f`.
        case h264(profileLevelID: UInt32, packetizationMode: UInt8)
        /// VP9 (RFC 9628 §7).
        case vp9(profile: UInt8)
        case av1(profile: UInt8)

        public var isAudio: Bool { self == .opus || self == .red }
    }

    public var kind: Kind
    public var payloadType: UInt8
    /// The payload type of this codec's retransmissions (RFC 4588); nil if they were not negotiated.
    public var rtxPayloadType: UInt8?
    /// The clock rate in hertz.
    public var clockRate: UInt32
    public var channels: UInt8
    /// Whether NACKs were negotiated (RFC 4585 §6.2.1).
    public var nack: Bool
    /// Whether picture loss indications were negotiated (RFC 4585 §6.3.1).
    public var pli: Bool
    /// Whether full intra requests were negotiated (RFC 5104 §4.3.1).
    public var fir: Bool
    public var remb: Bool
    public var transportCC: Bool
    /// The `a=fmtp` parameters as written; empty if there are none.
    public var fmtp: String

    /// Creates a codec for the offers of headless clients. Video supports all kinds of feedback, and audio only
    /// transport-wide congestion control.
    public init(_ kind: Kind, payloadType: UInt8, rtxPayloadType: UInt8? = nil, fmtp: String = "") {
        (self.kind, self.payloadType, self.rtxPayloadType, self.fmtp) = (kind, payloadType, rtxPayloadType, fmtp)
        (clockRate, channels) = kind.isAudio ? (48000, 2) : (90000, 1)
        (nack, pli, fir, remb) = (!kind.isAudio, !kind.isAudio, !kind.isAudio, !kind.isAudio)
        transportCC = true
    }

    private init(_ kind: Kind, _ payload: PayloadFormat, rtxPayloadType: UInt8?) {
        (self.kind, self.rtxPayloadType) = (kind, rtxPayloadType)
        (payloadType, fmtp) = (payload.payloadType, payload.parameters)
        (clockRate, channels) = (payload.clockRate, payload.channels)
        nack = payload.feedback.contains(.nack)
        pli = payload.feedback.contains(.pictureLossIndication)
        fir = payload.feedback.contains(.fullIntraRequest)
        remb = payload.feedback.contains(.receiverEstimatedMaximumBitrate)
        transportCC = payload.feedback.contains(.transportWideCongestionControl)
    }

    /// Returns the supported codecs of a section, in the order of its payload types.
    static func all(in section: MediaSection) -> [Codec] {
        let encodings = section.payloads.map { $0.encoding.lowercased() }
        var opus: Set<Substring> = []
        var retransmissions: [UInt8: UInt8] = [:]
        for (payload, encoding) in zip(section.payloads, encodings) {
            switch encoding {
            case "opus": opus.insert("\(payload.payloadType)")
            case "rtx" where payload.clockRate == 90000:
                guard let apt = payload.parameter("apt").flatMap({ UInt8($0) }) else { continue }
                if retransmissions[apt] == nil { retransmissions[apt] = payload.payloadType }
            default: break
            }
        }
        return zip(section.payloads, encodings).compactMap { payload, encoding in
            guard !encoding.isEmpty, let kind = Kind(payload, encoding, in: section.kind, opus: opus) else {
                return nil
            }
            // Ignore RTX for audio, because a retransmission would arrive too late.
            let rtx = kind.isAudio ? nil : retransmissions[payload.payloadType]
            return Codec(kind, payload, rtxPayloadType: rtx)
        }
    }

    /// Returns the codecs for an answer to a publisher. The publisher sends the first one, so the codecs that most
    /// subscribers can decode come first. Every browser supports VP8. Redundant audio comes before Opus, because
    /// subscribers without it receive plain Opus. Codecs that equally many subscribers can decode keep the publisher's
    /// order.
    static func forPublisher(_ codecs: [Codec]) -> [Codec] {
        codecs.enumerated().sorted { ($0.element.kind.reach, $0.offset) < ($1.element.kind.reach, $1.offset) }.map {
            $0.element.kind == .opus ? $0.element.askingForResilience : $0.element
        }
    }

    /// This codec, which must be Opus, with the parameters that the server prefers (RFC 7587 §6.1): the publisher
    /// sends no packets for silence (DTX), and in each packet a low-quality copy of the previous one (in-band FEC). If
    /// the publisher has set these parameters itself, its values are kept.
    private var askingForResilience: Codec {
        var codec = self
        for name in ["useinbandfec", "usedtx"] where parameter(name) == nil {
            codec.fmtp += (codec.fmtp.isEmpty ? "" : ";") + name + "=1"
        }
        return codec
    }

    private func parameter(_ name: String) -> Substring? {
        var payload = PayloadFormat(payloadType: payloadType)
        payload.parameters = fmtp
        return payload.parameter(name)
    }

    /// The payload types that a packet of redundant audio may contain, from the parameters of RED (RFC 2198 §5).
    public var redundantPayloadTypes: Set<UInt8> { Set(fmtp.split(separator: "/").compactMap { UInt8($0) }) }

    /// The payload formats to write for this codec: the codec itself and, if it has any, its RTX.
    var payloads: [PayloadFormat] {
        var payload = PayloadFormat(payloadType: payloadType)
        (payload.encoding, payload.clockRate, payload.channels) = (kind.encoding, clockRate, channels)
        payload.parameters = fmtp
        if nack { payload.feedback.insert(.nack) }
        if pli { payload.feedback.insert(.pictureLossIndication) }
        if fir { payload.feedback.insert(.fullIntraRequest) }
        if remb { payload.feedback.insert(.receiverEstimatedMaximumBitrate) }
        if transportCC { payload.feedback.insert(.transportWideCongestionControl) }
        guard let rtxPayloadType else { return [payload] }
        var rtx = PayloadFormat(payloadType: rtxPayloadType)
        (rtx.encoding, rtx.clockRate, rtx.parameters) = ("rtx", clockRate, "apt=\(payloadType)")
        return [payload, rtx]
    }
}

extension Codec.Kind {
    /// Returns nil for a codec that is not supported, or not with these parameters.
    ///
    /// - Parameters:
    ///   - encoding: the payload's encoding name in lowercase.
    ///   - opus: the payload types of Opus in the section; RED must refer to one of them.
    fileprivate init?(_ payload: PayloadFormat, _ encoding: String, in media: MediaKind, opus: Set<Substring>) {
        switch media {
        case .audio:
            // Opus always has a clock rate of 48000 and 2 channels (RFC 7587 §7).
            guard payload.clockRate == 48000, payload.channels == 2 else { return nil }
            switch encoding {
            case "opus": self = .opus
            case "red":
                let parts = payload.parameters.split(separator: "/")
                guard !parts.isEmpty, parts.allSatisfy(opus.contains) else { return nil }
                self = .red
            default: return nil
            }
        case .video:
            guard payload.clockRate == 90000 else { return nil }
            switch encoding {
            case "vp8": self = .vp8
            case "vp9":
                guard let profile = UInt8(payload.parameter("profile-id") ?? "0") else { return nil }
                self = .vp9(profile: profile)
            case "av1":
                guard let profile = UInt8(payload.parameter("profile") ?? "0") else { return nil }
                self = .av1(profile: profile)
            case "h264": self.init(h264: payload)
            default: return nil
            }
        case .application, .other: return nil
        }
    }

    /// Reads the H.264 parameters. The defaults are Baseline profile at level 1 and single NAL unit mode (RFC 6184 §8.1).
    /// Interleaved mode (2) is not supported, because no browser uses it.
    private init?(h264 payload: PayloadFormat) {
        let profile = payload.parameter("profile-level-id") ?? "42000a"
        guard profile.utf8.count == 6, profile.allSatisfy(\.isHexDigit), let id = UInt32(profile, radix: 16) else {
            return nil
        }
        switch payload.parameter("packetization-mode") ?? "0" {
        case "0": self = .h264(profileLevelID: id, packetizationMode: 0)
        case "1": self = .h264(profileLevelID: id, packetizationMode: 1)
        default: return nil
        }
    }

    /// The codec's rank in answers to publishers. The more subscribers can decode a codec, the lower its rank and the
    /// earlier its position.
    fileprivate var reach: Int {
        switch self {
        case .red, .vp8: 0
        case .opus: 1
        case .h264(let id, 1) where H264Profile(profileLevelID: id) == .constrainedBaseline: 1
        case .vp9(profile: 0): 2
        case .av1(profile: 0): 3
        case .h264: 4
        case .vp9, .av1: 5
        }
    }

    /// The encoding name for `a=rtpmap`.
    var encoding: String {
        switch self {
        case .opus: "opus"
        case .red: "red"
        case .vp8: "VP8"
        case .h264: "H264"
        case .vp9: "VP9"
        case .av1: "AV1"
        }
    }
}
