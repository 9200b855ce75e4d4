/// A media section in the offer of a headless client. Browsers can offer more than this, but tests and benchmarks do
/// not need more.
public struct OfferedMedia: Hashable, Sendable {
    public var mid: String
    public var kind: MediaKind
    public var direction: MediaDirection
    public var codecs: [Codec]
    public var extensions: [HeaderExtension: UInt8]
    /// The source to send in the section, if any.
    public var source: LocalSource?
    /// The RIDs of the simulcast layers to send, the preferred one first. Empty means no simulcast.
    public var rids: [String] = []

    public init(
        mid: String, kind: MediaKind, direction: MediaDirection, codecs: [Codec],
        extensions: [HeaderExtension: UInt8] = Self.extensions, source: LocalSource? = nil
    ) {
        (self.mid, self.kind, self.direction, self.codecs) = (mid, kind, direction, codecs)
        (self.extensions, self.source) = (extensions, source)
    }

    /// Returns a section that offers Opus with payload type 111.
    public static func audio(mid: String, _ direction: MediaDirection, source: LocalSource? = nil) -> OfferedMedia {
        let opus = Codec(.opus, payloadType: 111, fmtp: "minptime=10;useinbandfec=1")
        return OfferedMedia(mid: mid, kind: .audio, direction: direction, codecs: [opus], source: source)
    }

    /// Returns a section that offers redundant audio (RFC 2198) with payload type 63, and Opus without redundancy with
    /// payload type 111.
    public static func redundantAudio(mid: String, _ direction: MediaDirection) -> OfferedMedia {
        var media = audio(mid: mid, direction)
        media.codecs.insert(Codec(.red, payloadType: 63, fmtp: "111/111"), at: 0)
        return media
    }

    /// Returns a section that offers VP8 with payload type 96, and RTX with payload type 97.
    public static func video(mid: String, _ direction: MediaDirection, source: LocalSource? = nil) -> OfferedMedia {
        let vp8 = Codec(.vp8, payloadType: 96, rtxPayloadType: 97)
        return OfferedMedia(mid: mid, kind: .video, direction: direction, codecs: [vp8], source: source)
    }

    /// All supported header extensions, with ids counted from 1.
    public static let extensions = Dictionary(
        uniqueKeysWithValues: zip(HeaderExtension.allCases, UInt8(1)...))
}

/// Creates an offer of these sections on one transport. Trusts the caller's values and checks nothing.
public func offer(_ media: [OfferedMedia], local: LocalParameters) -> SessionDescription {
    var description = SessionDescription(origin: Origin(sessionID: local.sessionID, version: local.version))
    description.bundleGroups = [media.map(\.mid)]
    description.allowsMixedExtensions = true
    description.sections = media.map { offered in
        var section = MediaSection(kind: offered.kind, port: 9, protocolName: "UDP/TLS/RTP/SAVPF")
        (section.mid, section.direction) = (offered.mid, offered.direction)
        section.transport = local.transport(setup: .actpass)
        section.transport.candidates = local.candidates
        (section.hasRTCPMux, section.hasReducedSizeRTCP) = (true, true)
        section.payloads = offered.codecs.flatMap(\.payloads)
        section.extensions = offered.extensions.sorted { $0.value < $1.value }.map {
            ExtensionMapping(id: $0.value, uri: $0.key.rawValue)
        }
        section.rids = offered.rids.map { RestrictionIdentifier(id: $0, isSend: true) }
        if !offered.rids.isEmpty {
            var simulcast = Simulcast()
            simulcast.send = offered.rids.map { Simulcast.Stream(rid: $0) }
            section.simulcast = simulcast
        }
        if let source = offered.source { section.announce(source, cname: local.cname) }
        return section
    }
    return description
}

/// Reads an answer to a local offer.
/// - Returns: the transport parameters of the other side, and one value for each section of the offer. `rids` contains the
///   layers that the answer accepts.
/// - Throws: `SDPError` if the answer's sections do not match the offer's, if it rejects every section or the first
///   section of its BUNDLE group, or if a transport parameter is missing or invalid.
public func accept(
    _ answer: SessionDescription, to offer: SessionDescription
) throws(SDPError) -> (remote: RemoteParameters, media: [NegotiatedMedia]) {
    guard answer.sections.count == offer.sections.count,
        zip(answer.sections, offer.sections).allSatisfy({ $0.kind == $1.kind && $0.mid == $1.mid })
    else { throw SDPError(.malformed, "The answer must have the same media sections as the offer, in the same order.") }
    let mid = answer.bundleGroups.first?.first
    guard let carrier = answer.sections.first(where: { $0.port != 0 && (mid == nil || $0.mid == mid) }) else {
        throw SDPError(.unsupported, "The answer rejects every media section.")
    }
    let remote = try RemoteParameters(carrier.transport.completed(from: answer.transport), of: answer)
    guard remote.setup == .active || remote.setup == .passive else {
        throw SDPError(.malformed, "a=setup in an answer must be active or passive.")
    }
    let media = answer.sections.map { section in
        guard section.port != 0, let mid = section.mid else { return NegotiatedMedia(rejecting: section) }
        let direction = section.direction ?? answer.direction ?? .sendrecv
        var media = NegotiatedMedia(accepting: section, mid: mid, direction: direction.reversed)
        media.codecs = Codec.all(in: section)
        media.allowsMixedExtensions = answer.allowsMixedExtensions || section.allowsMixedExtensions
        for mapping in section.extensions {
            if let known = HeaderExtension(rawValue: mapping.uri) { media.extensions[known] = mapping.id }
        }
        media.rids = (section.simulcast?.receive ?? []).map { stream in
            RID(id: stream.rid, direction: .send, isPaused: stream.isPaused, payloadTypes: [])
        }
        return media
    }
    return (remote, media)
}
