import Signaling
import TestSupport
import Testing
import Wire

/// A hub in simulated time, with the shell's part played as the server plays it: sockets are numbered, a close ends in
/// `closed`, timers ring when they are due and nobody waits for anything.
///
/// Whatever a test does, the stage checks what must always hold: every message to a client is
/// numbered without gaps, every request is answered exactly once, and the media plane is asked for nothing that makes
/// no sense after what it was asked before.
final class Stage {
    static let apiKey = "45000001"
    static let secret = "00112233445566778899aabbccddeeff0011223344556677"

    let project: Project
    let rules: Rules
    private(set) var hub: Hub
    private(set) var now = Timestamp(milliseconds: 1_790_000_000_000)
    var generator: SeededGenerator
    /// What was to be stored so far.
    private(set) var changes: [Change] = []
    /// What storage made of them.
    var archive = Archive()
    /// What was to wake sleeping devices so far.
    private(set) var pushes: [(identity: IdentityID, notice: PushNotice)] = []
    /// What the last event had the shell do, in order.
    private(set) var effects: [Effect] = []
    /// What the last event asked of the media plane, and what that has come to.
    private(set) var media: [MediaCommand] = []
    private(set) var ledger = MediaLedger()
    /// Answers to requests over HTTP.
    private(set) var replies: [SocketID: [ResourceReply]] = [:]
    /// Sockets that the hub closed, resources of WHIP and WHEP among them.
    private(set) var overResources: Set<SocketID> = []
    private var guests: [SocketID: Guest] = [:]
    private var originals: [SocketID: Original] = [:]
    private var lastSocket: UInt64 = 0
    /// Storage has read what it was asked for, and is not heard before `hearStorage`.
    var isStorageSlow = false
    private var unheard: [(Question, Finding)] = []

    init(seed: UInt64 = 1, ice: ICEProvision = ICEProvision(), _ adjust: (inout Rules) -> Void = { _ in }) {
        var rules = Rules()
        adjust(&rules)
        (project, self.rules) = (Self.project, rules)
        generator = SeededGenerator(seed: seed)
        hub = Hub(
            surroundings: Surroundings(rules: rules, project: project, ice: ice, version: "test"),
            generator: SeededGenerator(seed: seed &+ 1)
        )
    }

    // MARK: Time

    /// Lets time pass; every timer that falls due rings at its own instant.
    func pass(_ duration: Duration) {
        let end = now + duration
        media = []
        while let next = hub.nextTimeout, next <= end {
            now = max(now, next)
            carryOut(hub.handleTimeout(now: now))
        }
        now = end
    }

    // MARK: Events

    func handle(_ input: Input) {
        media = []
        carryOut(hub.handle(input, now: now))
        var all = effects
        // Some work is put off to a timer that is due at once.
        while let next = hub.nextTimeout, next <= now {
            carryOut(hub.handleTimeout(now: now))
            all += effects
        }
        effects = all
    }

    private func carryOut(_ effects: [Effect]) {
        self.effects = effects
        var closing: [(SocketID, CloseCode)] = []
        var questions: [Question] = []
        for effect in effects {
            switch effect {
            case .persist(let change):
                changes.append(change)
                archive.apply(change)
            case .inquire(let question): questions.append(question)
            case .push(let identity, let notice): pushes.append((identity, notice))
            case .media(let command): note(command)
            case .reply(let socket, let reply): replies[socket, default: []].append(reply)
            case .transmit(let socket, let bytes):
                guests[socket]?.receive(bytes, on: socket)
                originals[socket]?.receive(bytes)
            case .close(let socket, let code, _):
                guests[socket]?.closed(code, on: socket)
                originals[socket]?.isBooted = true
                overResources.insert(socket)
                closing.append((socket, code))
            }
        }
        for (socket, code) in closing
        where guests.removeValue(forKey: socket) != nil || originals.removeValue(forKey: socket) != nil {
            carryOutMore(hub.handle(.closed(socket, leaving: code.isLeaving), now: now))
        }
        for question in questions {
            let finding = archive.answer(question)
            if isStorageSlow {
                unheard.append((question, finding))
            } else {
                carryOutMore(hub.handle(.answered(question, finding), now: now))
            }
        }
        for guest in Set(guests.values) where guest.owesAcknowledgement { guest.acknowledge() }
    }

    /// What storage found while it was slow.
    func hearStorage() {
        isStorageSlow = false
        let findings = unheard
        unheard = []
        for (question, finding) in findings { handle(.answered(question, finding)) }
    }

    private func note(_ command: MediaCommand) {
        media.append(command)
        if let fault = ledger.note(command) { Issue.record("the media plane: \(fault)") }
    }

    /// What follows from a close must not hide what the event itself did.
    private func carryOutMore(_ more: [Effect]) {
        let first = effects
        carryOut(more)
        effects = first + more
    }

    // MARK: Sockets

    func connect(_ guest: Guest) -> SocketID {
        lastSocket += 1
        let socket = SocketID(rawValue: lastSocket)
        guests[socket] = guest
        return socket
    }

    func resource() -> SocketID {
        lastSocket += 1
        return SocketID(rawValue: lastSocket)
    }

    func connect(_ original: Original) -> SocketID {
        lastSocket += 1
        let socket = SocketID(rawValue: lastSocket)
        originals[socket] = original
        return socket
    }

    func disconnect(_ socket: SocketID, leaving: Bool) {
        guard guests.removeValue(forKey: socket) != nil || originals.removeValue(forKey: socket) != nil else { return }
        handle(.closed(socket, leaving: leaving))
    }

    /// The server dies with all it has in memory; whoever was connected finds the line broken, and another server begins
    /// with what was stored, after a while.
    func restart(after pause: Duration = .zero) {
        now = now + pause
        for guest in Set(guests.values) { guest.lostServer() }
        (guests, originals) = ([:], [:])
        hub = Hub(
            surroundings: hub.surroundings,
            generator: SeededGenerator(seed: UInt64.random(in: 0 ... .max, using: &generator))
        )
        (media, ledger) = ([], MediaLedger())
        for call in archive.openCalls.values.sorted(by: { $0.id < $1.id }) {
            handle(.restored(call, caller: archive.record(of: call.caller), callee: archive.record(of: call.callee)))
        }
    }

    // MARK: People and places

    func identity() -> IdentityID { .random(using: &generator) }

    func arrive(
        _ identity: IdentityID? = nil, name: String? = nil, address: String = "", record: PersonRecord? = nil
    ) -> Guest {
        let guest = Guest(on: self, as: identity ?? self.identity(), name: name, address: address)
        guest.arrive(record: record)
        return guest
    }

    /// Somebody on RouletteTok's wire, who has just been told his session.
    func arriveOriginal(address: String = "") -> Original {
        let original = Original(on: self)
        original.arrive(address: address)
        return original
    }

    func room(_ mode: MediaMode = .relayed, relayedOnly: Bool = false) -> SessionID {
        project.makeSessionID(mediaMode: mode, relayedOnly: relayedOnly, now: now, using: &generator)
    }

    func token(
        _ session: SessionID, _ role: Role = .publisher, data: String = "", match: MatchID? = nil,
        lifetime: Duration = .seconds(3600)
    ) -> String {
        project.makeSessionToken(
            SessionTokenClaims(session: session, role: role, data: data, match: match, lifetime: lifetime), now: now,
            using: &generator)
    }

    /// Two people who have just been paired, with everything said on the way taken out of their inboxes.
    func pair(_ first: Guest? = nil, _ second: Guest? = nil) -> (Guest, Guest, RouletteNotice.Matched) {
        let (first, second) = (first ?? arrive(), second ?? arrive())
        first.say(.roulette(.start(.init())))
        second.say(.roulette(.start(.init())))
        guard let matched = first.match else {
            Issue.record("the two were not paired")
            return (first, second, RouletteNotice.Matched())
        }
        first.take()
        second.take()
        return (first, second, matched)
    }
}
