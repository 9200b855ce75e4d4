import Wire

/// Going into sessions: the token is judged here, the rest by the session.
extension Client {
    /// Matches and calls whose end this client may not have heard of when it used their tokens, the newest last. More than
    /// one: when a partner says Next and the next one is there at once, a join for the first match crosses both on the wire.
    struct Crossings: Equatable, Sendable {
        private var matches: [MatchID] = []
        private static let most = 8

        mutating func remember(_ match: MatchID) {
            guard !matches.contains(match) else { return }
            matches.append(match)
            if matches.count > Self.most { matches.removeFirst() }
        }

        func contains(_ match: MatchID) -> Bool { matches.contains(match) }
    }

    mutating func join(_ join: SessionVerb.Join, re: UInt64, _ turn: inout Turn) {
        let grant: SessionGrant
        do throws(WireError) {
            grant = try turn.project.verifySessionToken(join.token, for: join.session, now: turn.now)
        } catch {
            return refuseJoin(re: re, error, match: nil, &turn)
        }
        guard !sessions.contains(join.session) else {
            return fail(WireError(.alreadyJoined, "This connection is in the session already."), re: re, &turn)
        }
        guard sessions.count < turn.rules.sessionsPerClient else {
            let error = WireError(.sessionFull, "A connection may be in \(sessions.count) sessions at once; leave one.")
            return fail(error, re: re, &turn)
        }
        turn.tell(.session(join.session, .join(id, identity, grant, re: re)))
    }

    /// A bad token costs the connection. A match that ended while its member's join was on the way does not.
    mutating func refuseJoin(re: UInt64, _ error: WireError, match: MatchID?, _ turn: inout Turn) {
        let crossed = error.code == .tokenMatchEnded && match.map(crossings.contains) ?? false
        if error.code.isToken, !crossed {
            expel(error, .token, re: re, &turn)
        } else {
            fail(error, re: re, &turn)
        }
    }
}
