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
    /// What came of an inquiry.
    case answered(Question, Finding)
    /// No device of this person can be woken any more: the push services said so.
    case unreachable(IdentityID)
    /// At the start, before anybody arrives: a call that was going on when the server stopped, and its two people.
    case restored(StoredCall, caller: PersonRecord, callee: PersonRecord)
}

/// Addresses the machines: takes what the shell saw, brings each letter to the machine it names, and returns what the
/// shell is to do, in order.
///
/// It owns the table of machines and their timers and decides nothing: each client connection, person, session and match,
/// and the pool, is a machine of its own that reaches another only by a letter. On many nodes the table would say
/// "elsewhere" for some, and no machine would notice. Invariant: letters are delivered in the order they were written,
/// each wholly before the next, and a machine that is over is forgotten.
public struct Hub<Generator: RandomNumberGenerator & Sendable>: Sendable {
    struct Slot<Machine: TimedMachine>: Sendable {
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

    enum Address: Hashable, Sendable {
        case client(ConnectionID)
        case person(IdentityID)
        case session(SessionID)
        case call(CallID)
        case pool
        case directory
        case links
    }

    struct Timer: Comparable, Sendable {
        var at: Timestamp
        var order: UInt64
        var address: Address
        static func < (left: Timer, right: Timer) -> Bool { (left.at, left.order) < (right.at, right.order) }
        static func == (left: Timer, right: Timer) -> Bool { left.order == right.order }
    }

    public let surroundings: Surroundings
    var generator: Generator
    var sockets: [SocketID: ConnectionID] = [:]
    var clients: [ConnectionID: Slot<Client>] = [:]
    var originals: [ConnectionID: Slot<OriginalClient>] = [:]
    var resources: [ConnectionID: Slot<MediaResource>] = [:]
    var register = MediaResourceRegister()
    var people: [IdentityID: Slot<Person>] = [:]
    var sessions: [SessionID: Slot<Session>] = [:]
    var matches: [MatchID: Match] = [:]
    var calls: [CallID: Slot<Call>] = [:]
    var lookups = Lookups()
    var absences = Absences()
    var pool: Slot<Pool>
    var directory: Slot<Directory>
    var links = Slot(machine: Links())
    var timers = Heap<Timer>()
    var timerOrder: UInt64 = 0

    public init(surroundings: Surroundings, generator: Generator) {
        self.surroundings = surroundings
        self.generator = generator
        pool = Slot(machine: Pool(rules: surroundings.rules))
        directory = Slot(machine: Directory(rules: surroundings.rules, project: surroundings.project))
    }

    // MARK: Figures for metrics and tests

    public var clientCount: Int { clients.count + originals.count }
    public var resourceCount: Int { resources.count }
    public var personCount: Int { people.count }
    public var sessionCount: Int { sessions.count }
    public var matchCount: Int { matches.count }
    public var callCount: Int { calls.count }
    /// People who are there on some device.
    public internal(set) var presentCount = 0
    public var callFigures: (ringing: Int, active: Int) {
        let ringing = calls.values.count { $0.machine.isRinging }
        return (ringing, calls.count - ringing)
    }
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
        case .answered(let question, let finding): receive(finding, to: question, now: now, into: &effects)
        case .unreachable(let identity):
            if people[identity] != nil { effects.tell(.person(identity, .presence(.pushChanged(isReachable: false)))) }
        case .restored(let call, let caller, let callee):
            restore(call, caller, callee, now: now, into: &effects)
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
            switch mail[next] {
            case .letter(let letter): deliver(letter, now: now, into: &mail)
            case .inquire(var question):
                let person = people[question.identity]?.machine
                question.device = person?.devices[question.client]?.identity ?? question.identity
                done.append(.inquire(question))
            default: done.append(mail[next])
            }
            next += 1
        }
        return done
    }

    mutating func deliver(_ letter: Letter, now: Timestamp, into effects: inout [Effect]) {
        switch letter {
        case .client(let id, let event): deliver(event, to: id, now: now, into: &effects)
        case .person(let id, let event): deliver(event, to: id, now: now, into: &effects)
        case .session(let id, let event): deliver(event, to: id, now: now, into: &effects)
        case .pool(let event):
            pool.machine.handle(event, now: now, online: clientCount, using: &generator, into: &effects)
            if let at = pool.wakeUp() { schedule(.pool, at) }
        case .match(let id, let event): deliver(event, to: id, now: now, into: &effects)
        case .call(let id, let event): deliver(event, to: id, now: now, into: &effects)
        case .newCall(let attempt):
            deliver(.begin(attempt), to: CallID.random(using: &generator), now: now, into: &effects)
        case .directory(let event):
            directory.machine.handle(event, now: now, into: &effects)
            if let at = directory.wakeUp() { schedule(.directory, at) }
        case .links(let event):
            let surroundings = surroundings
            links.machine.handle(event, now: now, in: surroundings, using: &generator, into: &effects)
            if let at = links.wakeUp() { schedule(.links, at) }
        case .introduce(let person, let introduction): introduce(person, introduction, into: &effects)
        case .reception(let arrival): receive(arrival, now: now, into: &effects)
        case .media(let command): effects.append(.media(command))
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
extension Call: TimedMachine {}
extension Directory: TimedMachine {}
extension Links: TimedMachine {}
