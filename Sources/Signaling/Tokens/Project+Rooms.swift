import Wire

/// The permissions and lifetime of a room token that is to be created.
struct RoomTokenClaims: Equatable, Sendable {
    var room: RoomName
    var id: RoomID
    var role: RoomRole
    var displayName: String
    var lifetime: Duration
}

extension Project {
    private static let roomScope = "room.join"
    /// The longest lifetime of a room token, the same as that of a session token.
    static let longestRoomToken: Duration = .seconds(Limits.roomTokenLifetime)

    func makeRoomToken(
        _ claims: RoomTokenClaims, now: Timestamp, using generator: inout some RandomNumberGenerator
    ) -> String {
        // Add a nonce to make each token unique, so that removing one holder does not affect another.
        let nonce = RoomID.random(using: &generator)
        return JWT.sign(self) { writer in
            writer.member("iss", apiKey)
            writer.member("ist", "project")
            writer.member("scope", Self.roomScope)
            writer.member("room", claims.room.text)
            writer.member("room_id", claims.id.description)
            writer.member("role", claims.role.rawValue)
            if !claims.displayName.isEmpty { writer.member("name", claims.displayName) }
            writer.member("iat", now.seconds)
            writer.member("exp", (now + claims.lifetime).seconds)
            writer.member("jti", nonce.description)
        }
    }

    func verifyRoomToken(_ text: String, now: Timestamp) throws(WireError) -> RoomGrant {
        let token = try JWT(verifying: text, with: self, now: now)
        try token.check(project: self, scope: Self.roomScope, longest: Self.longestRoomToken, now: now)
        guard let room = token.string("room").flatMap({ RoomName($0) }),
            let id = token.string("room_id").flatMap({ RoomID($0) })
        else {
            throw WireError(
                .tokenRoom, "The token has no valid room claim. Get a token from POST /v1/rooms/{name}/tokens.")
        }
        guard let role = token.string("role").flatMap(RoomRole.init(rawValue:)) else {
            throw WireError(.tokenRole, "The token's role must be host, cohost or guest.")
        }
        let name = token.string("name") ?? ""
        guard name.utf8.count <= Limits.name else {
            throw WireError(.tokenMalformed, "The token's name claim must not exceed \(Limits.name) bytes.")
        }
        return RoomGrant(
            room: room, id: id, role: role, displayName: PersonName.vouched(name), fingerprint: token.fingerprint)
    }

    // MARK: Requests by operators and applications

    /// The longest lifetime of a request token, the same as OpenTok's.
    public static let longestRequestToken: Duration = .seconds(300)
    /// The longest lifetime of a request token for the OpenTok-compatible endpoints. It is this long because one of
    /// the vendor's packages creates tokens that are valid for 30 days.
    public static let longestApplicationToken: Duration = .seconds(30 * 24 * 3600)

    /// Returns a token for HTTP requests that require the API secret.
    public func makeRequestToken(now: Timestamp, lifetime: Duration = .seconds(60)) -> String {
        JWT.sign(self) { writer in
            writer.member("iss", apiKey)
            writer.member("ist", "project")
            writer.member("iat", now.seconds)
            writer.member("exp", (now + lifetime).seconds)
        }
    }

    /// Verifies the token of a request that requires the API secret.
    ///
    /// Such a token has no scope. Tokens of clients have a scope, so clients cannot use them to act as operators.
    public func verifyRequestToken(_ text: String, now: Timestamp) throws(WireError) {
        let token = try JWT(verifying: text, with: self, now: now)
        try token.check(project: self, scope: nil, longest: Self.longestRequestToken, now: now)
    }

    /// Verifies the token of a request to the OpenTok-compatible endpoints. The API secret or the private key of the
    /// project's application must have signed it.
    public func verifyApplicationToken(_ text: String, now: Timestamp) throws(WireError) {
        let token = try JWT(verifying: text, with: self, now: now)
        try token.check(
            project: self, scope: nil, acceptsApplication: true, longest: Self.longestApplicationToken, now: now)
        // The vendor's other products sign the tokens of end users with the same key. Those tokens name their user.
        guard !token.isOfApplication || (token.claims["sub"] == nil && token.claims["acl"] == nil) else {
            throw WireError(
                .tokenScope, "The token belongs to an end user: sub and acl are not allowed. Use one of the server.")
        }
    }
}
