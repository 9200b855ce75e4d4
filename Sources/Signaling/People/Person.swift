import Wire

/// One identity with all its devices and its current activity.
///
/// Owns the state that must be unique per person. The parts do the work: each changes only itself, reads the others through
/// `Facts`, and returns what else must happen, which is applied here in order. It does not choose partners (the pool does) and
/// knows no sockets.
/// Invariant: a person in a call does not search or chat in the roulette.
public struct Person: Machine, Equatable, Sendable {
    let id: IdentityID
    var persona: Persona
    var devices: DeviceList
    var roulette = RouletteSeat()
    var calls: CallDesk
    var contacts: ContactBook
    var whereabouts = Whereabouts()
    var blocks: BlockList
    var ban: Ban?
    /// True after deletion, and after a change could not be stored, until all devices have departed. Late events change nothing.
    private(set) var isDeleted = false
    /// When the last device left. The state is dropped some time later.
    private var absentSince: Timestamp?
    private let idleTime: Duration

    private init(_ id: IdentityID, _ record: PersonRecord, _ turn: Turn) {
        self.id = id
        persona = Persona(turn.project.personID(of: id), record.profile)
        devices = DeviceList(record)
        calls = CallDesk(record)
        contacts = ContactBook(record)
        blocks = BlockList(record.blocked)
        ban = record.ban
        idleTime = turn.rules.personIdle
    }

    static func make(_ id: IdentityID, for event: PersonEvent, _ turn: inout Turn) -> Person? {
        switch event {
        case .arrived(_, _, _, let record, _, _): return Person(id, record, turn)
        case .lookedUp(let record):
            // Not connected; keep for a while.
            var person = Person(id, record, turn)
            person.absentSince = turn.now
            return person
        default: return nil
        }
    }

    /// A read-only view for the parts.
    var facts: Facts {
        Facts(
            id: id, persona: persona, devices: devices, blocks: blocks, ban: ban, isCalling: calls.isBusy,
            searchName: roulette.search?.name)
    }

    // MARK: Forgetting

    var isOver: Bool {
        if isDeleted { return devices.isEmpty }
        return devices.isEmpty && absentSince == nil && devices.codeUntil == nil && roulette.isIdle && calls.isEmpty
    }

    /// Whether the person is kept in memory only because it left recently or was looked up.
    var isAbsent: Bool { absentSince != nil }

    /// Evicts this person when too many are kept.
    mutating func forgetAbsence() { absentSince = nil }

    private var absentUntil: Timestamp? {
        absentSince.map { $0 + (contacts.hasStateToKeep ? max(idleTime, Meetings.period) : idleTime) }
    }

    // MARK: Time

    var nextTimeout: Timestamp? {
        var next = absentUntil
        if let until = roulette.nextTimeout { next = next.map { min($0, until) } ?? until }
        if let until = devices.codeUntil { next = next.map { min($0, until) } ?? until }
        if let at = devices.ownPresence.dueAt { next = next.map { min($0, at) } ?? at }
        return next
    }

    mutating func handleTimeout(_ turn: inout Turn) {
        if let until = absentUntil, until <= turn.now, devices.isEmpty { absentSince = nil }
        devices.checkCode(turn.now)
        let presence = devices.ownPresence.takeDue(turn.now)
        if presence.isDue { sendOwnPresence(except: presence.except, &turn) }
        roulette.handleTimeout(facts, &turn)
    }

    // MARK: Events

    mutating func handle(_ event: PersonEvent, _ turn: inout Turn) {
        let wasThere = devices.isThere
        if !isDeleted {
            let before = reportedState
            act(on: event, &turn)
            report(before, &turn)
        } else if case .departed(let client) = event {
            _ = devices.remove(client)
        }
        turn.figures.present += (devices.isThere ? 1 : 0) - (wasThere ? 1 : 0)
    }

    private mutating func act(on event: PersonEvent, _ turn: inout Turn) {
        switch event {
        case .arrived(let client, let address, let name, _, let home, let device):
            if devices.isEmpty { contacts.inquire(for: id, &turn) }
            devices.insert(Device(address: address, name: name, home: home, identity: device ?? id), client)
            devices.closeExcess(&turn)
            absentSince = nil
        case .dropped(let client): drop(client, &turn)
        case .returned(let client): returned(client, &turn)
        case .departed(let client): depart(client, &turn)
        case .verb(let client, let re, let message):
            let request = Request(client, re)
            if let error = devices.takeRequest(turn) { return turn.fail(error, request) }
            perform(message, request, &turn)
        case .asked(let client, let request): roulette.perform(request, by: client, facts, &turn)
        case .reserve(let match, let partner): roulette.reserve(match, with: partner, facts, &turn)
        case .release(let match): roulette.release(match)
        case .queueFull: roulette.queueFull(&turn)
        case .matched(let matched, let partner): roulette.begin(matched, with: partner, of: id, &turn)
        case .matchEnded(let match, let reason): roulette.ended(match, reason, facts, &turn)
        case .partnerAway(let match, let isAway): roulette.partnerAway(match, isAway, &turn)
        case .lookedUp: break
        case .unbanned: ban = nil
        case .storageFailed(let client, let re): forget(failing: client, re: re, &turn)
        case .banned(let ban): banned(ban, &turn)
        case .introduced(let introduction, let other): introduced(introduction, to: other, &turn)
        case .presence(let event): handle(event, &turn)
        case .call(let event): handle(event, &turn)
        case .contact(let event): handle(event, &turn)
        }
    }

    private mutating func perform(_ message: ClientMessage, _ request: Request, _ turn: inout Turn) {
        switch message {
        case .roulette(.start(let start)): roulette.start(start, request, facts, &turn)
        case .roulette(.next(let verb)): roulette.next(verb, request, facts, &turn)
        case .roulette(.stop): roulette.stop(request, facts, &turn)
        case .roulette(.report(let report)): roulette.report(report, request, by: id, &turn)
        case .roulette(.block(let verb)):
            guard let chat = roulette.chat(verb.match, turn) else { return roulette.notMatched(request, &turn) }
            block(chat.partner, &turn)
            roulette.endChat(withBlocked: chat.partner, request, facts, &turn)
        case .presence(let verb): perform(verb, request, &turn)
        case .nearby(let verb): perform(verb, request, &turn)
        case .call(let verb): perform(verb, request, &turn)
        case .contact(let verb): perform(verb, request, &turn)
        default: turn.fail(WireError(.unknownType, "Unknown request for this connection."), request)
        }
    }

    // MARK: Devices

    private mutating func drop(_ client: ConnectionID, _ turn: inout Turn) {
        devices.setDropped(client, true)
        if devices.isWatching(client) { turn.tell(.directory(.viewerAway(client, true))) }
        calls.dropped(client, facts, &turn)
        roulette.dropped(client, of: id, &turn)
    }

    private mutating func returned(_ client: ConnectionID, _ turn: inout Turn) {
        devices.setDropped(client, false)
        if devices.isWatching(client) { turn.tell(.directory(.viewerAway(client, false))) }
        calls.returned(client, facts, &turn)
        roulette.returned(client, facts, &turn)
    }

    private mutating func depart(_ client: ConnectionID, _ turn: inout Turn) {
        guard let device = devices.remove(client) else { return }
        if device.isWatching { turn.tell(.directory(.unwatch(client))) }
        calls.departed(client, wasDropped: device.isDropped, facts, &turn)
        roulette.departed(client, facts, &turn)
        // Blocks are stored anyway. Keep nothing for an identity without recent activity, or for one that cannot return.
        let hasStateToKeep =
            roulette.hasStateToKeep || whereabouts.hasStateToKeep || calls.hasStateToKeep
            || contacts.hasStateToKeep
        if devices.isEmpty, device.home == nil, hasStateToKeep { absentSince = turn.now }
    }

    // MARK: Ban and deletion

    private mutating func banned(_ ban: Ban, _ turn: inout Turn) {
        self.ban = ban.isActive(at: turn.now) ? ban : nil
        guard let error = facts.banError(turn.now) else { return }
        roulette.stop(.banned, notifies: true, facts, &turn)
        calls.endAll(.hungUp, facts, &turn)
        for client in devices.clients { turn.tell(.client(client, .expel(error, .forbidden))) }
    }

    /// Removes this person from memory, where it no longer agrees with storage. Its clients are closed with 1012 and reconnect;
    /// the first of them loads its state from storage.
    private mutating func forget(failing requester: ConnectionID?, re: UInt64?, _ turn: inout Turn) {
        let error = WireError(.storageFailed, "The server could not store this change. Try again.", retryable: true)
        turn.tell(.deviceCodes(.withdraw(id)))
        calls.endAll(.hungUp, facts, &turn)
        roulette.stop(.partnerLeft, notifies: false, facts, &turn)
        for client in devices.clients {
            turn.tell(.client(client, .expel(error, .serviceRestart, re: client == requester ? re : nil)))
        }
        whereabouts.forget()
        isDeleted = true
    }

    /// Deletes all data of this person, on all devices. Data of others, such as their call logs, is kept.
    mutating func delete(_ request: Request, _ turn: inout Turn) {
        turn.tell(.deviceCodes(.withdraw(id)))
        turn.tell(.lookup(persona.id, .void))
        calls.endAll(.deleted, facts, &turn)
        roulette.stop(.partnerLeft, notifies: false, facts, &turn)
        contacts.loseAll(of: id, &turn)
        turn.persist(.deleted(id))
        turn.ok(request)
        devices.delete(&turn)
        persona.forget()
        whereabouts.forget()
        // From now on, late events must not store anything for this person.
        isDeleted = true
    }
}
