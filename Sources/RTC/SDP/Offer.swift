/// A section that a robot offers. Browsers offer more; this is what the tests and the bench need.
public struct OfferedMedia: Hashable, Sendable {
    public var mid: String
    public var kind: MediaKind
    public var direction: MediaDirection
    public var codecs: [Codec]
    public var extensions: [HeaderExtension: UInt8]
    /// What it sends, where it does.
    public var source: LocalSource?
    /// Of the layers it sends, the preferred first. Empty is no simulcast.
    public var rids: [String] = []

    public init(
        mid: String, kind: MediaKind, direction: MediaDirection, codecs: [Codec],
        extensions: [HeaderExtension: UInt8] = Self.extensions, source: LocalSource? = nil
    ) {
        (self.mid, self.kind, self.direction, self.codecs) = (mid, kind, direction, codecs)
        (self.extensions, self.source) = (extensions, source)
    }

    /// Opus at 111.
    public static func audio(mid: String, _ direction: MediaDirection, source: LocalSource? = nil) -> OfferedMedia {
        let opus = Codec(.opus, payloadType: 111, fmtp: "minptime=10;useinbandfec=1")
        return OfferedMedia(mid: mid, kind: .audio, direction: direction, codecs: [opus], source: source)
    }

    /// VP8 at 96, its retransmissions at 97.
    public static func video(mid: String, _ direction: MediaDirection, source: LocalSource? = nil) -> OfferedMedia {
        let vp8 = Codec(.vp8, payloadType: 96, rtxPayloadType: 97)
        return OfferedMedia(mid: mid, kind: .video, direction: direction, codecs: [vp8], source: source)
    }

    /// All that are known, with ids from 1.
    public static let extensions = Dictionary(
        uniqueKeysWithValues: zip(HeaderExtension.allCases, UInt8(1)...))
}

/// An offer of these sections on one transport. Everything it names is ours, so nothing is checked.
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

/// Reads an answer to an offer of ours.
///
/// - Returns: the other side's transport, and one value for each section of the offer. `rids` are those that the answer
///   takes.
/// - Throws: `SDPError` if the answer is to another offer, or lacks what a transport needs.
public func accept(
    _ answer: SessionDescription, to offer: SessionDescription
) throws(SDPError) -> (remote: RemoteParameters, media: [NegotiatedMedia]) {
    guard answer.sections.count == offer.sections.count,
        zip(answer.sections, offer.sections).allSatisfy({ $0.kind == $1.kind && $0.mid == $1.mid })
    else { throw SDPError(.malformed, "An answer has the sections of its offer, in their order.") }
    let mid = answer.bundleGroups.first?.first
    guard let carrier = answer.sections.first(where: { $0.port != 0 && (mid == nil || $0.mid == mid) }) else {
        throw SDPError(.unsupported, "The answer rejects everything.")
    }
    let remote = try RemoteParameters(carrier.transport.completed(from: answer.transport), of: answer)
    guard remote.setup == .active || remote.setup == .passive else {
        throw SDPError(.malformed, "An answer is active or passive in DTLS.")
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
