import Wire

@testable import Signaling

/// The project for all inputs. Its secret must not change, because the tokens in the corpus are signed with it.
enum FuzzProject {
    static let apiKey = "45000001"
    static let secret = "00112233445566778899aabbccddeeff0011223344556677"
    static let now = Timestamp(milliseconds: 1_790_000_000_000)

    /// The project. Force-unwrapped, because the constants above are valid.
    static let project = Project(apiKey: apiKey, secret: secret)!
}

extension FuzzTarget {
    /// Fuzzes a token or secret from a client that does not know the project's secret.
    static let tokens = FuzzTarget("tokens", longestInput: 2048, dictionary: "tokens") { input throws(BrokenProperty) in
        let text = String(decoding: input, as: UTF8.self)
        let (project, now) = (FuzzProject.project, FuzzProject.now)
        try checkToken(text)
        if let identity = try? project.verifyIdentitySecret(text) {
            try require(project.secret(of: identity.id) == text, "an identity has two secrets")
        }
        if let client = ResumeSecret.client(of: text) {
            try require(
                text.hasPrefix("r_" + Base64URL.encode(client.bytes).prefix(20)),
                "the prefix of a secret names a different client")
        }
        if let bytes = Base64URL.decode(input) {
            try require(Array(Base64URL.encode(bytes).utf8) == input, "base64url has two encodings")
        }
        _ = try? project.verifySessionToken(text, for: SessionID(text), now: now)
    }

    /// Fuzzes tokens that are signed with the project's secret but may be invalid. The input is the claims, or a header, a line
    /// break and the claims.
    static let signedTokens = FuzzTarget("signed-tokens", dictionary: "tokens") { input throws(BrokenProperty) in
        let parts = input.split(separator: UInt8(ascii: "\n"), maxSplits: 1, omittingEmptySubsequences: false)
        let usual = Array(#"{"alg":"HS256","typ":"JWT"}"#.utf8)
        let (header, claims) = parts.count == 2 ? (Array(parts[0]), Array(parts[1])) : (usual, input)
        let signed = Base64URL.encode(header) + "." + Base64URL.encode(claims)
        let code = FuzzProject.project.signature(of: Array(signed.utf8))
        try checkToken(signed + "." + Base64URL.encode(code))
    }

    /// Fuzzes T1 tokens that are signed with the project's secret but may be invalid. The input is the signed fields.
    static let t1Tokens = FuzzTarget("t1-tokens", dictionary: "tokens") { input throws(BrokenProperty) in
        let project = FuzzProject.project
        let digits = "0123456789abcdef".map(String.init)
        func token(_ fields: [UInt8], _ signature: [UInt8]) -> String {
            let hex = signature.map { digits[Int($0 >> 4)] + digits[Int($0 & 15)] }.joined()
            return "T1==" + base64(Array("partner_id=\(FuzzProject.apiKey)&sig=\(hex):".utf8) + fields)
        }
        let signature = project.signatureOfT1(input)
        try checkToken(token(input, signature))
        try require(
            (try? project.verifySessionToken(token(input + [0x26], signature), for: nil, now: FuzzProject.now)) == nil,
            "a changed token is valid")
        if let parsed = T1Token(token(input, signature)) {
            try require(parsed.signed == input, "other bytes are verified than are signed")
        }
    }

    /// Returns the text in base64 with the standard alphabet, without padding.
    private static func base64(_ bytes: [UInt8]) -> String {
        Base64URL.encode(bytes).replacing("-", with: "+").replacing("_", with: "/")
    }

    private static func checkToken(_ token: String) throws(BrokenProperty) {
        let (project, now) = (FuzzProject.project, FuzzProject.now)
        let skew: Duration = .seconds(60)
        if let grant = try? project.verifySessionToken(token, for: nil, now: now) {
            try require(grant.data.unicodeScalars.count <= Limits.connectionData, "connection data is too long")
            try require(
                project.mediaMode(of: grant.session) == grant.mediaMode, "the session belongs to another project")
            let same = try? project.verifySessionToken(token, for: grant.session, now: now)
            try require(same == grant, "the token does not admit to its session")
            let end = now + Project.longestSessionToken + skew
            try require(
                (try? project.verifySessionToken(token, for: nil, now: end)) == nil,
                "a session token outlives the limit")
        }
        if let grant = try? project.verifyRoomToken(token, now: now) {
            try require(grant.displayName.count <= Limits.personName, "a name from a room token is too long")
            try require((try? project.verifyRequestToken(token, now: now)) == nil, "a room token makes an operator")
        }
        if let identity = try? project.verifyUserToken(token, now: now) {
            try require(identity.name?.utf8.count ?? 0 <= Limits.name, "the name is too long")
            let end = now + Project.longestUserToken + skew
            try require((try? project.verifyUserToken(token, now: end)) == nil, "a user token outlives the limit")
            try require(
                (try? project.verifySessionToken(token, for: nil, now: now)) == nil,
                "one token is valid as a user token and as a session token")
        }
    }
}
