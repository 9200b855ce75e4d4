import Signaling
import Wire

/// The model's timeouts, and its checks of pairings: who may be paired, who is preferred, and who must not be left
/// waiting.
extension Model {
    // MARK: Time

    /// The time of the next timeout: the end of a penalty or of a grace period.
    var nextDue: Timestamp? {
        let penalties = people.values.compactMap { person -> Timestamp? in
            if case .penalized(let until) = person.state { until } else { nil }
        }
        let drops = visitors.values.compactMap { $0.droppedAt.map { $0 + rules.resumeGrace } }
        return (penalties + drops).min()
    }

    /// Handles the timeouts that are due. Returns the visitors whose connections were dropped.
    func ring() -> [Visitor] {
        for person in people.values {
            if case .penalized(let until) = person.state, until <= now { enterQueue(person) }
        }
        let lost = visitors.values.filter { visitor in visitor.droppedAt.map { $0 + rules.resumeGrace <= now } ?? false
        }
        for visitor in lost.sorted(by: { $0.number < $1.number }) { depart(visitor) }
        tellLeftBehind()
        for (identity, person) in people {
            if let since = person.emptySince, since + rules.personIdle <= now { people[identity] = nil }
        }
        return lost
    }

    // MARK: Pairing rules

    private func sharedInterests(_ one: Someone, _ other: Someone) -> Set<String> {
        (one.search?.interests ?? []).intersection(other.search?.interests ?? [])
    }

    private func opensAt(_ person: Someone) -> Timestamp? {
        guard let since = person.since, let search = person.search else { return nil }
        return search.interests.isEmpty ? since : since + rules.interestWait
    }

    private func justLeft(_ one: Someone, _ other: Someone) -> Bool {
        one.lastPartner == other.identity || other.lastPartner == one.identity
    }

    /// Whether two people may be paired, regardless of whether they are former partners.
    private func mayMeet(_ one: Someone, _ other: Someone) -> Bool {
        guard one !== other, let mode = one.search?.mode, mode == other.search?.mode else { return false }
        guard !one.blocked.contains(other.identity), !other.blocked.contains(one.identity) else { return false }
        guard sharedInterests(one, other).isEmpty else { return true }
        guard let first = opensAt(one), let second = opensAt(other) else { return false }
        return first <= now && second <= now
    }

    /// Returns a waiting person whom the seeker must prefer to the chosen partner, if any. Events at this very moment
    /// may count as earlier or later.
    private func better(for seeker: Someone, than candidate: Someone) -> Someone? {
        people.values.first { other in
            guard other !== candidate, let since = other.since, since < now, let chosen = candidate.since else {
                return false
            }
            guard mayMeet(seeker, other), !justLeft(seeker, other) else { return false }
            let isSure =
                !sharedInterests(seeker, other).isEmpty || opensAt(other).map { $0 < now || $0 == since } ?? false
            return isSure && (justLeft(seeker, candidate) || since < chosen)
        }
    }

    private func fault(seeker: Someone, _ candidate: Someone) -> String? {
        guard mayMeet(seeker, candidate), let one = seeker.since, let other = candidate.since else {
            return "these two may not be paired"
        }
        if justLeft(seeker, candidate), now < max(one, other) + rules.rematchWait {
            return "they just left each other, and ten seconds are not over"
        }
        if let better = better(for: seeker, than: candidate) {
            return "\(better.identity) should have been chosen instead"
        }
        return nil
    }

    /// Records an announced pairing. Returns a description of the rule it breaks, if any.
    func pair(
        _ first: (Visitor, RouletteNotice.Matched), _ second: (Visitor, RouletteNotice.Matched), token: (String) -> Bool
    ) -> String? {
        let (one, other) = (first.1, second.1)
        guard let left = people[first.0.identity], let right = people[second.0.identity], left !== right else {
            return "a person was paired with themselves"
        }
        guard left.since != nil, right.since != nil else { return "a person was paired who was not waiting" }
        guard left.search?.visitor == first.0.number, right.search?.visitor == second.0.number else {
            return "another tab was notified"
        }
        // Either of the two may have been the seeker. The rules must hold for at least one of them.
        if let fault = fault(seeker: left, right), self.fault(seeker: right, left) != nil { return fault }
        guard one.publish.session == other.publish.session, one.publish == one.subscribe,
            other.publish == other.subscribe,
            one.mode == other.mode, one.mode == left.search?.mode, one.textChat, other.textChat
        else { return "the two received different matches" }
        guard one.partner.name == right.search?.name, other.partner.name == left.search?.name,
            Set(one.partner.interests ?? []) == sharedInterests(left, right),
            one.partner.interests == other.partner.interests
        else { return "one received wrong information about the other" }
        guard pairings[one.match] == nil, !pairings.values.contains(where: { $0.session == one.publish.session }) else {
            return "a match or a session was used twice"
        }
        guard token(one.publish.token), token(other.publish.token) else {
            return "a token does not open the match's session"
        }
        pairings[one.match] = Pairing(
            match: one.match, session: one.publish.session,
            tokens: [left.identity: one.publish.token, right.identity: other.publish.token],
            people: [left.identity, right.identity], began: now
        )
        for (person, visitor) in [(left, first.0), (right, second.0)] {
            person.state = .chatting(one.match)
            visitor.matches.append(one.match)
        }
        return nil
    }

    /// Returns two waiting people who may be paired and should have been.
    func missedPair(slack: Duration) -> String? {
        let waiting = people.values.filter { $0.since != nil }
        for (index, one) in waiting.enumerated() {
            for other in waiting[(index + 1)...] where mayMeet(one, other) {
                guard let first = one.since, let second = other.since else { continue }
                var from = max(first, second)
                if sharedInterests(one, other).isEmpty {
                    from = max(from, opensAt(one) ?? from, opensAt(other) ?? from)
                }
                if justLeft(one, other) { from = max(from, max(first, second) + rules.rematchWait) }
                if from + slack <= now { return "\(one.identity) and \(other.identity) wait side by side" }
            }
        }
        return nil
    }

    /// The expected roulette state in a welcome.
    func snapshot(_ visitor: Visitor) -> Snapshot.Roulette {
        guard let person = people[visitor.identity], person.search?.visitor == visitor.number else { return .init() }
        switch person.state {
        case .idle: return .init()
        case .chatting(let match): return .init(state: .matched, match: match)
        case .waiting, .penalized, .away: return .init(state: .waiting)
        }
    }

    var waitingCount: Int { people.values.count { $0.since != nil } }
    var runningCount: Int { pairings.values.count { !$0.isOver } }

    /// Removes pairings that no verb can refer to anymore.
    func forgetOldPairings() {
        for (match, pairing) in pairings {
            if let ended = pairing.ended, ended + rules.reportWindow + .seconds(60) < now { pairings[match] = nil }
        }
        for (session, place) in places where place.members.isEmpty { places[session] = nil }
    }
}
