/// A media section: an `m=` line and the lines that belong to it (RFC 8866 §5.14).
public struct MediaSection: Hashable, Sendable {
    public var kind: MediaKind
    /// The port. 0 means that the section is not in use, unless `isBundleOnly` is set (RFC 8843 §6).
    public var port: UInt16
    /// The protocol, such as `UDP/TLS/RTP/SAVPF`.
    public var protocolName: String
    /// The formats at the end of the `m=` line. Used only if the protocol is not RTP.
    public var formats: [String] = []
    /// The payload types at the end of the `m=` line. Used only if the protocol is RTP.
    public var payloads: [PayloadFormat] = []
    public var mid: String?
    public var transport = TransportDescription()
    public var direction: MediaDirection?
    public var hasRTCPMux = false
    /// Whether the section has `a=rtcp-rsize` (RFC 5506).
    public var hasReducedSizeRTCP = false
    public var isBundleOnly = false
    public var allowsMixedExtensions = false
    public var extensions: [ExtensionMapping] = []
    public var sources: [SourceDescription] = []
    public var sourceGroups: [SourceGroup] = []
    public var rids: [RestrictionIdentifier] = []
    public var simulcast: Simulcast?
    public var streams: [MediaStreamID] = []

    public init(kind: MediaKind, port: UInt16, protocolName: String) {
        (self.kind, self.port, self.protocolName) = (kind, port, protocolName)
    }

    /// Whether the section is in use.
    public var isActive: Bool { port != 0 || isBundleOnly }
    /// Whether the formats are RTP payload types.
    var isRTP: Bool { protocolName.hasSuffix("AVPF") || protocolName.hasSuffix("AVP") }
}

/// The kind of a media section, which is the first word in its `m=` line.
public enum MediaKind: Hashable, Sendable {
    case audio, video, application
    /// Another kind, such as `text`, `image` or `message`. Answers reject these.
    case other(String)

    public init(_ name: String) {
        switch name {
        case "audio": self = .audio
        case "video": self = .video
        case "application": self = .application
        default: self = .other(name)
        }
    }

    /// The name in the `m=` line.
    public var name: String {
        switch self {
        case .audio: "audio"
        case .video: "video"
        case .application: "application"
        case .other(let name): name
        }
    }
}

/// The direction of media, from the point of view of the side that wrote the description (RFC 8866 §6.7).
public enum MediaDirection: String, Hashable, Sendable {
    case sendrecv, sendonly, recvonly, inactive

    public var sends: Bool { self == .sendrecv || self == .sendonly }
    public var receives: Bool { self == .sendrecv || self == .recvonly }
    /// The direction from the other side's point of view.
    public var reversed: MediaDirection {
        switch self {
        case .sendonly: .recvonly
        case .recvonly: .sendonly
        case .sendrecv, .inactive: self
        }
    }
}

/// One payload type with its `a=rtpmap`, `a=fmtp` and `a=rtcp-fb`.
public struct PayloadFormat: Hashable, Sendable {
    /// The payload type, 0 to 127.
    public var payloadType: UInt8
    /// The encoding name as written, compared case-insensitively. Empty without an `a=rtpmap`.
    public var encoding = ""
    /// The clock rate in hertz; 0 without an `a=rtpmap`.
    public var clockRate: UInt32 = 0
    public var channels: UInt8 = 1
    /// The value of `a=fmtp` after the payload type. Empty without an `a=fmtp`.
    public var parameters = ""
    public var feedback: RTCPFeedback = []

    public init(payloadType: UInt8) { self.payloadType = payloadType }

    /// Returns the value of one of the `parameters`, which have the form `name=value;name=value`; nil if it is
    /// missing.
    ///
    /// - Parameter name: the parameter's name in lowercase.
    func parameter(_ name: String) -> Substring? {
        for part in parameters.utf8.split(separator: UInt8(ascii: ";")) {
            let part = part.drop { $0 == UInt8(ascii: " ") }
            guard let equals = part.firstIndex(of: UInt8(ascii: "=")), Substring(part[..<equals]).lowercased() == name
            else { continue }
            return Substring(part[part.index(after: equals)...])
        }
        return nil
    }
}

/// The supported kinds of RTCP feedback (RFC 4585 §4.2, RFC 5104 §7.1).
public struct RTCPFeedback: OptionSet, Hashable, Sendable {
    public var rawValue: UInt8
    public init(rawValue: UInt8) { self.rawValue = rawValue }

    public static let nack = RTCPFeedback(rawValue: 1)
    public static let pictureLossIndication = RTCPFeedback(rawValue: 2)
    public static let fullIntraRequest = RTCPFeedback(rawValue: 4)
    public static let receiverEstimatedMaximumBitrate = RTCPFeedback(rawValue: 8)
    public static let transportWideCongestionControl = RTCPFeedback(rawValue: 16)

    /// The kinds of feedback with their text in `a=rtcp-fb`, in the order in which they are written.
    static let names: [(RTCPFeedback, String)] = [
        (.receiverEstimatedMaximumBitrate, "goog-remb"), (.transportWideCongestionControl, "transport-cc"),
        (.fullIntraRequest, "ccm fir"), (.nack, "nack"), (.pictureLossIndication, "nack pli"),
    ]
}

/// An `a=extmap` line, in which a section assigns an id to a header extension (RFC 8285 §8).
public struct ExtensionMapping: Hashable, Sendable {
    /// The extension's id, 1 to 255. Ids above 14 require the two-byte form.
    public var id: UInt8
    /// The direction in which the extension is used; nil means both directions.
    public var direction: MediaDirection?
    public var uri: String
    /// The text after the URI, such as `vad=on` (RFC 6464 §4).
    public var attributes = ""

    public init(id: UInt8, direction: MediaDirection? = nil, uri: String) {
        (self.id, self.direction, self.uri) = (id, direction, uri)
    }
}

/// The `a=ssrc` lines of one source (RFC 5576 §4.1).
public struct SourceDescription: Hashable, Sendable {
    public var ssrc: UInt32
    public var cname: String?
    public var msid: MediaStreamID?

    public init(ssrc: UInt32, cname: String? = nil, msid: MediaStreamID? = nil) {
        (self.ssrc, self.cname, self.msid) = (ssrc, cname, msid)
    }
}

/// An `a=ssrc-group` line, which declares how several sources are related (RFC 5576 §4.2). Groups with semantics other
/// than those below are ignored.
public struct SourceGroup: Hashable, Sendable {
    /// How the sources of a group are related.
    public enum Semantics: String, Hashable, Sendable {
        /// A source and the source of its retransmissions (RFC 4588 §8).
        case retransmission = "FID"
        case forwardErrorCorrection = "FEC-FR"
        case simulcast = "SIM"
    }

    public var semantics: Semantics
    public var ssrcs: [UInt32]

    public init(semantics: Semantics, ssrcs: [UInt32]) { (self.semantics, self.ssrcs) = (semantics, ssrcs) }
}

/// The ids of a media stream and a track, from an `a=msid` line (RFC 8830 §2).
public struct MediaStreamID: Hashable, Sendable {
    /// The stream's id; `-` means that the track belongs to no stream.
    public var stream: String
    public var track: String?

    public init(stream: String, track: String?) { (self.stream, self.track) = (stream, track) }
}

/// A simulcast layer as declared by an `a=rid` line (RFC 8851 §4).
public struct RestrictionIdentifier: Hashable, Sendable {
    public var id: String
    public var isSend: Bool
    /// The payload types that the layer may use. Empty means all payload types of the section.
    public var payloadTypes: [UInt8] = []
    /// The remaining restrictions as written, such as `max-width=1280;max-fps=30`.
    public var restrictions = ""

    public init(id: String, isSend: Bool) { (self.id, self.isSend) = (id, isSend) }
}

/// The `a=simulcast` line of a section, which lists its simulcast layers (RFC 8853 §5.1). If a layer has alternatives,
/// only the first is kept.
public struct Simulcast: Hashable, Sendable {
    /// One simulcast layer, and whether it is paused.
    public struct Stream: Hashable, Sendable {
        public var rid: String
        public var isPaused: Bool

        public init(rid: String, isPaused: Bool = false) { (self.rid, self.isPaused) = (rid, isPaused) }
    }

    public var send: [Stream] = []
    public var receive: [Stream] = []

    public init() {}
}
