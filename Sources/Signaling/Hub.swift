import Wire
import HeapModule

/// Something the shell saw.
public enum Input: Equatable, Sendable {
    case arrived(Arrival)
    /// The same on RouletteTok's wire, and what is asked there.
    case originalArrived(OriginalArrival)
    case asked(SocketID, RouletteTokRequest)
    case message(SocketID, Envelope<ClientMessage>)
    case unreadable(SocketID, UnreadableMessage)
    /// A resource of WHIP or WHEP is asked for, and what is asked of it later.
    case resourceArrived(ResourceArrival)
    case requested(SocketID, ResourceRequest)
    case closed(SocketID, leaving: Bool)
    case banned(Ban)
    /// The operator lifted a ban.
    case unbanned(IdentityID)
    /// From the media plane.
    case media(MediaEvent)
    /// An address was banned, or an operator wants this socket's client gone.
    case expel(SocketID, WireError, CloseCode)
}

/// Addresses the machines: takes what the shell saw, brings each letter to the machine it names, and returns what the
/// shell is to do, in order.
///
/// It owns the table of machines and their timers and decides nothing: each client connection, person, session and match,
/// and the pool, is a machine of its own that reaches another only by a letter. On many nodes the table would say
/// "elsewhere" for some, and no machine would notice. Invariant: letters are delivered in the order they were written,
/// each wholly before the next, and a machine that is over is forgotten.
public struct Hub<Generator: RandomNumberGenerator & Sendable>: Sendable {
    private struct Slot<Machine: TimedMachine>: Sendable {
        var machine: Machine
        /// The earliest wake-up asked of the timer queue and not yet delivered.
        var scheduled: Timestamp?

        /// When to wake the machine, if that is earlier than what was asked before: one timer for each machine that waits.
        mutating func wakeUp() -> Timestamp? {
            guard let at = machine.nextTimeout, scheduled.map({ at < $0 }) ?? true else { return nil }
            scheduled = at
            return at
        }
    }

    private enum Address: Hashable, Sendable {
        case client(ConnectionID)
        case person(IdentityID)
        case session(SessionID)
        case pool
    }

    private struct Timer: Comparable, Sendable {
        var at: Timestamp
        var order: UInt64
        var address: Address
        static func < (left: Timer, right: Timer) -> Bool { (left.at, left.order) < (right.at, right.order) }
        static func == (left: Timer, right: Timer) -> Bool { left.order == right.order }
    }

    public let surroundings: Surroundings
    private var generator: Generator
    private var sockets: [SocketID: ConnectionID] = [:]
    private var clients: [ConnectionID: Slot<Client>] = [:]
    private var originals: [ConnectionID: Slot<OriginalClient>] = [:]
    private var resources: [ConnectionID: Slot<MediaResource>] = [:]
    private var register = MediaResourceRegister()
    private var people: [IdentityID: Slot<Person>] = [:]
    private var sessions: [SessionID: Slot<Session>] = [:]
    private var matches: [MatchID: Match] = [:]
    private var pool: Slot<Pool>
    private var timers = Heap<Timer>()
    private var timerOrder: UInt64 = 0

    public init(surroundings: Surroundings, generator: Generator) {
        self.surroundings = surroundings
        self.generator = generator
        pool = Slot(machine: Pool(rules: surroundings.rules))
    }

    // MARK: Figures for metrics and tests

    public var clientCount: Int { clients.count + originals.count }
    public var resourceCount: Int { resources.count }
    public var personCount: Int { people.count }
    public var sessionCount: Int { sessions.count }
    public var matchCount: Int { matches.count }
    public var waitingCount: Int { pool.machine.waitingCount }

    // MARK: Events

    public mutating func handle(_ input: Input, now: Timestamp) -> [Effect] {
        var effects: [Effect] = []
        switch input {
        case .arrived(let arrival): receive(arrival, into: &effects)
        case .originalArrived(let arrival): receive(arrival, now: now, into: &effects)
        case .asked(let socket, let request):
            if let client = sockets[socket] { effects.tell(.client(client, .asked(socket, request))) }
        case .message(let socket, let envelope):
            if let client = sockets[socket] { effects.tell(.client(client, .message(socket, envelope))) }
        case .unreadable(let socket, let message):
            if let client = sockets[socket] { effects.tell(.client(client, .unreadable(socket, message))) }
        case .resourceArrived(let arrival): receive(arrival, now: now, into: &effects)
        case .requested(let socket, let request):
            if let client = sockets[socket] { effects.tell(.client(client, .requested(request))) }
        case .closed(let socket, let leaving):
            if let client = sockets.removeValue(forKey: socket) {
                effects.tell(.client(client, .closed(socket, leaving: leaving)))
            }
        case .banned(let ban):
            if case .identity(let identity) = ban.subject, people[identity] != nil {
                effects.tell(.person(identity, .banned(ban)))
            }
        case .unbanned(let identity):
            if people[identity] != nil { effects.tell(.person(identity, .unbanned)) }
        case .expel(let socket, let error, let code):
            if let client = sockets[socket] { effects.tell(.client(client, .expel(error, code))) }
        case .media(let event): effects.tell(event.letter)
        }
        return deliver(effects, now: now)
    }

    public var nextTimeout: Timestamp? { timers.min?.at }

    public mutating func handleTimeout(now: Timestamp) -> [Effect] {
        var done: [Effect] = []
        while let timer = timers.min, timer.at <= now {
            timers.removeMin()
            var effects: [Effect] = []
            wake(timer, now: now, into: &effects)
            done += deliver(effects, now: now)
        }
        return done
    }

    /// Delivers letters, and the letters they cause, until only the shell's work is left.
    private mutating func deliver(_ first: [Effect], now: Timestamp) -> [Effect] {
        var mail = first
        var next = 0
        var done: [Effect] = []
        while next < mail.count {
            if case .letter(let letter) = mail[next] {
                deliver(letter, now: now, into: &mail)
            } else {
                done.append(mail[next])
            }
            next += 1
        }
        return done
    }

    private mutating func deliver(_ letter: Letter, now: Timestamp, into effects: inout [Effect]) {
        switch letter {
        case .client(let id, let event): deliver(event, to: id, now: now, into: &effects)
        case .person(let id, let event): deliver(event, to: id, now: now, into: &effects)
        case .session(let id, let event): deliver(event, to: id, now: now, into: &effects)
        case .pool(let event):
            pool.machine.handle(event, now: now, online: clientCount, using: &generator, into: &effects)
            if let at = pool.wakeUp() { schedule(.pool, at) }
        case .match(let id, let event): deliver(event, to: id, now: now, into: &effects)
        case .reception(let arrival): receive(arrival, now: now, into: &effects)
        case .media(let command): effects.append(.media(command))
        }
    }

    // MARK: The door

    /// A resume goes to the client it names; everybody else is new.
    private mutating func receive(_ arrival: Arrival, into effects: inout [Effect]) {
        guard let claim = arrival.resume else { return effects.tell(.reception(arrival)) }
        guard let client = ResumeSecret.client(of: claim.secret), clients[client] != nil else {
            return effects.tell(.reception(arrival.withoutResume(failed: true, into: &effects)))
        }
        sockets[arrival.socket] = client
        effects.tell(.client(client, .resume(arrival)))
    }

    private mutating func receive(_ arrival: Arrival, now: Timestamp, into effects: inout [Effect]) {
        let id = ConnectionID.random(using: &generator)
        sockets[arrival.socket] = id
        let secret = ResumeSecret.make(for: id, using: &generator)
        let client = Client(
            arrival, id: id, secret: secret, now: now, in: surroundings, into: &effects
        )
        clients[id] = Slot(machine: client)
    }

    /// Everybody is new on RouletteTok's wire, and gets a session of his own first.
    private mutating func receive(_ arrival: OriginalArrival, now: Timestamp, into effects: inout [Effect]) {
        let id = ConnectionID.random(using: &generator)
        let identity = IdentityID.random(using: &generator)
        sockets[arrival.socket] = id
        let (project, rules) = (surroundings.project, surroundings.rules)
        let session = project.makeSessionID(mediaMode: rules.matchMediaMode, now: now, using: &generator)
        let token = project.makeSessionToken(
            session: session, role: .publisher, now: now, lifetime: rules.matchTokenLifetime, using: &generator
        )
        let client = OriginalClient(
            arrival, id: id, identity: identity, home: Admission(session: session, token: token), into: &effects
        )
        originals[id] = Slot(machine: client)
    }

    private mutating func receive(_ arrival: ResourceArrival, now: Timestamp, into effects: inout [Effect]) {
        let rules = surroundings.rules
        do throws(WireError) {
            guard rules.routesMedia else { throw WireError(.mediaUnavailable, "This server routes no media.") }
            try register.admit(arrival, rules)
        } catch {
            effects.append(.reply(arrival.socket, .refused(re: nil, error)))
            return effects.append(.close(arrival.socket, .normal, ""))
        }
        let id = ConnectionID.random(using: &generator)
        sockets[arrival.socket] = id
        let identity = IdentityID.random(using: &generator)
        let resource = MediaResource(arrival, id: id, identity: identity, now: now, rules, into: &effects)
        resources[id] = Slot(machine: resource)
        if let at = resources[id]?.wakeUp() { schedule(.client(id), at) }
    }

    // MARK: Delivering to one machine

    private mutating func deliver(
        _ event: ClientEvent, to id: ConnectionID, now: Timestamp, into effects: inout [Effect]
    ) {
        if originals[id] != nil {
            originals[id]?.machine.handle(event, now: now, into: &effects)
            return finish(original: id)
        }
        if resources[id] != nil {
            let surroundings = surroundings
            resources[id]?.machine.handle(event, now: now, in: surroundings, using: &generator, into: &effects)
            return finish(resource: id)
        }
        guard clients[id] != nil else {
            // It left while an answer was on the way.
            if case .deliver(.joined(let joined)) = event {
                effects.tell(.session(joined.session, .gone(id, .clientDisconnected)))
            }
            return
        }
        var next: String?
        if case .resume = event { next = ResumeSecret.make(for: id, using: &generator) }
        let surroundings = surroundings
        clients[id]?.machine.handle(
            event, now: now, in: surroundings, newSecret: { next ?? "" }, into: &effects
        )
        finish(client: id)
    }

    private mutating func finish(client id: ConnectionID) {
        guard let isOver = clients[id]?.machine.isGone else { return }
        if isOver {
            clients[id] = nil
        } else if let at = clients[id]?.wakeUp() {
            schedule(.client(id), at)
        }
    }

    private mutating func finish(original id: ConnectionID) {
        guard let isOver = originals[id]?.machine.isGone else { return }
        if isOver {
            originals[id] = nil
        } else if let at = originals[id]?.wakeUp() {
            schedule(.client(id), at)
        }
    }

    private mutating func finish(resource id: ConnectionID) {
        guard let resource = resources[id]?.machine else { return }
        if resource.isGone {
            resources[id] = nil
            sockets[resource.socket] = nil
            register.release(address: resource.address, fingerprint: resource.grant.fingerprint)
        } else if let at = resources[id]?.wakeUp() {
            schedule(.client(id), at)
        }
    }

    private mutating func deliver(
        _ event: PersonEvent, to id: IdentityID, now: Timestamp, into effects: inout [Effect]
    ) {
        if people[id] == nil {
            guard case .arrived(_, _, _, let record, _) = event else { return }
            people[id] = Slot(machine: Person(id: id, record: record, rules: surroundings.rules))
        }
        let surroundings = surroundings
        people[id]?.machine.handle(event, now: now, in: surroundings, into: &effects)
        finish(person: id)
    }

    private mutating func finish(person id: IdentityID) {
        guard let isOver = people[id]?.machine.isForgettable else { return }
        if isOver {
            people[id] = nil
        } else if let at = people[id]?.wakeUp() {
            schedule(.person(id), at)
        }
    }

    private mutating func deliver(
        _ event: SessionEvent, to id: SessionID, now: Timestamp, into effects: inout [Effect]
    ) {
        if sessions[id] == nil {
            switch event {
            case .join, .matchOpened: sessions[id] = Slot(machine: Session(id: id))
            case .report(let report, let client, let re):
                // Its chat is forgotten, the complaint is not.
                effects.append(.persist(.report(report)))
                return effects.send(.ok(Answer(re: re)), to: client)
            case .verb(let client, let re, _):
                return effects.fail(WireError(.notJoined, "Join this session first."), re: re, to: client)
            case .dropped, .returned, .gone, .matchClosed, .videoPaused, .layersWanted, .speaking: return
            }
        }
        let rules = surroundings.rules
        sessions[id]?.machine.handle(
            event, now: now, rules: rules, using: &generator, into: &effects
        )
        finish(session: id)
    }

    private mutating func finish(session id: SessionID) {
        guard let isOver = sessions[id]?.machine.isEmpty else { return }
        if isOver {
            sessions[id] = nil
        } else if let at = sessions[id]?.wakeUp() {
            schedule(.session(id), at)
        }
    }

    private mutating func deliver(
        _ event: MatchEvent, to id: MatchID, now: Timestamp, into effects: inout [Effect]
    ) {
        if matches[id] == nil {
            guard case .begin = event else { return }
            matches[id] = Match(id: id)
        }
        let surroundings = surroundings
        matches[id]?.handle(event, now: now, in: surroundings, using: &generator, into: &effects)
        if matches[id]?.isOver ?? false { matches[id] = nil }
    }

    // MARK: Timers

    private mutating func schedule(_ address: Address, _ at: Timestamp) {
        timerOrder += 1
        timers.insert(Timer(at: at, order: timerOrder, address: address))
    }

    private mutating func wake(_ timer: Timer, now: Timestamp, into effects: inout [Effect]) {
        switch timer.address {
        case .client(let id) where originals[id] != nil:
            guard originals[id]?.scheduled == timer.at else { return }
            originals[id]?.scheduled = nil
            originals[id]?.machine.handleTimeout(now: now, into: &effects)
            finish(original: id)
        case .client(let id) where resources[id] != nil:
            guard resources[id]?.scheduled == timer.at else { return }
            resources[id]?.scheduled = nil
            resources[id]?.machine.handleTimeout(now: now, into: &effects)
            finish(resource: id)
        case .client(let id):
            guard clients[id]?.scheduled == timer.at else { return }
            clients[id]?.scheduled = nil
            clients[id]?.machine.handleTimeout(now: now, into: &effects)
            finish(client: id)
        case .person(let id):
            guard people[id]?.scheduled == timer.at else { return }
            people[id]?.scheduled = nil
            let surroundings = surroundings
            people[id]?.machine.handleTimeout(now: now, in: surroundings, into: &effects)
            finish(person: id)
        case .session(let id):
            guard sessions[id]?.scheduled == timer.at else { return }
            sessions[id]?.scheduled = nil
            sessions[id]?.machine.handleTimeout(now: now, into: &effects)
            finish(session: id)
        case .pool:
            guard pool.scheduled == timer.at else { return }
            pool.scheduled = nil
            pool.machine.handleTimeout(now: now, using: &generator, into: &effects)
            if let at = pool.wakeUp() { schedule(.pool, at) }
        }
    }
}

/// A machine that may ask to be woken.
protocol TimedMachine: Sendable {
    var nextTimeout: Timestamp? { get }
}

extension Client: TimedMachine {}
extension OriginalClient: TimedMachine {}
extension MediaResource: TimedMachine {}
extension Person: TimedMachine {}
extension Session: TimedMachine {}
extension Pool: TimedMachine {}
