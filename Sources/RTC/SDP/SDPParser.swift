extension SessionDescription {
    /// Parses a description in linear time. The limits in `SessionDescription` bound how much memory it takes.
    public init(parsing bytes: UnsafeRawBufferPointer) throws(SDPError) {
        var parser = SDPParser()
        self = try parser.parse(bytes)
    }

    public init(parsing bytes: [UInt8]) throws(SDPError) {
        let result = bytes.withUnsafeBytes { raw in
            Result { () throws(SDPError) in try SessionDescription(parsing: raw) }
        }
        self = try result.get()
    }

    public init(parsing text: String) throws(SDPError) {
        // Check the length before copying the text.
        guard text.utf8.count <= Self.maxBytes else { throw SDPParser.tooLarge }
        try self.init(parsing: Array(text.utf8))
    }
}

/// The attributes that are parsed; all others are ignored.
enum SDPAttribute: String {
    case group, candidate, fingerprint, setup, mid, extmap, rtpmap, fmtp, ssrc, msid, rid, simulcast
    case sendrecv, sendonly, recvonly, inactive
    case iceLite = "ice-lite"
    case iceUfrag = "ice-ufrag"
    case icePwd = "ice-pwd"
    case endOfCandidates = "end-of-candidates"
    case extmapAllowMixed = "extmap-allow-mixed"
    case rtcpMux = "rtcp-mux"
    case rtcpRsize = "rtcp-rsize"
    case rtcpFb = "rtcp-fb"
    case bundleOnly = "bundle-only"
    case ssrcGroup = "ssrc-group"

    /// The maximum length of an attribute name in bytes. No supported attribute has a longer name.
    static let maxNameBytes = 20
}

/// A parser that splits a description into lines and sections, and reads the session-level lines.
struct SDPParser {
    private var session = SessionDescription(origin: Origin(sessionID: 0, version: 0))
    /// The section that is being parsed; nil before the first `m=` line.
    private var section: MediaSection?
    private var mids: Set<String> = []
    private var hasVersion = false
    private var hasOrigin = false

    static let tooLarge = SDPError(
        .tooLarge, "The session description is too long. The maximum is \(SessionDescription.maxBytes / 1024) KiB.")

    mutating func parse(_ bytes: UnsafeRawBufferPointer) throws(SDPError) -> SessionDescription {
        guard bytes.count <= SessionDescription.maxBytes else { throw Self.tooLarge }
        var rest = SDPBytes(bytes)
        var number = 0
        while !rest.isEmpty {
            number += 1
            // Accept lines that end with LF alone, as RFC 8866 §5 recommends. Writers end lines with CRLF.
            var text = rest.take(until: UInt8(ascii: "\n"))
            if text.last == UInt8(ascii: "\r") { text = text.dropLast() }
            if text.isEmpty { continue }
            try Self.check(text, number: number)
            try read(text, number: number)
        }
        endSection()
        guard hasVersion else { throw SDPError(.missing, "The session description must begin with v=0.") }
        guard hasOrigin else { throw SDPError(.missing, "The session description has no o= line.") }
        return session
    }

    /// Rejects a line that is too long or is not text, because such a line could otherwise get into an answer.
    static func check(_ text: SDPBytes, number: Int) throws(SDPError) {
        guard text.count <= SessionDescription.maxLineBytes else {
            throw SDPError(
                .tooLarge, line: number,
                "The line is too long. The maximum is \(SessionDescription.maxLineBytes) bytes.")
        }
        let content = text.content
        guard content != .notText else {
            throw SDPError(.malformed, line: number, "Lines must not contain NUL or a lone CR.")
        }
        guard content == .ascii || text.isUTF8 else {
            throw SDPError(.malformed, line: number, "The session description must be UTF-8.")
        }
    }

    private mutating func read(_ text: SDPBytes, number: Int) throws(SDPError) {
        guard let type = text.first, (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(type),
            text.dropFirst(1).first == UInt8(ascii: "=")
        else {
            throw SDPError(
                .malformed, line: number, "Every line must be a lowercase letter, an equals sign and a value.")
        }
        var line = SDPLine(number: number, text.dropFirst(2))
        guard hasVersion || type == UInt8(ascii: "v") else {
            throw line.malformed("The session description must begin with v=0.")
        }
        switch type {
        case UInt8(ascii: "v"):
            guard !hasVersion, line.rest.text == "0" else {
                throw line.malformed("v= must appear once and must be 0.")
            }
            hasVersion = true
        case UInt8(ascii: "o"): try origin(&line)
        case UInt8(ascii: "m"): try beginSection(&line)
        case UInt8(ascii: "a"): try attribute(&line)
        default: break
        }
    }

    private mutating func origin(_ line: inout SDPLine) throws(SDPError) {
        guard !hasOrigin, section == nil else { throw line.malformed("o= must appear once, before the first m=.") }
        hasOrigin = true
        session.origin = Origin(
            username: try line.visible("The username in o=", upTo: 256),
            sessionID: try line.number(UInt64.self, "The session id in o="),
            version: try line.number(UInt64.self, "The version in o="))
    }

    private mutating func beginSection(_ line: inout SDPLine) throws(SDPError) {
        endSection()
        guard session.sections.count < SessionDescription.maxSections else {
            throw line.tooMany(SessionDescription.maxSections, "m= lines")
        }
        section = try MediaSection(&line)
    }

    private mutating func endSection() {
        if let section { session.sections.append(section) }
        section = nil
    }

    private mutating func attribute(_ line: inout SDPLine) throws(SDPError) {
        let name = line.take(until: UInt8(ascii: ":"))
        guard name.count <= SDPAttribute.maxNameBytes, let attribute = SDPAttribute(rawValue: name.text) else {
            return
        }
        guard section != nil else { return try sessionAttribute(attribute, &line) }
        try section?.read(attribute, &line)
        if attribute == .mid, let mid = section?.mid, !mids.insert(mid).inserted {
            throw SDPError(
                .duplicate, line: line.number, "Two media sections have the mid \(mid). Mids must be unique.")
        }
    }

    private mutating func sessionAttribute(_ attribute: SDPAttribute, _ line: inout SDPLine) throws(SDPError) {
        switch attribute {
        case .group: try group(&line)
        case .iceLite: session.isICELite = true
        case .extmapAllowMixed: session.allowsMixedExtensions = true
        case .sendrecv, .sendonly, .recvonly, .inactive:
            session.direction = MediaDirection(rawValue: attribute.rawValue)
        default: try session.transport.read(attribute, &line)
        }
    }

    private mutating func group(_ line: inout SDPLine) throws(SDPError) {
        guard line.word().text == "BUNDLE" else { return }
        guard session.bundleGroups.count < SessionDescription.maxBundleGroups else {
            throw line.tooMany(SessionDescription.maxBundleGroups, "BUNDLE groups")
        }
        var mids: [String] = []
        while !line.isAtEnd {
            let word = line.word()
            if word.isEmpty { continue }
            guard mids.count < SessionDescription.maxSections else {
                throw line.tooMany(SessionDescription.maxSections, "mids in a group")
            }
            mids.append(try line.token(word, "A mid", upTo: SessionDescription.maxMIDCharacters))
        }
        session.bundleGroups.append(mids)
    }
}

extension TransportDescription {
    /// Reads a transport attribute and ignores all other attributes.
    mutating func read(_ attribute: SDPAttribute, _ line: inout SDPLine) throws(SDPError) {
        switch attribute {
        case .iceUfrag: ufrag = try Self.credential(&line, 4...256, "ice-ufrag")
        case .icePwd: pwd = try Self.credential(&line, 22...256, "ice-pwd")
        case .fingerprint: try fingerprint(&line)
        case .setup:
            guard let value = Setup(rawValue: line.word().text) else {
                throw line.malformed("a=setup must be actpass, active, passive or holdconn.")
            }
            setup = value
        case .candidate:
            guard candidates.count < SessionDescription.maxCandidates else {
                throw line.tooMany(SessionDescription.maxCandidates, "candidates")
            }
            if let candidate = try Candidate(&line) { candidates.append(candidate) }
        case .endOfCandidates: hasEndOfCandidates = true
        default: break
        }
    }

    private static func credential(
        _ line: inout SDPLine, _ lengths: ClosedRange<Int>, _ name: String
    ) throws(SDPError) -> String {
        let value = line.word()
        guard lengths.contains(value.count), value.isICECharacters, line.isAtEnd else {
            throw line.malformed(
                "a=\(name) must be \(lengths.lowerBound) to \(lengths.upperBound) letters, digits, + or /.")
        }
        return value.text
    }

    private mutating func fingerprint(_ line: inout SDPLine) throws(SDPError) {
        guard let algorithm = Fingerprint.Algorithm(rawValue: line.word().text.lowercased()) else { return }
        guard fingerprints.count < SessionDescription.maxFingerprints else {
            throw line.tooMany(SessionDescription.maxFingerprints, "fingerprints")
        }
        var bytes: [UInt8] = []
        var digits = line.word()
        while !digits.isEmpty, bytes.count <= algorithm.length {
            let pair = digits.take(until: UInt8(ascii: ":"))
            guard pair.count == 2, let byte = pair.hexadecimal else {
                throw line.malformed("A fingerprint must be pairs of hexadecimal digits separated by colons.")
            }
            bytes.append(UInt8(truncatingIfNeeded: byte))
        }
        guard let fingerprint = Fingerprint(algorithm, bytes) else {
            throw line.malformed("A \(algorithm.rawValue) fingerprint must have \(algorithm.length) bytes.")
        }
        fingerprints.append(fingerprint)
    }
}
