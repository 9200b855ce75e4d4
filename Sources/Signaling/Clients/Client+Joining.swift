import Wire

/// Joining sessions. The client's state machine verifies the token, and the session checks everything else.
extension Client {
    /// The latest matches, calls and room places of the client, newest last. They are remembered when they begin, and
    /// may have ended. The client may have sent a join with the token of a match before it was notified that the match
    /// had ended. There can be several: if a partner skips and the next match also ends quickly, a join for the first
    /// match may arrive after both ends.
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
            return fail(WireError(.alreadyJoined, "This connection has already joined the session."), re: re, &context)
        }
        guard sessions.count < context.rules.sessionsPerClient else {
            let error = WireError(
                .sessionFull, "A connection can join at most \(sessions.count) sessions. Leave one first.")
            return fail(error, re: re, &context)
        }
        context.tell(.session(join.session, .join(id, identity, grant, re: re)))
    }

    /// Rejects a join. A bad token closes the connection. A token whose match ended while the join was in transit
    /// does not.
    mutating func refuseJoin(re: UInt64, _ error: WireError, match: MatchID?, _ context: inout Context) {
        let crossed = error.code == .tokenMatchEnded && match.map(recentlyEnded.contains) ?? false
        if error.code.isToken, !crossed {
            expel(error, .token, re: re, &context)
        } else {
            fail(error, re: re, &context)
        }
    }
}
