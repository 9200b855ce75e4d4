import Wire

/// One identity with all its devices and its current activity.
///
/// Owns the state that exists once per person. The work is done by parts, such as the calls and the contact book.
/// Each part changes only itself, reads the other parts through `PersonSnapshot`, and returns what else must happen.
/// `Person` then applies these results in order. It does not choose roulette partners (the pool does) and does not
/// use sockets. Invariant: a person in a call does not search or chat in the roulette.
public struct Person: Machine, Equatable, Sendable {
    let id: IdentityID
    var persona: PersonProfile
    var devices: DeviceList
    var roulette = RouletteState()
    var calls: CallState
    var contacts: ContactBook
    var locationState = LocationState()
    var blocks: BlockList
    var ban: Ban?
    /// True after the person was deleted or one of its changes could not be stored. While true, late events change nothing. The
    /// state machine ends when all devices have disconnected.
    var isDeleted = false
    /// When the last device disconnected, or when the person was looked up. Nil while connected, and if nothing about
    /// the person needs to be remembered. Absent people are removed from memory after some time.
    var absentSince: Timestamp?
    private let idleTime: Duration

    private init(_ id: IdentityID, _ record: PersonRecord, _ context: Context) {
        self.id = id
        persona = PersonProfile(context.project.personID(of: id), record.profile, usedAt: record.profileUsedAt)
        devices = DeviceList(record)
        calls = CallState(record)
        contacts = ContactBook(record)
        blocks = BlockList(record.blocked)
        ban = record.ban
        idleTime = context.tag == nil ? context.rules.personIdle : context.rules.clusterPersonIdle
    }

    static func make(_ id: IdentityID, for event: PersonEvent, _ context: inout Context) -> Person? {
        switch event {
        case .arrived(_, _, _, let record, _, _, _, _): return Person(id, record, context)
        case .lookedUp(let record):
            // The person is not connected. Keep the record in memory for a while.
            var person = Person(id, record, context)
            person.absentSince = context.now
            return person
        default: return nil
        }
    }

    /// Answers for a person who is on another node of the cluster, or has left this one: as if the person were away. Without a cluster, a
    /// person who gets a request is always in memory.
    static func orphan(_ event: PersonEvent, _ id: IdentityID, _ context: inout Context) {
        switch event {
        case .presence(.sought(_, let client, let re, let name)):
            let info = PersonInfo(id: context.project.personID(of: id), name: name, online: false)
            context.send(.presence(.person(.init(re: re, person: info))), to: client)
        case .call(.asked(let offer)): context.tell(.call(offer.call, .answered(.elsewhere)))
        case .call(.restored(let call)) where call.callee == id && call.acceptedAt == nil:
            context.tell(.call(call.id, .calleeElsewhere))
        // The person is on no node. Their list shows the call when a device connects.
        case .call(.over(let end)) where end.isMissed && context.tag != nil:
            context.persist(.callLogged(end.record, of: id))
        // The person left after the pool of another node had reserved them, and before the match began.
        case .matched(let matched, _, _, _): context.tell(.match(matched.match, .leave(id, .partnerLeft)))
        default: return
        }
    }

    /// Whether this is the person of a legacy client.
    var isLegacy: Bool { devices.contains { $0.home != nil } }

    /// A read-only view of this person, for the parts to read each other's state.
    var snapshot: PersonSnapshot {
        PersonSnapshot(
            id: id, persona: persona, devices: devices, blocks: blocks, ban: ban, isCalling: calls.isInCall,
            searchName: roulette.search?.name)
    }

    // MARK: Forgetting

    var isOver: Bool {
        if isDeleted { return devices.isEmpty }
        return devices.isEmpty && absentSince == nil && devices.codeUntil == nil && roulette.isIdle && calls.isEmpty
    }

    /// Whether the person is not connected, and is kept in memory because they disconnected recently or were looked
    /// up.
    var isAbsent: Bool { absentSince != nil }

    /// Stops keeping this absent person in memory. Called if too many absent people are kept.
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

    mutating func handleTimeout(_ context: inout Context) {
        if let until = absentUntil, until <= context.now, devices.isEmpty { absentSince = nil }
        devices.checkCode(context.now)
        let presence = devices.ownPresence.takeDue(context.now)
        if presence.isDue { sendOwnPresence(except: presence.except, &context) }
        roulette.handleTimeout(snapshot, &context)
    }

    // MARK: Events

    mutating func handle(_ event: PersonEvent, _ context: inout Context) {
        let wasThere = devices.isThere
        if !isDeleted {
            let before = reportedState
            act(on: event, &context)
            report(before, &context)
        } else if case .departed(let client) = event {
            _ = devices.remove(client)
        }
        context.figures.present += (devices.isThere ? 1 : 0) - (wasThere ? 1 : 0)
    }

    private mutating func act(on event: PersonEvent, _ context: inout Context) {
        switch event {
        case .arrived(let client, let address, let name, _, let home, let device, _, let showsWarnings):
            if devices.isEmpty { contacts.query(for: id, &context) }
            let arrived = Device(
                address: address, name: name, home: home, identity: device ?? id, showsWarnings: showsWarnings)
            devices.insert(arrived, client)
            devices.closeExcess(&context)
            absentSince = nil
        case .dropped(let client): dropped(client, &context)
        case .returned(let client): returned(client, &context)
        case .moved(let client, let address):
            if devices.move(client, to: address) { roulette.moved(client, to: address, of: id, &context) }
        case .departed(let client): departed(client, &context)
        case .verb(let client, let re, let message):
            let request = Request(client, re)
            if let error = devices.takeRequest(context) { return context.fail(error, request) }
            perform(message, request, &context)
        case .asked(let client, let request): roulette.perform(request, by: client, snapshot, &context)
        case .reserve(let match, let partner, let node):
            roulette.reserve(match, with: partner, at: node, snapshot, &context)
        case .release(let match): roulette.release(match, context)
        case .queueFull: roulette.queueFull(of: id, &context)
        case .matched(let matched, let partner, let address, let node):
            roulette.begin(
                matched, with: .init(identity: partner, address: address, node: node), snapshot, &context)
        case .matchEnded(let match, let reason): roulette.ended(match, reason, snapshot, &context)
        case .partnerAway(let match, let isAway): roulette.partnerAway(match, isAway, &context)
        case .partnerMoved(let match, let address): roulette.partnerMoved(match, to: address)
        case .partnerBlurred(let match, let isBlurred): roulette.partnerBlurred(match, isBlurred, &context)
        case .sampled(let match): roulette.sampled(match)
        case .judged(let match, let judgment): roulette.judged(match, judgment, snapshot, &context)
        case .warned(let text): warned(text, &context)
        case .lookedUp: break
        case .unbanned: ban = nil
        case .storageFailed: forget(.storageFailed, &context)
        case .placeLost(let error):
            contacts.reportPlaceLost(of: id, &context)
            forget(error, &context)
        case .hallIsElsewhere(let error): roulette.hallIsElsewhere(error, snapshot, &context)
        case .hallIsAt(let node): roulette.hallIsAt(node, snapshot, &context)
        case .hallClosed: roulette.hallClosed(snapshot, &context)
        case .banned(let ban): banned(ban, &context)
        case .introduced(let introduction, let other): introduced(introduction, to: other, &context)
        case .presence(let event): handle(event, &context)
        case .call(let event): handle(event, &context)
        case .contact(let event): handle(event, &context)
        }
    }

    private mutating func perform(_ message: ClientMessage, _ request: Request, _ context: inout Context) {
        switch message {
        case .roulette(.start(let start)): roulette.start(start, request, snapshot, &context)
        case .roulette(.next(let verb)): roulette.next(verb, request, snapshot, &context)
        case .roulette(.stop): roulette.stop(request, snapshot, &context)
        case .roulette(.count): context.tell(.countClients(request.client, re: request.re))
        case .roulette(.report(let report)): roulette.report(report, request, by: snapshot, &context)
        case .roulette(.block(let verb)):
            guard let chat = roulette.chat(verb.match, context) else { return roulette.notMatched(request, &context) }
            block(chat.partner, &context)
            roulette.endChat(withBlocked: chat.partner, request, snapshot, &context)
        case .presence(let verb): perform(verb, request, &context)
        case .nearby(let verb): perform(verb, request, &context)
        case .call(let verb): perform(verb, request, &context)
        case .contact(let verb): perform(verb, request, &context)
        case .push(let verb): perform(verb, request, &context)
        case .hello, .ack, .ping, .bye, .iceServers, .session, .media, .room:
            context.fail(WireError(.unknownType, "This connection does not support this request."), request)
        }
    }

    // MARK: Failures of storage

    /// Removes this person from memory, because the state in memory no longer matches storage, or another node of the cluster has
    /// the person. The person's clients are disconnected with this error and close code 1012. When the first of them
    /// reconnects, the state is loaded from storage.
    private mutating func forget(_ error: WireError, _ context: inout Context) {
        context.tell(.deviceCodes(.withdraw(id)))
        calls.withdrawPushes(snapshot, &context)
        calls.endAll(.hungUp, snapshot, &context)
        roulette.stop(.partnerLeft, notifies: false, snapshot, &context)
        for client in devices.clients {
            context.tell(.client(client, .expel(error, .serviceRestart)))
            departed(client, &context)
        }
        locationState.forget()
        absentSince = nil
        isDeleted = true
    }
}
