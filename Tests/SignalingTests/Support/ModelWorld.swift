import Signaling
import TestSupport
import Wire

/// Random people who use a hub and the model at the same time. The model must predict every message that the hub sends.
///
/// The seed determines everything in a run. A run ends at the first difference and prints the events that led to the
/// difference.
final class ModelWorld {
    let seed: UInt64
    let rules: Rules
    let slack: Duration
    var random: SeededGenerator
    var model: Model
    private(set) var hub: Hub
    let project: Project
    private(set) var fault: String?
    private(set) var log: [String] = []
    var figures: [String: Int] = [:]
    /// The most recently paired visitor. Impatient people press Next immediately.
    var lately: Int?

    var visitors: [Int: Visitor] { model.visitors }
    private var bySocket: [SocketID: Visitor] = [:]
    private var lastVisitor = 0
    private var lastSocket: UInt64 = 0
    /// Pairings announced during the current event, in order.
    private var announced: [(MatchID, [(Visitor, RouletteNotice.Matched)])] = []
    /// Tokens issued so far, including old ones.
    var tokens: [ModelToken] = []
    private var reportsStored = 0
    private var ledger = MediaLedger()

    init(seed: UInt64, slack: Duration = .zero, adjust: (inout Rules) -> Void = { _ in }) {
        var rules = Rules()
        // The limit on reports is raised, because random people report far more often than real ones. Other tests cover
        // the limit.
        rules.reports = .init(perSecond: 1, burst: 1000)
        adjust(&rules)
        (self.seed, self.rules, self.slack, project) = (seed, rules, slack, Stage.project)
        random = SeededGenerator(seed: seed)
        hub = Hub(hubSettings: HubSettings(rules: rules, project: project), generator: SeededGenerator(seed: ~seed))
        model = Model(rules: rules)
        model.now = Timestamp(milliseconds: 1_790_000_000_000)
    }

    func note(_ text: String) {
        log.append("\(model.now.milliseconds % 100_000_000) \(text)")
        if log.count > 60 { log.removeFirst() }
    }

    func count(_ what: String) { figures[what, default: 0] += 1 }

    func fail(_ text: String) {
        if fault == nil { fault = text }
    }

    // MARK: Time

    func pass(_ duration: Duration) {
        let end = model.now + duration
        while fault == nil {
            let due = [hub.nextTimeout, model.nextDue].compactMap { $0 }.min()
            guard let due, due <= end else { break }
            model.now = max(model.now, due)
            let rings = hub.nextTimeout.map { $0 <= model.now } ?? false
            forget(model.ring())
            if rings { carryOut(hub.handleTimeout(now: model.now)) }
            settle()
        }
        model.now = end
        forget(model.ring())
    }

    private func forget(_ lost: [Visitor]) {
        for visitor in lost { note("\(visitor.number) was given up") }
    }

    // MARK: Sockets

    func newVisitor(_ identity: IdentityID, address: String) -> Visitor {
        lastVisitor += 1
        return Visitor(number: lastVisitor, identity: identity, address: address)
    }

    private func connect(_ visitor: Visitor) -> SocketID {
        lastSocket += 1
        let socket = SocketID(rawValue: lastSocket)
        bySocket[socket] = visitor
        visitor.socket = socket
        return socket
    }

    func arrive(_ visitor: Visitor) {
        let record = model.records[visitor.identity] ?? PersonRecord()
        model.arrive(visitor)
        let arrival = Arrival(
            socket: connect(visitor), identity: Identity(id: visitor.identity), record: record, address: visitor.address
        )
        perform(.arrived(arrival))
    }

    func resume(_ visitor: Visitor) {
        let claim = Hello.Resume(secret: visitor.secret, received: visitor.received)
        let expected = Snapshot(sessions: sessions(of: visitor), roulette: model.snapshot(visitor))
        let arrival = Arrival(
            socket: connect(visitor), identity: Identity(id: visitor.identity), resume: claim, address: visitor.address
        )
        model.resume(visitor)
        perform(.arrived(arrival), state: expected)
    }

    private func sessions(of visitor: Visitor) -> [SessionID] {
        model.places.filter { $0.value.members.contains { $0.visitor == visitor.number } }.map(\.key)
    }

    func lose(_ visitor: Visitor, leaving: Bool) {
        guard let socket = visitor.socket else { return }
        visitor.socket = nil
        bySocket[socket] = nil
        if leaving { model.depart(visitor) } else { model.drop(visitor) }
        perform(.closed(socket, leaving: leaving))
    }

    /// Expects the server to close these connections. `closed` is checked later.
    func expectClosed(_ visitors: [Visitor], _ input: Input, with code: CloseCode) {
        let live = visitors.filter(\.isLive)
        for visitor in visitors { model.depart(visitor) }
        perform(input)
        for visitor in live where closed[visitor.number] != code {
            fail("\(visitor.number) was not closed with \(code.rawValue)")
        }
    }

    private var closed: [Int: CloseCode] = [:]

    // MARK: Requests

    /// The number of this client's next message, to which its answer refers.
    func nextRequest(_ visitor: Visitor) -> UInt64 { visitor.sent + 1 }

    func message(_ visitor: Visitor, _ message: ClientMessage) -> Input {
        visitor.sent += 1
        return .message(
            visitor.socket ?? SocketID(rawValue: 0),
            Envelope(seq: visitor.sent, ack: visitor.received, message: message)
        )
    }

    func say(_ visitor: Visitor, _ message: ClientMessage) { perform(self.message(visitor, message)) }

    // MARK: Effects

    func perform(_ input: Input, state: Snapshot? = nil) {
        expectedState = state
        closed = [:]
        model.tellLeftBehind()
        carryOut(hub.handle(input, now: model.now))
        while fault == nil, let next = hub.nextTimeout, next <= model.now {
            carryOut(hub.handleTimeout(now: model.now))
        }
        settle()
    }

    private var expectedState: Snapshot?

    private func carryOut(_ effects: [Effect]) {
        var hasSent = false
        for effect in effects {
            switch effect {
            case .persist(let change):
                if hasSent { fail("something was sent before \(change) was stored") }
                if case .report = change { reportsStored += 1 }
            case .reply, .answer: fail("an answer to a request that was never sent")
            case .query, .push, .deleteFile: fail("an effect that no event requires")
            case .media(let command): if let fault = ledger.note(command) { fail(fault) }
            case .transmit(let socket, let bytes):
                hasSent = true
                if let visitor = bySocket[socket] { hear(visitor, bytes) }
            case .close(let socket, let code, _):
                guard let visitor = bySocket.removeValue(forKey: socket) else { continue }
                closed[visitor.number] = code
                visitor.socket = nil
                if model.visitors[visitor.number] != nil { fail("\(visitor.number) was closed with \(code.rawValue)") }
            }
        }
    }

    private func hear(_ visitor: Visitor, _ bytes: [UInt8]) {
        guard let envelope = try? Envelope<ServerMessage>.decode(bytes) else {
            return fail("the hub sent an unreadable message")
        }
        guard let seq = envelope.seq else { return hearUnnumbered(visitor, envelope.message) }
        guard seq == visitor.received + 1 else {
            return fail("\(visitor.number) heard \(seq) after \(visitor.received)")
        }
        visitor.received = seq
        if let heard = Expectation(envelope.message) { return hear(visitor, heard, envelope.message) }
        switch envelope.message {
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
        default: fail("\(visitor.number) heard \(envelope.message.type)")
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

    private func hearUnnumbered(_ visitor: Visitor, _ message: ServerMessage) {
        guard case .welcome(let welcome) = message else { return }
        visitor.secret = welcome.resume.secret
        if visitor.connection == ConnectionID(high: 0, low: 0) {
            visitor.connection = welcome.connection
            if welcome.resumed || welcome.state != Snapshot() { fail("a fresh start was called a resume") }
        } else if !welcome.resumed || welcome.connection != visitor.connection {
            fail("\(visitor.number) could not resume")
        } else if let expectedState {
            guard Set(expectedState.sessions ?? []) == Set(welcome.state.sessions ?? []) else {
                return fail("the welcome names other sessions")
            }
            if expectedState.roulette != welcome.state.roulette { fail("the welcome says \(welcome.state.roulette)") }
        }
    }

    // MARK: Invariants

    private func settle() {
        judgePairings()
        for visitor in model.visitors.values where visitor.isLive {
            if let missing = visitor.expected.first { fail("\(visitor.number) did not hear \(missing)") }
        }
        checkSessions()
        if let missed = model.missedPair(slack: slack) { fail(missed) }
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
        for (match, told) in announced {
            guard told.count == 2 else { return fail("\(told.count) people were notified of match \(match)") }
            note("\(told[0].0.number) and \(told[1].0.number) were paired")
            lately = told.randomElement(using: &random)?.0.number
            count("pairings")
            let broken = model.pair(told[0], told[1]) { [project, model] token in
                guard let session = told.first?.1.publish.session else { return false }
                let grant = try? project.verifySessionToken(token, for: session, now: model.now)
                return grant?.match == match && grant?.role == .publisher
            }
            if let broken { return fail("match \(match): \(broken)") }
            for (visitor, matched) in told {
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
        for visitor in model.visitors.values
        where visitor.isLive && visitor.views != expected[visitor.number, default: [:]] {
            fail("\(visitor.number) knows the wrong members of its sessions")
        }
    }
}
