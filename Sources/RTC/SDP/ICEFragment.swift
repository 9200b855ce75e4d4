/// An `application/trickle-ice-sdpfrag` (RFC 8840 §9): only the ICE attributes of a session description. WHIP uses it to
/// trickle candidates and to restart ICE (RFC 9725 §4.3).
///
/// The parser ignores all other lines, because some clients send their whole description.
public struct ICEFragment: Hashable, Sendable {
    /// The username fragment. Nil if the fragment contains only candidates, which then belong to the current ICE session.
    public var ufrag: String?
    public var pwd: String?
    /// The supported candidates of all sections.
    public var candidates: [Candidate] = []
    public var hasEndOfCandidates = false

    /// The maximum size of a fragment: twice the size of 128 candidates of maximum length.
    public static let maxBytes = 64 * 1024

    /// Parses a fragment in linear time.
    /// - Throws: `SDPError` with a message for the developer of the client.
    public init(parsing bytes: [UInt8]) throws(SDPError) {
        let result = bytes.withUnsafeBytes { raw in
            Result { () throws(SDPError) in try ICEFragment(reading: raw) }
        }
        self = try result.get()
    }

    private init(reading bytes: UnsafeRawBufferPointer) throws(SDPError) {
        guard bytes.count <= Self.maxBytes else {
            throw SDPError(.tooLarge, "The fragment is too long. The maximum is \(Self.maxBytes / 1024) KiB.")
        }
        var (rest, number) = (SDPBytes(bytes), 0)
        var (transport, sections, hasCandidates) = (TransportDescription(), 0, false)
        while !rest.isEmpty {
            number += 1
            var text = rest.take(until: UInt8(ascii: "\n"))
            if text.last == UInt8(ascii: "\r") { text = text.dropLast() }
            if text.isEmpty { continue }
            try SDPParser.check(text, number: number)
            guard let type = text.first, (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(type),
                text.dropFirst(1).first == UInt8(ascii: "=")
            else {
                throw SDPError(
                    .malformed, line: number, "Every line must be a lowercase letter, an equals sign and a value.")
            }
            var line = SDPLine(number: number, text.dropFirst(2))
            if type == UInt8(ascii: "m") {
                sections += 1
                guard sections <= SessionDescription.maxSections else {
                    throw line.tooMany(SessionDescription.maxSections, "m= lines")
                }
                _ = try MediaSection(&line)
            } else if type == UInt8(ascii: "a") {
                hasCandidates = try Self.read(&line, into: &transport) || hasCandidates
            }
        }
        guard transport.ufrag != nil || hasCandidates || transport.hasEndOfCandidates else {
            throw SDPError(.missing, "The fragment must have a=ice-ufrag and a=ice-pwd, or candidates.")
        }
        guard (transport.ufrag == nil) == (transport.pwd == nil) else {
            throw SDPError(.missing, "a=ice-ufrag and a=ice-pwd must be sent together.")
        }
        (ufrag, pwd, candidates) = (transport.ufrag, transport.pwd, transport.candidates)
        hasEndOfCandidates = transport.hasEndOfCandidates
    }

    /// Reads a line of the fragment into `transport`.
    ///
    /// - Returns: true if the line is a candidate, supported or not.
    private static func read(
        _ line: inout SDPLine, into transport: inout TransportDescription
    ) throws(SDPError) -> Bool {
        let name = line.take(until: UInt8(ascii: ":"))
        guard name.count <= SDPAttribute.maxNameBytes, let attribute = SDPAttribute(rawValue: name.text) else {
            return false
        }
        let (ufrag, pwd) = (transport.ufrag, transport.pwd)
        switch attribute {
        case .iceUfrag, .icePwd, .candidate, .endOfCandidates: try transport.read(attribute, &line)
        default: return false
        }
        // All sections share one transport, so they must have the same ICE credentials.
        guard ufrag ?? transport.ufrag == transport.ufrag, pwd ?? transport.pwd == transport.pwd else {
            throw SDPError(
                .duplicate, line: line.number, "All media sections must have the same a=ice-ufrag and a=ice-pwd.")
        }
        return attribute == .candidate
    }
}

extension SessionDescription {
    /// The ICE part of an answer as a fragment (RFC 8840 §9): the credentials and candidates of the section that
    /// carries the transport. Empty if no section is in use.
    public var iceFragment: String {
        let tagged = bundleGroups.first?.first
        guard
            let carrier = sections.first(where: { $0.mid == tagged && $0.isActive })
                ?? sections.first(where: \.isActive)
        else { return "" }
        let own = carrier.transport.completed(from: transport)
        var lines: [String] = []
        if isICELite { lines.append("a=ice-lite") }
        if let group = bundleGroups.first { lines.append("a=group:BUNDLE " + group.joined(separator: " ")) }
        let formats = carrier.isRTP ? carrier.payloads.map { "\($0.payloadType)" } : carrier.formats
        lines.append("m=\(carrier.kind.name) 9 \(carrier.protocolName) " + formats.joined(separator: " "))
        if let mid = carrier.mid { lines.append("a=mid:" + mid) }
        if let ufrag = own.ufrag { lines.append("a=ice-ufrag:" + ufrag) }
        if let pwd = own.pwd { lines.append("a=ice-pwd:" + pwd) }
        lines += own.candidates.map { "a=candidate:" + $0.line }
        if own.hasEndOfCandidates { lines.append("a=end-of-candidates") }
        return lines.map { $0 + "\r\n" }.joined()
    }

    /// The ICE credentials of the section that carries the transport, which is the first in the BUNDLE group. If there
    /// is no such section, those of the first section that has any, or of the session level. Nil if there are none.
    public var iceCredentials: (ufrag: String, pwd: String)? {
        let tagged = bundleGroups.first?.first
        let carrier = sections.first { $0.mid == tagged } ?? sections.first { $0.transport.ufrag != nil }
        let own = (carrier?.transport ?? TransportDescription()).completed(from: transport)
        guard let ufrag = own.ufrag, let pwd = own.pwd else { return nil }
        return (ufrag, pwd)
    }

    /// The text of the description without credentials and candidates, split at the position for session-level
    /// credentials. The two strings with new credentials between them form the offer of an ICE restart (RFC 8839
    /// §4.4.3).
    public var textAroundCredentials: (head: String, tail: String) {
        var bare = self
        (bare.transport.ufrag, bare.transport.pwd, bare.transport.candidates) = (nil, nil, [])
        for index in bare.sections.indices {
            (bare.sections[index].transport.ufrag, bare.sections[index].transport.pwd) = (nil, nil)
            bare.sections[index].transport.candidates = []
        }
        let sections = bare.sections
        bare.sections = []
        let head = bare.text
        bare.sections = sections
        return (head, String(decoding: bare.text.utf8.dropFirst(head.utf8.count), as: UTF8.self))
    }
}
