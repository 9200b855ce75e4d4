import Signaling
import Wire

/// A second implementation of the rules for people and roulette. It is simple: it uses lists and loops, but no queue,
/// timers or `Letter`s. It predicts what each client receives and checks the announced pairings.
final class Model {
    let rules: Rules
    var now: Timestamp
    var visitors: [Int: Visitor] = [:]
    var people: [IdentityID: Someone] = [:]
    var pairings: [MatchID: Pairing] = [:]
    var places: [SessionID: Place] = [:]
    /// The records that storage would contain.
    var records: [IdentityID: PersonRecord] = [:]
    var reports = 0
    private var leftBehind: [(Someone, MatchID, EndReason)] = []

    init(rules: Rules, now: Timestamp) { (self.rules, self.now) = (rules, now) }

    private func expect(_ visitor: Int, _ expectation: Expectation) {
        visitors[visitor]?.expected.append(expectation)
    }

    func person(_ visitor: Visitor) -> Someone {
        if let known = people[visitor.identity] { return known }
        let person = Someone(visitor.identity, records[visitor.identity] ?? PersonRecord())
        people[visitor.identity] = person
        return person
    }

    private func isBanned(_ person: Someone) -> Bool { person.ban?.isActive(at: now) ?? false }

    private func isDropped(_ visitor: Int) -> Bool { !(visitors[visitor]?.isLive ?? false) }

    // MARK: Connecting and disconnecting

    func arrive(_ visitor: Visitor) {
        visitors[visitor.number] = visitor
        let person = person(visitor)
        person.visitors.insert(visitor.number)
        person.emptySince = nil
    }

    func drop(_ visitor: Visitor) {
        visitor.droppedAt = now
        let person = person(visitor)
        guard person.search?.visitor == visitor.number else { return }
        switch person.state {
        case .waiting, .penalized: person.state = .away
        case .chatting(let match): tellPartner(of: person, in: match, .reconnecting)
        case .idle, .away: break
        }
    }

    func resume(_ visitor: Visitor) {
        visitor.droppedAt = nil
        let person = person(visitor)
        guard person.search?.visitor == visitor.number else { return }
        switch person.state {
        case .away: search(person, re: nil)
        case .chatting(let match): tellPartner(of: person, in: match, .connected)
        case .idle, .waiting, .penalized: break
        }
    }

    private func tellPartner(of person: Someone, in match: MatchID, _ state: PartnerState) {
        guard let other = pairings[match]?.partner(of: person.identity), let partner = people[other] else { return }
        if let search = partner.search { expect(search.visitor, .partner(match, state)) }
    }

    func depart(_ visitor: Visitor) {
        let person = person(visitor)
        person.visitors.remove(visitor.number)
        visitors[visitor.number] = nil
        for session in Array(places.keys) { places[session]?.members.removeAll { $0.visitor == visitor.number } }
        if person.search?.visitor == visitor.number { stopSearching(person, .partnerLeft) }
        if person.visitors.isEmpty { person.emptySince = now }
    }

    // MARK: Searching

    func start(_ visitor: Visitor, _ wanted: Someone.Search, isValid: Bool, re: UInt64) {
        let person = person(visitor)
        if isBanned(person) { return expect(visitor.number, .failure(re: re, .banned)) }
        guard isValid else { return expect(visitor.number, .failure(re: re, .invalidInterests)) }
        if let search = person.search, search.visitor != visitor.number {
            guard isDropped(search.visitor) else { return expect(visitor.number, .failure(re: re, .elsewhere)) }
            // A disconnected person is notified on return.
            if case .chatting(let match) = person.state {
                expect(search.visitor, .ended(match, .stopped))
            } else {
                expect(search.visitor, .failure(re: nil, .elsewhere))
            }
            stopSearching(person, .stopped)
        }
        switch person.state {
        case .chatting: expect(visitor.number, .ok(re: re))
        case .waiting where person.search == wanted: expect(visitor.number, .waiting(re: re, retryAfter: nil))
        default:
            person.search = wanted
            search(person, re: re)
        }
    }

    /// Starts a search: puts the person into the queue, or waits for the end of a penalty or for the connection to
    /// return.
    private func search(_ person: Someone, re: UInt64?) {
        guard let search = person.search else { return }
        let penalty = person.penaltyUntil.flatMap { now < $0 ? $0 : nil }
        expect(search.visitor, .waiting(re: re, retryAfter: penalty.map { $0 - now }))
        if isDropped(search.visitor) {
            person.state = .away
        } else if let penalty {
            person.state = .penalized(until: penalty)
        } else {
            enterQueue(person)
        }
    }

    func enterQueue(_ person: Someone) {
        guard let search = person.search, let address = visitors[search.visitor]?.address else { return }
        let others = people.values.count { other in
            other !== person && other.since != nil && other.search.flatMap { visitors[$0.visitor]?.address } == address
        }
        guard address.isEmpty || others < rules.entriesPerAddress else {
            (person.state, person.search) = (.idle, nil)
            return expect(search.visitor, .failure(re: nil, .queueFull))
        }
        person.state = .waiting(since: now)
    }

    func next(_ visitor: Visitor, _ named: MatchID?, re: UInt64) {
        let person = person(visitor)
        guard person.search?.visitor == visitor.number else {
            return expect(visitor.number, .failure(re: re, .notMatched))
        }
        switch person.state {
        case .chatting(let match) where named != nil && named != match:
            // The verb refers to a match that had already ended.
            expect(visitor.number, .ok(re: re))
        case .chatting(let match):
            leave(person, match, .next)
            expect(visitor.number, .ended(match, .next))
            search(person, re: re)
        case .penalized(let until): expect(visitor.number, .waiting(re: re, retryAfter: until - now))
        default: expect(visitor.number, .waiting(re: re, retryAfter: nil))
        }
    }

    func stop(_ visitor: Visitor, re: UInt64) {
        let person = person(visitor)
        if person.search?.visitor == visitor.number {
            if let match = person.match { expect(visitor.number, .ended(match, .stopped)) }
            stopSearching(person, .stopped)
        }
        expect(visitor.number, .ok(re: re))
    }

    private func stopSearching(_ person: Someone, _ reason: EndReason) {
        if let match = person.match { leave(person, match, reason) }
        person.state = .idle
        person.search = nil
    }

    // MARK: Ending a match

    private func leave(_ person: Someone, _ match: MatchID, _ reason: EndReason) {
        guard let pairing = pairings[match] else { return }
        close(match)
        remember(match, person)
        if reason != .blocked, reason != .banned { countSkip(person, began: pairing.began) }
        guard let partner = people[pairing.partner(of: person.identity)], partner.match == match else { return }
        // To the blocked person, a block looks like Next.
        leftBehind.append((partner, match, reason == .next || reason == .blocked ? .partnerNext : .partnerLeft))
    }

    /// Notifies the partners left behind. They then search again, behind the person who left.
    func tellLeftBehind() {
        for (partner, match, reported) in leftBehind {
            remember(match, partner)
            if let search = partner.search { expect(search.visitor, .ended(match, reported)) }
            search(partner, re: nil)
        }
        leftBehind = []
    }

    private func close(_ match: MatchID) {
        pairings[match]?.ended = now
        guard let session = pairings[match]?.session else { return }
        places[session]?.members.removeAll { $0.match == match }
    }

    private func remember(_ match: MatchID, _ person: Someone) {
        person.recentChats = person.recentChats.suffix(8) + [(match, now)]
        person.lastPartner = pairings[match]?.partner(of: person.identity)
        person.state = .idle
    }

    private func countSkip(_ person: Someone, began: Timestamp) {
        guard now < began + rules.skipWindow else { return }
        person.skips = person.skips.filter { now < $0 + rules.skipPeriod } + [now]
        guard person.skips.count >= rules.skipsBeforeWait else { return }
        var wait = rules.firstSkipWait
        for _ in rules.skipsBeforeWait..<person.skips.count { wait = min(wait * 2, rules.longestSkipWait) }
        person.penaltyUntil = now + wait
    }

    // MARK: Blocks, reports, bans

    /// Returns the chat that a verb refers to: the named one, the current one, or the most recent one if it ended
    /// within the last minute.
    private func chat(_ person: Someone, _ named: MatchID?) -> MatchID? {
        var chats = person.match.map { [$0] } ?? []
        let recent = person.recentChats.suffix(8).filter { now <= $0.ended + rules.reportWindow }
        chats += recent.reversed().map(\.match)
        return named.map { chats.contains($0) ? $0 : nil } ?? chats.first
    }

    func block(_ visitor: Visitor, _ named: MatchID?, re: UInt64) {
        let person = person(visitor)
        guard let match = chat(person, named), let pairing = pairings[match] else {
            return expect(visitor.number, .failure(re: re, .notMatched))
        }
        let other = pairing.partner(of: person.identity)
        if person.blocked.insert(other).inserted {
            records[person.identity, default: PersonRecord()].blocked.append(other)
        }
        expect(visitor.number, .ok(re: re))
        // Whichever chat was named, a block also ends the current chat with that person.
        guard let present = person.match, pairings[present]?.partner(of: person.identity) == other,
            let search = person.search
        else { return }
        leave(person, present, .blocked)
        expect(search.visitor, .ended(present, .blocked))
        self.search(person, re: nil)
    }

    func report(_ visitor: Visitor, _ named: MatchID?, re: UInt64) {
        let person = person(visitor)
        guard let match = chat(person, named) else { return expect(visitor.number, .failure(re: re, .notMatched)) }
        if pairings[match]?.reportedBy.insert(person.identity).inserted ?? false { reports += 1 }
        expect(visitor.number, .ok(re: re))
    }

    /// Bans a person and returns the visitors to disconnect. If the person is not in memory, only storage records the
    /// ban.
    func ban(_ identity: IdentityID, _ ban: Ban) -> [Visitor] {
        records[identity, default: PersonRecord()].ban = ban
        guard let person = people[identity] else { return [] }
        person.ban = ban
        guard isBanned(person) else { return [] }
        if let match = person.match, let search = person.search { expect(search.visitor, .ended(match, .banned)) }
        stopSearching(person, .banned)
        return person.visitors.sorted().compactMap { visitors[$0] }
    }

    // MARK: Sessions

    /// Predicts the result of joining a session. Returns false if the attempt closes the connection.
    func join(_ visitor: Visitor, _ token: ModelToken, re: UInt64) -> Bool {
        let (session, match) = (token.session, token.match)
        let isIn = places[session]?.members.contains { $0.visitor == visitor.number } ?? false
        if isIn {
            expect(visitor.number, .failure(re: re, .alreadyJoined))
        } else if let match, pairings[match]?.isOver ?? true {
            guard visitor.matches.suffix(8).contains(match) else { return false }
            expect(visitor.number, .failure(re: re, .tokenMatchEnded))
        } else if let holder = token.holder, holder != visitor.identity {
            return false
        } else {
            // Each of the two people has one place, on the connection that joined last.
            if let match {
                places[session]?.members.removeAll { member in
                    member.match == match && visitors[member.visitor]?.identity == visitor.identity
                }
            }
            places[session, default: Place()].members.append((visitor.number, match))
            expect(visitor.number, .joined(re: re, session))
        }
        return true
    }

    func signal(_ visitor: Visitor, _ session: SessionID, _ data: String, re: UInt64) {
        let members = places[session]?.members ?? []
        guard members.contains(where: { $0.visitor == visitor.number }) else {
            return expect(visitor.number, .failure(re: re, .notJoined))
        }
        for member in members { expect(member.visitor, .signal(data)) }
        expect(visitor.number, .ok(re: re))
    }

    func leaveSession(_ visitor: Visitor, _ session: SessionID, re: UInt64) {
        places[session]?.members.removeAll { $0.visitor == visitor.number }
        visitor.leaving[re] = session
        expect(visitor.number, .ok(re: re))
    }
}
