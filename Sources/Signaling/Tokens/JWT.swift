import Crypto
import Wire

/// A JSON Web Token (RFC 7519). It must be signed with HS256 and the project's secret, or with RS256 if the project has a
/// public key.
struct JWT {
    /// The header of every token that is created here: `{"alg":"HS256","typ":"JWT"}`.
    private static let header = Base64URL.encode(#"{"alg":"HS256","typ":"JWT"}"#.utf8)

    let claims: JSONObject
    /// The first 16 bytes of the signature. They identify the token, but are not enough to use it.
    let fingerprint: [UInt8]
    /// Whether the private key of the project's application signed the token, rather than the API secret.
    let isOfApplication: Bool
    /// The claim `ist`. OpenTok's SDK for Ruby writes it into the header.
    private let issuerType: JSONValue?

    static func sign(_ project: Project, claims: (inout JSONWriter) -> Void) -> String {
        var writer = JSONWriter()
        writer.beginObject()
        claims(&writer)
        writer.endObject()
        let signed = header + "." + Base64URL.encode(writer.bytes)
        return signed + "." + Base64URL.encode(project.signature(of: Array(signed.utf8)))
    }

    /// Parses a token. The signature is verified before any claim is read.
    init(verifying text: String, with project: Project, now: Timestamp) throws(WireError) {
        guard text.utf8.count <= Limits.token else {
            throw WireError(.tokenMalformed, "The token must not exceed \(Limits.token) bytes.")
        }
        let parts = text.utf8.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
        guard parts.count == 3, let header = Base64URL.decode(parts[0]), let payload = Base64URL.decode(parts[1]),
            let signature = Base64URL.decode(parts[2])
        else { throw WireError(.tokenMalformed, "Malformed token: expected three base64url parts separated by dots.") }
        // Tokens with unsupported critical extensions (`crit`) must be rejected (RFC 7515 §4.1.11), and no such extension is
        // supported here.
        let signed = Array(parts[0]) + [UInt8(ascii: ".")] + Array(parts[1])
        guard let head = Self.object(header), head["crit"] == nil else { throw .tokenHeader }
        // The algorithm selects the key, and each key serves only one algorithm (RFC 8725 §3.1).
        switch head["alg"] {
        case .string("HS256")?: try project.check(signature, of: signed, now: now)
        case .string("RS256")?:
            guard let application = project.application else { throw .tokenHeader }
            try application.check(signature, of: signed)
        default: throw .tokenHeader
        }
        isOfApplication = head["alg"] == .string("RS256")
        guard let claims = Self.object(payload) else {
            throw WireError(.tokenMalformed, "The token's claims must be a JSON object without duplicate keys.")
        }
        self.claims = claims
        issuerType = claims["ist"] ?? head["ist"]
        fingerprint = Array(signature.prefix(16))
    }

    private static func object(_ bytes: [UInt8]) -> JSONObject? {
        guard case .object(let object)? = try? JSONReader.parse(bytes) else { return nil }
        return object
    }

    func string(_ name: String) -> String? {
        if case .string(let text)? = claims[name] { text } else { nil }
    }

    /// Returns the value of a `NumericDate` claim (RFC 7519 §2), which may have a fraction. Returns nil if the claim
    /// is missing, not a number, or too large.
    func date(_ name: String) -> Timestamp? {
        switch claims[name] {
        case .integer(let seconds)?:
            let (milliseconds, overflow) = seconds.multipliedReportingOverflow(by: 1000)
            return overflow ? nil : Timestamp(milliseconds: milliseconds)
        case .number(let seconds)?:
            return Int64(exactly: (seconds * 1000).rounded(.down)).map { Timestamp(milliseconds: $0) }
        default: return nil
        }
    }

    /// Returns the text of a claim. If the claim is an array, returns its texts joined by spaces. Returns "" if the
    /// claim is missing or has another type.
    func words(_ name: String) -> String {
        switch claims[name] {
        case .string(let text)?: text
        case .array(let values)?:
            values.compactMap { if case .string(let text) = $0 { text } else { nil } }.joined(separator: " ")
        default: ""
        }
    }

    /// Checks the claims that all tokens of a project have: issuer (or application), type, scope and dates. Throws if
    /// one of them is wrong.
    ///
    /// - Parameters:
    ///   - scope: the scope that the token must have; nil if it must have none.
    ///   - acceptsApplication: whether the private key of the project's application may have signed the token.
    ///   - longest: the longest lifetime that the token may have.
    func check(
        project: Project, scope: String?, acceptsApplication: Bool = false, longest: Duration, now: Timestamp
    ) throws(WireError) {
        guard acceptsApplication || !isOfApplication else {
            throw WireError(
                .tokenScope,
                "A token signed with the application's private key is not accepted here. Sign it with the API secret.")
        }
        let isOfProject =
            isOfApplication
            ? string("application_id") == project.application?.id : string("iss") == project.apiKey
        guard isOfProject else { throw .tokenOfAnotherProject }
        guard isOfApplication || issuerType == .string("project"), string("scope") == scope,
            scope != nil || claims["scope"] == nil
        else {
            let expected = scope.map { "scope must be \"\($0)\"" } ?? "there must be no scope"
            throw WireError(.tokenScope, "Wrong token type: ist must be \"project\" and \(expected).")
        }
        guard let expires = date("exp") else {
            throw WireError(
                .tokenMalformed,
                "The token has no valid exp claim. Set exp to the expiry time in seconds since 1970.")
        }
        guard ["iat", "nbf"].allSatisfy({ claims[$0] == nil || date($0) != nil }) else {
            throw WireError(
                .tokenMalformed, "The token's iat and nbf claims must be times in seconds since 1970.")
        }
        try Self.checkDates(
            expires: expires, issued: date("iat") ?? now, notBefore: date("nbf"), longest: longest, now: now)
    }

    /// Checks the dates of a JWT or T1 token. Throws if it is not valid now, or if its lifetime is longer than
    /// `longest`.
    static func checkDates(
        expires: Timestamp, issued: Timestamp, notBefore: Timestamp?, longest: Duration, now: Timestamp
    ) throws(WireError) {
        guard now < expires else {
            throw WireError(.tokenExpired, "The token has expired. Get a new one.")
        }
        // Allow a clock difference of one minute, which is common and harmless.
        let skew: Duration = .seconds(60)
        guard issued <= now + skew, (notBefore ?? issued) <= now + skew else {
            throw WireError(
                .tokenNotYet, "The token is not valid yet. Check the clock of the machine that created it.",
                retryable: true)
        }
        // Measure the lifetime from now if `iat` is in the future. Otherwise such a token could be valid for longer
        // than allowed.
        guard expires - Swift.min(issued, now) <= longest + skew else {
            throw WireError(.tokenLifetime, "The token's lifetime must not exceed \(longest.roundedText).")
        }
    }
}

extension WireError {
    static let tokenOfAnotherProject = WireError(
        .tokenProject, "The token belongs to another project. Create one with this server's API key and secret.")
    fileprivate static let tokenHeader = WireError(
        .tokenMalformed,
        "Unsupported token header: alg must be HS256, or RS256 if the project has a public key. crit is not allowed.")
}
