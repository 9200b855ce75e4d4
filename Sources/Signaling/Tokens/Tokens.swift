import Wire
import Crypto

/// The permissions and lifetime of a session token that is to be created.
public struct SessionTokenClaims: Equatable, Sendable {
    public var session: SessionID
    public var role: Role
    /// Connection data, which everyone in the session can see.
    public var data: String
    /// The match or call whose end invalidates the token; nil if there is none.
    public var match: MatchID?
    /// The only person who may use the token of the match or call; nil if anyone may, as for legacy clients.
    public var identity: IdentityID?
    public var lifetime: Duration

    public init(
        session: SessionID, role: Role, data: String = "", match: MatchID? = nil, identity: IdentityID? = nil,
        lifetime: Duration
    ) {
        (self.session, self.role, self.data) = (session, role, data)
        (self.match, self.identity, self.lifetime) = (match, identity, lifetime)
    }
}

extension Project {
    /// The longest lifetime of a session token, the same as OpenTok's.
    public static let longestSessionToken: Duration = .seconds(30 * 24 * 3600)
    public static let longestUserToken: Duration = .seconds(24 * 3600)

    // MARK: Session tokens

    public func makeSessionToken(
        _ claims: SessionTokenClaims, now: Timestamp, using generator: inout some RandomNumberGenerator
    ) -> String {
        let nonce = UInt64.random(in: 0...999_999_999, using: &generator)
        return JWT.sign(self) { writer in
            writer.member("iss", apiKey)
            writer.member("ist", "project")
            writer.member("scope", "session.connect")
            writer.member("session_id", claims.session.text)
            writer.member("role", claims.role.rawValue)
            writer.member("iat", now.seconds)
            writer.member("exp", (now + claims.lifetime).seconds)
            writer.member("nonce", nonce)
            if !claims.data.isEmpty { writer.member("connection_data", claims.data) }
            guard let match = claims.match else { return }
            writer.member("match", match.description)
            if let identity = claims.identity { writer.member("holder", holder(identity, of: match)) }
        }
    }

    /// Returns the value of the `holder` claim, which binds a token of a match or call to a person: sixteen bytes of a
    /// keyed hash. It does not reveal the identity to readers of the token, and differs in each match, so that a
    /// person's tokens cannot be linked.
    func holder(_ identity: IdentityID, of match: MatchID) -> String {
        let code = serverKey.authenticationCode(Array("confab holder\n".utf8) + match.bytes + identity.bytes)
        return Base64URL.encode(code.prefix(16))
    }

    /// Throws if the token with these permissions is bound to a person other than `identity`. A token without a holder
    /// may be used by anyone.
    func check(_ grant: SessionGrant, isHeldBy identity: IdentityID) throws(WireError) {
        guard let holder = grant.holder else { return }
        let own = grant.match.map { self.holder(identity, of: $0) }
        guard constantTimeEquals(Array(holder.utf8), Array((own ?? "").utf8)) else {
            throw WireError(
                .tokenIdentity,
                "This token was created for another person. Use the token from your own match or call.")
        }
    }

    // MARK: User tokens

    public func makeUserToken(
        user: String, name: String?, now: Timestamp, lifetime: Duration = longestUserToken
    ) -> String {
        JWT.sign(self) { writer in
            writer.member("iss", apiKey)
            writer.member("ist", "project")
            writer.member("scope", "user.connect")
            writer.member("sub", user)
            if let name { writer.member("name", name) }
            writer.member("iat", now.seconds)
            writer.member("exp", (now + lifetime).seconds)
        }
    }

    public func verifyUserToken(_ text: String, now: Timestamp) throws(WireError) -> Identity {
        let token = try JWT(verifying: text, with: self, now: now)
        try token.check(project: self, scope: "user.connect", longest: Self.longestUserToken, now: now)
        guard let user = token.string("sub"), !user.isEmpty, user.utf8.count <= Limits.name else {
            throw WireError(.tokenMalformed, "The token requires a sub claim of 1 to \(Limits.name) bytes.")
        }
        let name = token.string("name")
        guard name.map({ $0.utf8.count <= Limits.name }) ?? true else {
            throw WireError(.tokenMalformed, "The token's name claim must not exceed \(Limits.name) bytes.")
        }
        return Identity(id: identity(ofUser: user), name: name)
    }

    /// Returns the identity of an application's user: the first sixteen bytes of a hash over the project and the user.
    public func identity(ofUser user: String) -> IdentityID {
        let digest = SHA256.hash(data: Array("confab user\n\(apiKey)\n\(user)".utf8))
        return IdentityID(bytes: digest) ?? IdentityID(high: 0, low: 0)
    }

    // MARK: Public ids

    /// Returns a person's public id: sixteen bytes of a keyed hash. Without the server key, no one can compute the public
    /// id from the identity or the identity from the public id.
    public func personID(of identity: IdentityID) -> PersonID {
        PersonID(bytes: serverKey.authenticationCode(Array("confab person\n".utf8) + identity.bytes))
            ?? PersonID(high: 0, low: 0)
    }

    /// Returns an id for one entry of a person's block list. It is not the blocked person's public id, because roulette
    /// partners do not know each other's public id, and blocking must not reveal it.
    public func blockedID(of identity: IdentityID, by owner: IdentityID) -> PersonID {
        let bytes = Array("confab blocked\n".utf8) + owner.bytes + identity.bytes
        return PersonID(bytes: serverKey.authenticationCode(bytes)) ?? PersonID(high: 0, low: 0)
    }

    // MARK: Anonymous identities

    private static let identityPrefix = "a_"

    /// Returns the secret that proves an anonymous identity. The secret is computed from the identity, so nothing is stored.
    public func secret(of identity: IdentityID) -> String {
        Self.identityPrefix + Base64URL.encode(identity.bytes + identityCode(identity))
    }

    public func verifyIdentitySecret(_ text: String) throws(WireError) -> Identity {
        guard text.utf8.count < 64, text.hasPrefix(Self.identityPrefix),
            let bytes = Base64URL.decode(text.utf8.dropFirst(Self.identityPrefix.utf8.count)), bytes.count == 32,
            let id = IdentityID(bytes: bytes)
        else {
            throw WireError(.tokenMalformed, "Malformed identity. Send hello without an identity to get a new one.")
        }
        guard constantTimeEquals(identityCode(id), Array(bytes.suffix(16))) else {
            throw WireError(.tokenSignature, "Unknown identity. Send hello without an identity to get a new one.")
        }
        return Identity(id: id)
    }

    private func identityCode(_ id: IdentityID) -> [UInt8] {
        Array(serverKey.authenticationCode(Array("confab identity\n".utf8) + id.bytes).prefix(16))
    }
}

extension Projects {
    /// Returns the token's permissions. Throws if they do not include creating or changing a resource with this
    /// purpose in this session, or if the token belongs to a match, a call or a place in a room.
    public func verifyResourceToken(
        _ token: String, for session: SessionID, _ purpose: ResourcePurpose, now: Timestamp
    ) throws(WireError) -> SessionGrant {
        guard owner(of: session) != nil else {
            throw WireError(.sessionInvalid, "Unknown session ID. Use one that this server created.")
        }
        let grant = try verifySessionToken(token, for: session, now: now)
        try SessionRights(grant.role).permit(purpose.action)
        // A match token belongs to one person in one chat. Accepting it here would let anyone stream through the server with a
        // token from the roulette.
        guard grant.match == nil else {
            throw WireError(
                .notPermitted,
                "Roulette and call tokens cannot be used here. Use a session token from your application.")
        }
        return grant
    }
}
