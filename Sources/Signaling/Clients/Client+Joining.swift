import Wire

/// Joining sessions. The client's state machine verifies the token, and the session checks everything else.
extension Client {
    /// The ids to which the tokens for the client's latest matches, calls and room places are bound, newest last. Calls
    /// and room places also have a ``MatchID`` for this purpose. Each id is remembered when the match, call or place
    /// begins, so some may not have ended yet.
    ///
    /// The client may send a join with the token for a match before it is notified that the match has ended. Such a
    /// join must not close the connection. Several ids are remembered: if a partner skips and the next match also ends
    /// quickly, a join for the first match may arrive after both have ended.
    struct RecentlyEnded: Equatable, Sendable {
        private var matches: [MatchID] = []
        private static let maxCount = 8

        mutating func remember(_ match: MatchID) {
            guard !matches.contains(match) else { return }
            matches.append(match)
            if matches.count > Self.maxCount { matches.removeFirst() }
        }

        func contains(_ match: MatchID) -> Bool { matches.contains(match) }
    }

    mutating func join(_ join: SessionVerb.Join, re: UInt64, _ context: inout Context) {
        let grant: SessionGrant
        do throws(WireError) {
            grant = try context.projects.verifySessionToken(join.token, for: join.session, now: context.wallNow)
        } catch {
            return refuseJoin(re: re, error, match: nil, &context)
        }
        guard !sessions.contains(join.session) else {
            return fail(.inSession, re: re, &context)
        }
        guard sessions.count < context.rules.sessionsPerClient else {
            let error = WireError(
                .sessionFull, "A connection can join at most \(sessions.count) sessions. Leave one first.")
            return fail(error, re: re, &context)
        }
        context.tell(.session(join.session, .join(id, identity, grant, re: re)))
    }

    /// Rejects a join. An invalid token closes the connection, unless it became invalid because its match ended while
    /// the join was in transit. In that case, and for all other errors, the client only receives the error.
    mutating func refuseJoin(re: UInt64, _ error: WireError, match: MatchID?, _ context: inout Context) {
        let crossed = error.code == .tokenMatchEnded && match.map(recentlyEnded.contains) ?? false
        if error.code.isToken, !crossed {
            expel(error, .token, re: re, &context)
        } else {
            fail(error, re: re, &context)
        }
    }
}
