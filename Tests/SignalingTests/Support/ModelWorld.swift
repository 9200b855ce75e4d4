import Signaling
import TestSupport
import Wire

/// Random people who use a hub and the model at the same time. The model must predict every message that the hub sends.
final class ModelWorld: RandomWorld<Visitor> {
    let slack: Duration
    /// The maximum number of connected people.
    let most: Int
    private(set) lazy var model = Model(rules: rules, now: now)
    /// The most recently paired visitor. Impatient people press Next immediately.
    var lately: Visitor?
    private var lastVisitor = 0
    /// Pairings announced during the current event, in order.
    private var announced: [(MatchID, [(Visitor, RouletteNotice.Matched)])] = []
    /// Tokens issued so far, including old ones.
    var tokens: [ModelToken] = []
    private var reportsStored = 0

    init(most: Int, slack: Duration = .zero, adjust: (inout Rules) -> Void = { _ in }) {
        (self.most, self.slack) = (most, slack)
        super.init { rules in
            // The limit on reports is raised, because random people report far more often than real ones. Other tests
            // cover the limit.
            rules.reports = .init(perSecond: 1, burst: 1000)
            adjust(&rules)
        }
        stage.inspect = { [unowned self] in judge($0) }
    }

    private func judge(_ effects: [Effect]) {
        var hasSent = false
        for effect in effects {
            switch effect {
            case .persist(let change):
                if hasSent { fail("something was sent before \(change) was stored") }
                if case .report = change { reportsStored += 1 }
            case .reply, .answer: fail("an answer to a request that was never sent")
            case .query, .push, .deleteFile, .reach, .releasePlace, .post, .recording, .broadcast, .composeAhead,
                .compose, .relay:
                fail("an effect that no event requires")
            case .transmit: hasSent = true
            case .media, .close: break
            }
        }
    }

    // MARK: Time

    func pass(_ duration: Duration) {
        let end = now + duration
        while fault == nil, let due = [stage.hub.nextTimeout, model.nextDue].compactMap({ $0 }).min(), due <= end {
            ring(at: max(now, due))
        }
        if fault == nil { ring(at: end) }
    }

    private func ring(at time: Timestamp) {
        model.now = time
        for visitor in model.ring() { note("\(visitor.number) was given up") }
        stage.pass(time - now)
        settle()
    }

    // MARK: Connections

    func arrive(_ identity: IdentityID, address: String) {
        lastVisitor += 1
        note("\(lastVisitor) arrives as \(identity.description.prefix(6))")
        let guest = stage.arrive(identity, address: address, record: model.records[identity] ?? PersonRecord())
        let visitor = Visitor(guest, number: lastVisitor)
        clients.append(visitor)
        model.arrive(visitor)
        let welcome = guest.welcome ?? Welcome()
        if welcome.resumed || welcome.state != Snapshot() { fail("a fresh start was called a resume") }
        settle()
    }

    func resume(_ visitor: Visitor) {
        let places = model.places.filter { $0.value.members.contains { $0.visitor == visitor.number } }
        let sessions = Set(places.keys.map(\.text))
        let (roulette, connection) = (model.snapshot(visitor), visitor.connection)
        visitor.guest.resume()
        model.resume(visitor)
        if let welcome = visitor.guest.welcome, welcome.resumed, connection == visitor.connection {
            if sessions != Set(welcome.state.sessions ?? []) { fail("the welcome names other sessions") }
            if roulette != welcome.state.roulette { fail("the welcome says \(welcome.state.roulette)") }
        } else {
            fail("\(visitor.number) could not resume")
        }
        settle()
    }

    func lose(_ visitor: Visitor, leaving: Bool) {
        if leaving { visitor.guest.leave() } else { visitor.guest.drop() }
        if leaving { model.depart(visitor) } else { model.drop(visitor) }
        settle()
    }

    /// Expects the server to close these connections with this code.
    func expectClosed(_ visitors: [Visitor], with code: CloseCode, _ act: () -> Void) {
        let live = visitors.filter(\.isLive)
        for visitor in visitors { model.depart(visitor) }
        act()
        for visitor in live where visitor.guest.closeCode != code {
            fail("\(visitor.number) was not closed with \(code.rawValue)")
        }
        settle()
    }

    // MARK: Requests

    /// The number of this client's next message, to which its answer refers.
    func nextRequest(_ visitor: Visitor) -> UInt64 { visitor.guest.lastRequest + 1 }

    func say(_ visitor: Visitor, _ message: ClientMessage) {
        visitor.guest.say(message)
        settle()
    }

    // MARK: Messages

    private func hear(_ visitor: Visitor, _ message: ServerMessage) {
        if let heard = Expectation(message) { return hear(visitor, heard, message) }
        switch message {
        case .ack: break
        case .roulette(.matched(let matched)):
            if let last = visitor.expected.first { fail("\(visitor.number) was paired before it received \(last)") }
            if let index = announced.firstIndex(where: { $0.0 == matched.match }) {
                announced[index].1.append((visitor, matched))
            } else {
                announced.append((matched.match, [(visitor, matched)]))
            }
        case .session(.left(let left)): visitor.views[left.session] = nil
        case .session(.connectionCreated(let created)):
            guard visitor.views[created.session]?.insert(created.connection.id).inserted ?? false else {
                return fail("\(visitor.number) was notified twice of a new member, or of a session it is not in")
            }
        case .session(.connectionDestroyed(let gone)):
            guard visitor.views[gone.session]?.remove(gone.connection) != nil else {
                return fail("\(visitor.number) was notified that a client left which was not a member")
            }
        case .session(.connectionReconnecting), .session(.connectionReconnected): break
        default: fail("\(visitor.number) heard \(message.type)")
        }
    }

    private func hear(_ visitor: Visitor, _ heard: Expectation, _ message: ServerMessage) {
        guard visitor.expected.first == heard else {
            let expected = visitor.expected.first.map(\.description) ?? "nothing"
            return fail("\(visitor.number) received \(heard) instead of \(expected)")
        }
        visitor.expected.removeFirst()
        switch heard {
        case .failure(_, let code): count("heard \(code.rawValue)")
        case .waiting(_, let wait) where wait != nil: count("penalties")
        case .partner: count("partners away or back")
        default: break
        }
        if case .session(.joined(let joined)) = message {
            visitor.views[joined.session] = Set(joined.connections.map(\.id) + [joined.connection.id])
        }
        if case .ok(let re) = heard, let session = visitor.leaving.removeValue(forKey: re) {
            visitor.views[session] = nil
        }
    }

    // MARK: Invariants

    private func settle() {
        model.tellLeftBehind()
        for visitor in clients { for message in visitor.guest.take() { hear(visitor, message) } }
        clients.removeAll { model.visitors[$0.number] == nil }
        judgePairings()
        for visitor in clients {
            if let code = visitor.guest.closeCode { fail("\(visitor.number) was closed with \(code.rawValue)") }
            guard visitor.isLive else { continue }
            if let missing = visitor.expected.first { fail("\(visitor.number) did not hear \(missing)") }
        }
        checkSessions()
        if let missed = model.missedPair(slack: slack) { fail(missed) }
        let hub = stage.hub
        if hub.waitingCount != model.waitingCount { fail("\(hub.waitingCount) wait, and \(model.waitingCount) should") }
        if hub.matchCount != model.runningCount {
            fail("\(hub.matchCount) matches run, and \(model.runningCount) should")
        }
        if hub.clientCount != model.visitors.count {
            fail("\(hub.clientCount) clients, and \(model.visitors.count) expected")
        }
        for person in hub.peopleInTwoPlaces { fail("\(person) is in the roulette and in a call") }
        if reportsStored != model.reports { fail("\(reportsStored) reports were stored, and \(model.reports) made") }
    }

    private func judgePairings() {
        for (match, reported) in announced {
            guard reported.count == 2 else { return fail("\(reported.count) people were notified of match \(match)") }
            note("\(reported[0].0.number) and \(reported[1].0.number) were paired")
            lately = reported.randomElement(using: &random)?.0
            count("pairings")
            let broken = model.pair(reported[0], reported[1]) { [stage] token in
                guard let session = reported.first?.1.publish.session else { return false }
                let grant = try? stage.project.verifySessionToken(token, for: session, now: stage.now)
                return grant?.match == match && grant?.role == .publisher
            }
            if let broken { return fail("match \(match): \(broken)") }
            for (visitor, matched) in reported {
                tokens.append(ModelToken(matched.publish, match: match, of: visitor.identity))
            }
            if tokens.count > 300 { tokens.removeFirst(2) }
        }
        announced = []
    }

    /// Checks that every connected client knows the exact members of its sessions. Disconnected ones are notified when
    /// they return.
    private func checkSessions() {
        var expected: [Int: [SessionID: Set<ConnectionID>]] = [:]
        for (session, place) in model.places where !place.members.isEmpty {
            let all = Set(place.members.compactMap { model.visitors[$0.visitor]?.connection })
            for member in place.members { expected[member.visitor, default: [:]][session] = all }
        }
        for visitor in clients
        where visitor.isLive && visitor.views != expected[visitor.number, default: [:]] {
            fail("\(visitor.number) knows the wrong members of its sessions")
        }
    }
}
