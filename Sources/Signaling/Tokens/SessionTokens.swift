import Crypto
import Wire

/// A session token whose signature is valid: a JWT, as Confab and the current OpenTok SDKs create it, or a T1 token, as
/// older ones do.
private struct SessionToken {
    var session: String?
    /// The role as text; nil if the token names none.
    var role: String?
    var hasRole: Bool
    var data: String
    /// Layout classes, separated by spaces.
    var layoutClasses: String
    var match: String?
    var hasMatch = false
    var holder: String?
    var fingerprint: [UInt8]
    var expiresAt: Timestamp
}

extension Projects {
    /// Verifies a session token with the keys of the project to which the session belongs, or with those of the main
    /// project if it belongs to none.
    ///
    /// - Parameter session: the session that the token must be for; nil for the one that the token names.
    public func verifySessionToken(
        _ text: String, for session: SessionID?, now: Timestamp
    ) throws(WireError) -> SessionGrant {
        let project = (session ?? Self.unverifiedSession(in: text)).flatMap(owner) ?? main
        return try project.verifySessionToken(text, for: session, now: now)
    }

    /// Returns true if the text has the form of a session token rather than of another kind of token. It may still be
    /// invalid.
    public static func isSessionToken(_ text: String) -> Bool {
        T1Token.isT1(text) || unverifiedSession(in: text) != nil
    }

    /// Returns the session that the token names, before the token is verified. This only selects the keys that must
    /// verify the token.
    private static func unverifiedSession(in text: String) -> SessionID? {
        guard text.utf8.count <= Limits.token else { return nil }
        if let token = T1Token(text) { return token.fields["session_id"].flatMap(SessionID.init) }
        return unverifiedClaim("session_id", of: text).flatMap(SessionID.init)
    }

    /// Returns the API key or application ID that a JWT names, before the token is verified.
    public static func unverifiedProject(in text: String) -> String? {
        unverifiedClaim("application_id", of: text) ?? unverifiedClaim("iss", of: text)
    }

    private static func unverifiedClaim(_ name: String, of text: String) -> String? {
        guard text.utf8.count <= Limits.token else { return nil }
        let parts = text.utf8.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
        guard parts.count == 3, let payload = Base64URL.decode(parts[1]),
            case .object(let claims)? = try? JSONReader.parse(payload), case .string(let value)? = claims[name]
        else { return nil }
        return value
    }
}

extension Project {
    /// The lifetime of a T1 token that does not name the time when it expires. The SDKs for PHP, .NET and Ruby omit
    /// this time unless their caller sets it.
    private static let usualT1Token: Duration = .seconds(24 * 3600)

    public func verifySessionToken(_ text: String, for session: SessionID?, now: Timestamp) throws(WireError)
        -> SessionGrant
    {
        let token = try T1Token.isT1(text) ? verifyT1(text, now: now) : verifyJWT(text, now: now)
        guard let named = token.session.flatMap(SessionID.init), session == nil || named == session else {
            throw WireError(.tokenSession, "The token is for another session. Create one for this session.")
        }
        guard let traits = traits(of: named) else {
            throw WireError(.sessionInvalid, "Unknown session ID. Use one that this server created.")
        }
        guard let role = token.hasRole ? token.role.flatMap(Role.init) : .publisher else {
            throw WireError(
                .tokenRole, "The token's role must be subscriber, publisher, publisheronly or moderator.")
        }
        guard token.data.unicodeScalars.count <= Limits.connectionData else {
            throw WireError(.tokenMalformed, "Connection data must not exceed \(Limits.connectionData) characters.")
        }
        guard token.layoutClasses.unicodeScalars.count <= Limits.connectionData else {
            throw WireError(
                .tokenMalformed, "The token's layout classes must not exceed \(Limits.connectionData) characters.")
        }
        // Reject a malformed match ID. If it were ignored, the token would count as one without a match, and would
        // stay valid after the match has ended.
        let match = token.match.flatMap(MatchID.init)
        guard token.hasMatch == (match != nil) else {
            throw WireError(.tokenMalformed, "The token's match claim must be a match ID.")
        }
        return SessionGrant(
            session: named, mediaMode: traits.mediaMode, isRelayedOnly: traits.isRelayedOnly, role: role,
            data: token.data, layoutClasses: token.layoutClasses.split(separator: " ").map(String.init),
            match: match, holder: token.holder, fingerprint: token.fingerprint, expiresAt: token.expiresAt)
    }

    private func verifyJWT(_ text: String, now: Timestamp) throws(WireError) -> SessionToken {
        let token = try JWT(verifying: text, with: self, now: now)
        try token.check(
            project: self, scope: "session.connect", acceptsApplication: true, longest: Self.longestSessionToken,
            now: now)
        switch token.claims["connection_data"] {
        case nil, .null?, .string?: break
        default: throw WireError(.tokenMalformed, "The token's connection_data claim must be a string.")
        }
        // Reject a malformed holder. If it were ignored, anyone could use the token.
        guard token.claims["holder"] == nil || token.string("holder") != nil else {
            throw WireError(.tokenMalformed, "The token's holder claim must be a string.")
        }
        return SessionToken(
            session: token.string("session_id"), role: token.string("role"), hasRole: token.claims["role"] != nil,
            data: token.string("connection_data") ?? "", layoutClasses: token.words("initial_layout_class_list"),
            match: token.string("match"), hasMatch: token.claims["match"] != nil, holder: token.string("holder"),
            fingerprint: token.fingerprint, expiresAt: token.date("exp") ?? now)
    }

    /// Verifies a T1 token. Apart from the API key, which must be this project's, only signed bytes are used.
    private func verifyT1(_ text: String, now: Timestamp) throws(WireError) -> SessionToken {
        guard text.utf8.count <= Limits.token else {
            throw WireError(.tokenMalformed, "The token must not exceed \(Limits.token) bytes.")
        }
        guard let token = T1Token(text) else {
            throw WireError(
                .tokenMalformed,
                "Malformed token: expected T1== and the base64 text of partner_id=…&sig=…: and the signed fields.")
        }
        guard token.apiKey == apiKey else { throw .tokenOfAnotherProject }
        try checkT1(token.signature, of: token.signed, now: now)
        guard let created = token.date("create_time"),
            let expires = token.fields["expire_time"] == nil ? created + Self.usualT1Token : token.date("expire_time")
        else {
            throw WireError(
                .tokenMalformed, "The token's create_time and expire_time must be times in seconds since 1970.")
        }
        try JWT.checkDates(
            expires: expires, issued: created, notBefore: nil, longest: Self.longestSessionToken, now: now)
        return SessionToken(
            // The SDK for .NET writes the role in capitals.
            session: token.fields["session_id"], role: token.fields["role"]?.lowercased(),
            hasRole: token.fields["role"] != nil, data: token.fields["connection_data"] ?? "",
            layoutClasses: token.fields["initial_layout_class_list"] ?? "",
            fingerprint: Array(SHA256.hash(data: token.signature).prefix(16)), expiresAt: expires)
    }
}

/// A token in OpenTok's older format, parsed but not verified: `T1==` and the base64 text of
/// `partner_id=<API key>&sig=<HMAC-SHA1 as hexadecimal digits>:<signed fields, URL-encoded>`.
struct T1Token {
    private static let prefix = "T1=="

    let apiKey: String
    let signature: [UInt8]
    let signed: [UInt8]
    let fields: FormFields

    static func isT1(_ text: String) -> Bool { text.hasPrefix(prefix) }

    /// Parses a token. Returns nil if its form is wrong.
    init?(_ text: String) {
        guard Self.isT1(text), let bytes = Self.decoded(text.utf8.dropFirst(Self.prefix.utf8.count)),
            let colon = bytes.firstIndex(of: UInt8(ascii: ":"))
        else { return nil }
        let head = FormFields(Array(bytes[..<colon]))
        guard let apiKey = head["partner_id"], let signature = head["sig"].flatMap({ Self.bytes(ofHex: $0) }) else {
            return nil
        }
        (self.apiKey, self.signature) = (apiKey, signature)
        signed = Array(bytes[(colon + 1)...])
        fields = FormFields(signed)
        guard fields.isText else { return nil }
    }

    /// Returns the value of a field that contains seconds since 1970; nil if it is missing or not such a number.
    func date(_ name: String) -> Timestamp? {
        guard let seconds = fields[name].flatMap({ Int64($0) }), (0...(1 << 40)).contains(seconds) else { return nil }
        return Timestamp(milliseconds: seconds * 1000)
    }

    /// Decodes base64 with the standard alphabet (RFC 4648 §4).
    private static func decoded(_ text: some Collection<UInt8>) -> [UInt8]? {
        var translated: [UInt8] = []
        translated.reserveCapacity(text.count)
        for byte in text {
            switch byte {
            case UInt8(ascii: "+"): translated.append(UInt8(ascii: "-"))
            case UInt8(ascii: "/"): translated.append(UInt8(ascii: "_"))
            case UInt8(ascii: "-"), UInt8(ascii: "_"): return nil
            default: translated.append(byte)
            }
        }
        return Base64URL.decode(orPadded: translated)
    }

    /// Returns the 20 bytes of a SHA-1 code, or nil unless the text has 40 hexadecimal digits.
    private static func bytes(ofHex text: String) -> [UInt8]? {
        let digits = text.utf8.compactMap { Character(UnicodeScalar($0)).hexDigitValue }
        guard text.utf8.count == 40, digits.count == 40 else { return nil }
        return stride(from: 0, to: 40, by: 2).map { UInt8(digits[$0] << 4 | digits[$0 + 1]) }
    }
}
