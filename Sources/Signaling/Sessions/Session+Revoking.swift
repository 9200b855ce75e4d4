import Wire

/// Revokes the tokens of members who were removed, so that they cannot return.
extension Session {
    /// The minimum time between two searches for expired tokens, because each visits all revoked tokens of the session.
    private static let pause: Duration = .seconds(60)

    func isRevoked(_ grant: SessionGrant) -> Bool {
        revoked[grant.fingerprint] != nil
            || grant.match.flatMap { bindings[$0]?.revoked.contains(grant.fingerprint) } ?? false
    }

    /// Revokes the token with which a member joined.
    ///
    /// - Throws: `rate_limited` if the project has too many revoked tokens. To revoke a token and forget another one would
    ///   let a removed person return.
    mutating func revoke(_ member: Member, by moderator: Moderator, _ context: inout Context) throws(WireError) {
        let token = member.token
        var revocation = Revocation(
            session: id, fingerprint: token.fingerprint, expiresAt: token.expiresAt, by: moderator, of: member.identity,
            at: context.wallNow)
        if let match = member.match {
            bindings[match]?.revoked.insert(token.fingerprint)
            // Of the matches that tokens are bound to, only calls continue after a restart.
            revocation.isKept = bindings[match]?.call != nil
        } else {
            try context.permitRevocation(of: apiKey)
            if revoked.updateValue(token.expiresAt, forKey: token.fingerprint) == nil {
                context.countRevocations(1, of: apiKey)
            }
            let check = context.moment.look(forWall: token.expiresAt)
            revokedCheckAt = min(revokedCheckAt ?? check, check)
        }
        context.persist(.revoked(revocation))
    }

    mutating func setRevoked(_ tokens: [[UInt8]: Timestamp], _ context: inout Context) {
        context.countRevocations(tokens.count - revoked.count, of: apiKey)
        revoked = tokens
        if tokens.isEmpty { revokedCheckAt = nil }
    }

    /// Deletes expired entries of `revoked`, but only if the clock is confirmed. If a wrong clock deleted a token
    /// early, a removed member could return with it once the clock is corrected.
    mutating func forgetExpiredTokens(_ context: inout Context) {
        if let wall = context.moment.confirmedWall { setRevoked(revoked.filter { $0.value > wall }, &context) }
        revokedCheckAt = revoked.values.min().map {
            max(context.moment.look(forWall: $0), context.now + Self.pause)
        }
    }
}
