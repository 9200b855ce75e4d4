import Wire

/// One identity with all its devices and its current activity.
///
/// Owns the state that exists once per person. The work is done by parts, such as the call desk and the contact book. Each part
/// changes only itself, reads the other parts through `Facts`, and returns what else must happen. `Person` then applies these
/// results in order. It does not choose roulette partners (the pool does) and does not use sockets.
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
    /// True after the person was deleted or one of its changes could not be stored. While true, late events change nothing. The
    /// state machine ends when all devices have disconnected.
    private(set) var isDeleted = false
    /// When the last device disconnected, or when the person was looked up. Nil while connected. Absent people are removed from
    /// memory after some time.
    private var absentSince: Timestamp?
    private let idleTime: Duration

    private init(_ id: IdentityID, _ record: PersonRecord, _ turn: Turn) {
        self.id = id
        persona = Persona(turn.project.personID(of: id), record.profile, usedAt: record.profileUsedAt)
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
            // The person is not connected. Keep the record in memory for a while.
            var person = Person(id, record, turn)
            person.absentSince = turn.now
            return person
        default: return nil
        }
    }

    /// A read-only view of this person, for the parts to read each other's state.
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

    /// Whether the person is kept in memory only because they disconnected recently or were looked up.
    var isAbsent: Bool { absentSince != nil }

    /// Stops keeping this person in memory, because too many absent people are kept.
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
        case .moved(let client, let address):
            if devices.move(client, to: address) { roulette.moved(client, to: address, of: id, &turn) }
        case .departed(let client): depart(client, &turn)
        case .verb(let client, let re, let message):
            let request = Request(client, re)
            if let error = devices.takeRequest(turn) { return turn.fail(error, request) }
            perform(message, request, &turn)
        case .asked(let client, let request): roulette.perform(request, by: client, facts, &turn)
        case .reserve(let match, let partner): roulette.reserve(match, with: partner, facts, &turn)
        case .release(let match): roulette.release(match)
        case .queueFull: roulette.queueFull(&turn)
        case .matched(let matched, let partner, let address):
            roulette.begin(matched, with: .init(identity: partner, address: address), of: id, &turn)
        case .matchEnded(let match, let reason): roulette.ended(match, reason, facts, &turn)
        case .partnerAway(let match, let isAway): roulette.partnerAway(match, isAway, &turn)
        case .partnerMoved(let match, let address): roulette.partnerMoved(match, to: address)
        case .lookedUp: break
        case .unbanned: ban = nil
        case .storageFailed: forget(&turn)
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
        case .roulette(.count): turn.tell(.pool(.count(request.client, re: request.re)))
        case .roulette(.report(let report)): roulette.report(report, request, by: facts, &turn)
        case .roulette(.block(let verb)):
            guard let chat = roulette.chat(verb.match, turn) else { return roulette.notMatched(request, &turn) }
            block(chat.partner, &turn)
            roulette.endChat(withBlocked: chat.partner, request, facts, &turn)
        case .presence(let verb): perform(verb, request, &turn)
        case .nearby(let verb): perform(verb, request, &turn)
        case .call(let verb): perform(verb, request, &turn)
        case .contact(let verb): perform(verb, request, &turn)
        case .push(let verb): perform(verb, request, &turn)
        case .hello, .ack, .ping, .bye, .iceServers, .session, .media, .room:
            turn.fail(WireError(.unknownType, "This connection does not support this request."), request)
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
        // Keep the person in memory only if there is recent activity to remember and the person can return. Legacy clients
        // cannot return. Blocks do not count, because they are in storage.
        let hasStateToKeep =
            roulette.hasStateToKeep || whereabouts.hasStateToKeep || calls.hasStateToKeep
            || contacts.hasStateToKeep
        if devices.isEmpty, device.home == nil, hasStateToKeep { absentSince = turn.now }
    }

    // MARK: Ban and deletion

    private mutating func banned(_ ban: Ban, _ turn: inout Turn) {
        self.ban = ban.isActive(at: turn.wallNow) ? ban : nil
        guard let error = facts.banError(turn.wallNow) else { return }
        roulette.stop(.banned, notifies: true, facts, &turn)
        calls.endAll(.hungUp, facts, &turn)
        for client in devices.clients { turn.tell(.client(client, .expel(error, .forbidden))) }
    }

    /// Removes this person from memory, because the state in memory no longer matches storage. The person's clients are
    /// disconnected with close code 1012. When the first of them reconnects, the state is loaded from storage.
    private mutating func forget(_ turn: inout Turn) {
        turn.tell(.deviceCodes(.withdraw(id)))
        calls.withdrawPushes(facts, &turn)
        calls.endAll(.hungUp, facts, &turn)
        roulette.stop(.partnerLeft, notifies: false, facts, &turn)
        for client in devices.clients {
            turn.tell(.client(client, .expel(.storageFailed, .serviceRestart)))
            depart(client, &turn)
        }
        whereabouts.forget()
        absentSince = nil
        isDeleted = true
    }

    /// Deletes this person and all their data, on all devices. Data of other people, such as their call logs, is kept.
    mutating func delete(_ request: Request, _ turn: inout Turn) {
        turn.tell(.deviceCodes(.withdraw(id)))
        turn.tell(.lookup(persona.id, .void))
        calls.endAll(.deleted, facts, &turn)
        roulette.stop(.partnerLeft, notifies: false, facts, &turn)
        turn.persist(.deleted(id, contacts: contacts.loseAll(of: id, &turn)))
        turn.ok(request)
        devices.delete(&turn)
        persona.forget()
        whereabouts.forget()
        // Late events must not store anything for this person.
        isDeleted = true
    }
}
