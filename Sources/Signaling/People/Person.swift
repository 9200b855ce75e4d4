import Wire

/// One identity, on all its devices, and the one thing it is doing.
///
/// It owns what must not be true twice of one person. Its parts do the work, each with what is its own; they read `Facts`
/// of each other and return what follows for others, which is applied here, in order. It does not choose partners (the
/// pool does) and does not know where its devices' packets go. Invariant: nobody searches or chats in the roulette while in
/// a call.
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
    /// Everything held is to be forgotten: only the departure of the devices is waited for.
    private(set) var isDeleted = false
    /// Since when no device is here; after a while there is nothing left worth remembering.
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
            // Not here, and worth remembering for a while.
            var person = Person(id, record, turn)
            person.absentSince = turn.now
            return person
        default: return nil
        }
    }

    /// What the parts may know of each other.
    var facts: Facts {
        Facts(
            id: id, persona: persona, devices: devices, blocks: blocks, ban: ban, isCalling: calls.isBusy,
            searchName: roulette.search?.name)
    }

    // MARK: Being forgotten

    var isOver: Bool {
        if isDeleted { return devices.isEmpty }
        return devices.isEmpty && absentSince == nil && devices.codeUntil == nil && roulette.isIdle && calls.isEmpty
    }

    /// Remembered without being here, for nothing that goes on.
    var isAbsent: Bool { absentSince != nil }

    /// So many are remembered that there is no room for this one.
    mutating func forgetAbsence() { absentSince = nil }

    private var absentUntil: Timestamp? {
        absentSince.map { $0 + (contacts.isWorthRemembering ? max(idleTime, Meetings.period) : idleTime) }
    }

    // MARK: Time

    var nextTimeout: Timestamp? {
        var next = absentUntil
        if let until = roulette.nextTimeout { next = next.map { min($0, until) } ?? until }
        if let until = devices.codeUntil { next = next.map { min($0, until) } ?? until }
        return next
    }

    mutating func handleTimeout(_ turn: inout Turn) {
        if let until = absentUntil, until <= turn.now, devices.isEmpty { absentSince = nil }
        devices.checkCode(turn.now)
        roulette.handleTimeout(facts, &turn)
    }

    // MARK: Events

    mutating func handle(_ event: PersonEvent, _ turn: inout Turn) {
        let wasThere = devices.isThere
        if !isDeleted {
            let before = appearances
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
            absentSince = nil
        case .dropped(let client): drop(client, &turn)
        case .returned(let client): returned(client, &turn)
        case .departed(let client): depart(client, &turn)
        case .verb(let client, let re, let message): perform(message, Request(client, re), &turn)
        case .asked(let client, let request): roulette.perform(request, by: client, facts, &turn)
        case .reserve(let match, let partner): roulette.reserve(match, with: partner, facts, &turn)
        case .release(let match): roulette.release(match)
        case .queueFull: roulette.queueFull(&turn)
        case .matched(let matched, let partner): roulette.begin(matched, with: partner, of: id, &turn)
        case .matchEnded(let match, let reason): roulette.ended(match, reason, facts, &turn)
        case .partnerAway(let match, let isAway): roulette.partnerAway(match, isAway, &turn)
        case .lookedUp: break
        case .unbanned: ban = nil
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
        default: turn.fail(WireError(.unknownType, "A person does not know this."), request)
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
        // Blocks are on disk; an identity that never met anybody leaves nothing behind, nor does one that cannot come back.
        let isWorthIt =
            roulette.isWorthRemembering || whereabouts.isWorthRemembering || calls.isWorthRemembering
            || contacts.isWorthRemembering
        if devices.isEmpty, device.home == nil, isWorthIt { absentSince = turn.now }
    }

    // MARK: The end

    private mutating func banned(_ ban: Ban, _ turn: inout Turn) {
        self.ban = ban.isActive(at: turn.now) ? ban : nil
        guard let error = facts.banError(turn.now) else { return }
        roulette.stop(.banned, tells: true, facts, &turn)
        calls.endAll(.willingly, facts, &turn)
        for client in devices.clients { turn.tell(.client(client, .expel(error, .forbidden))) }
    }

    /// Deletes everything held of this person, on all devices. What others hold, such as their log of calls, is theirs.
    mutating func delete(_ request: Request, _ turn: inout Turn) {
        turn.tell(.deviceCodes(.withdraw(id)))
        turn.tell(.lookup(persona.id, .void))
        calls.endAll(.deleted, facts, &turn)
        roulette.stop(.partnerLeft, tells: false, facts, &turn)
        contacts.loseAll(of: id, &turn)
        turn.persist(.deleted(id))
        turn.ok(request)
        devices.delete(&turn)
        persona.forget()
        whereabouts.forget()
        // Before anything that is on its way can have something of it stored again.
        isDeleted = true
    }
}
