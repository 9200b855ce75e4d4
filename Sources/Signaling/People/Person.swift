import Wire

public enum PersonEvent: Equatable, Sendable {
    // From this person's devices.
    /// With what storage knows, for a person not in memory.
    ///
    /// - `home`: the session that a client of RouletteTok's wire publishes in, whoever its partner is.
    case arrived(
        ConnectionID, address: String, DeviceName, PersonRecord, home: SessionID? = nil, device: IdentityID? = nil)
    case dropped(ConnectionID)
    case returned(ConnectionID)
    case departed(ConnectionID)
    case verb(ConnectionID, re: UInt64, ClientMessage)
    /// The same from a client of RouletteTok's wire.
    case asked(ConnectionID, RouletteTokRequest)
    // From the pool: who must not be in two places is reserved first, then matched or released.
    case reserve(MatchID, with: IdentityID)
    case release(MatchID)
    case queueFull
    // From the match.
    case matched(Matched, partner: IdentityID)
    case matchEnded(MatchID, EndReason)
    case partnerAway(MatchID, Bool)
    // From the operator.
    case banned(Ban)
    case unbanned
    /// To the request that named somebody by a public id: who that is, or that nobody is.
    case introduced(Introduction, IdentityID?)
    /// Somebody asked for this person, and storage knows it.
    case lookedUp(PersonRecord)
    case presence(PersonPresenceEvent)
    case call(PersonCallEvent)
    case contact(PersonContactEvent)
}

/// What somebody goes by. A name that a program's token vouches for cannot be talked away.
public enum DeviceName: Equatable, Sendable {
    case vouched(String)
    case chosen(String)
    case none
}

/// One identity: its devices, blocks, ban, skips, and the one thing it is doing.
///
/// It owns what must not be true twice of one person; it does not choose partners (the pool does) and does not know where
/// its devices' packets go. Invariant: at most one queue entry and at most one match at any time, on one device.
public struct Person: Machine, Equatable, Sendable {
    /// What this person wants: kept while searching and chatting, so that "Next" can search again.
    struct Search: Equatable, Sendable {
        var client: ConnectionID
        var mode: ChatMode
        var interests: [String]
        var name: String
    }

    struct Chat: Equatable, Sendable {
        var match: MatchID
        var partner: IdentityID
        var session: SessionID
        var began: Timestamp
        var isReported = false
        var ended: Timestamp?
    }

    /// Legal next states: `idle` → `penalised`, `waiting`; `penalised` → `waiting`, `away`, `idle`; `waiting` → `reserved`,
    /// `away`, `idle`; `reserved` → `chatting`, `waiting`, `away`, `idle`; `chatting` → `waiting`, `penalised`, `away`,
    /// `idle`; `away` → `waiting`, `penalised`, `idle`.
    enum Activity: Equatable, Sendable {
        case idle
        /// Skipped quickly and often: enters the queue at this time.
        case penalised(Search, until: Timestamp)
        /// Has an entry in the pool.
        case waiting(Search)
        /// The pool is about to pair this person; nobody else may.
        case reserved(Search, MatchID)
        case chatting(Search, Chat)
        /// Searching, but the device dropped: enters the queue, at its end, on return.
        case away(Search)
    }

    struct Device: Equatable, Sendable {
        var address: String
        var name: DeviceName
        /// Where it publishes in every match, on RouletteTok's wire.
        var home: SessionID?
        /// Whose secret it came with.
        var identity: IdentityID
        var isDropped = false
        /// Whether it said `presence.appear`.
        var isPresent = false
        /// Whether it looks at a page of people nearby.
        var isWatching = false
    }

    let id: IdentityID
    /// How others know this person.
    let publicID: PersonID
    var profile: Profile
    /// Whether storage has the profile, so that others find this person by its id.
    var isKnown: Bool
    var linkedDevices: [LinkedDevice]
    var contacts: [Contact]
    /// Those of them that are here, as others may know it.
    var onlineContacts: Set<IdentityID> = []
    var meetings = Meetings()
    var calls = PersonCalls()
    /// Calls whose end nobody was there to hear, oldest first.
    var unseenCalls: [CallRecord]
    /// Whether some device can be woken.
    var hasPush: Bool
    /// Where it is, as others may know it.
    var cell: Cell?
    /// Where it was, for the speed of what comes next; kept when the position is forgotten, and told to nobody.
    var trail: Trail?
    /// Whether the first device was unlinked.
    var isRetired: Bool
    /// Until then a code of this person may be typed on another device.
    var codeUntil: Timestamp?
    /// Everything held is to be forgotten: only the departure of the devices is waited for.
    var isDeleted = false
    var devices: [ConnectionID: Device] = [:]
    var activity = Activity.idle
    /// Blocked by this person, oldest first, and the same as a set.
    var blocked: [IdentityID]
    var blockedSet: Set<IdentityID>
    var ban: Ban?
    /// Chats that ended lately and can still be reported, newest last.
    var recentChats: [Chat] = []
    var lastPartner: IdentityID?
    /// When this person ended a chat soon after it began; only those within the period.
    var skips: [Timestamp] = []
    var penaltyUntil: Timestamp?
    /// Since when no device is here; after a while there is nothing left worth remembering.
    private var emptySince: Timestamp?
    private var idleTime: Duration
    var reports: Budget?
    /// What is left of the codes to link devices by, and of the pages of people nearby.
    var linkCodes: Budget?
    var nearbyPages: Budget?

    init(id: IdentityID, record: PersonRecord, _ turn: Turn) {
        self.id = id
        publicID = turn.project.personID(of: id)
        profile = record.profile ?? Profile()
        isKnown = record.profile != nil
        linkedDevices = record.devices
        contacts = record.contacts
        unseenCalls = record.unseenCalls
        hasPush = record.hasPush
        isRetired = record.isRetired
        blocked = record.blocked
        blockedSet = Set(record.blocked)
        ban = record.ban
        idleTime = turn.rules.personIdle
    }

    var isOver: Bool {
        if isDeleted { return devices.isEmpty }
        return devices.isEmpty && emptySince == nil && codeUntil == nil && activity == .idle && calls.isEmpty
    }

    /// Whoever talked to this person may say later that it wants to keep in touch.
    private var rememberedFor: Duration { meetings.isEmpty ? idleTime : max(idleTime, Meetings.period) }

    /// Remembered without being here, for nothing that goes on.
    var isAbsent: Bool { emptySince != nil }

    /// So many are remembered that there is no room for this one.
    mutating func forgetAbsence() { emptySince = nil }

    static func make(_ id: IdentityID, for event: PersonEvent, _ turn: inout Turn) -> Person? {
        switch event {
        case .arrived(_, _, _, let record, _, _): return Person(id: id, record: record, turn)
        case .lookedUp(let record):
            // Not here, and worth remembering for a while.
            var person = Person(id: id, record: record, turn)
            person.emptySince = turn.now
            return person
        default: return nil
        }
    }

    /// On some device whose line is not down.
    private var isThere: Bool { devices.values.contains { $0.isPresent && !$0.isDropped } }

    var nextTimeout: Timestamp? {
        var next = emptySince.map { $0 + rememberedFor }
        if case .penalised(_, let until) = activity { next = next.map { min($0, until) } ?? until }
        if let codeUntil { next = next.map { min($0, codeUntil) } ?? codeUntil }
        return next
    }

    mutating func handleTimeout(_ turn: inout Turn) {
        if let since = emptySince, since + rememberedFor <= turn.now, devices.isEmpty { emptySince = nil }
        if let until = codeUntil, until <= turn.now { codeUntil = nil }
        if case .penalised(let search, let until) = activity, until <= turn.now { enter(search, &turn) }
    }

    mutating func handle(_ event: PersonEvent, _ turn: inout Turn) {
        let wasThere = isThere
        act(on: event, &turn)
        turn.figures.present += (isThere ? 1 : 0) - (wasThere ? 1 : 0)
    }

    private mutating func act(on event: PersonEvent, _ turn: inout Turn) {
        if isDeleted {
            if case .departed(let client) = event { devices[client] = nil }
            return
        }
        let (before, callBefore, outwardBefore) = (state, heldCall, outward)
        switch event {
        case .arrived(let client, let address, let name, _, let home, let device):
            if devices.isEmpty { inquireAfterContacts(&turn) }
            devices[client] = Device(address: address, name: name, home: home, identity: device ?? id)
            emptySince = nil
        case .dropped(let client): drop(client, &turn)
        case .returned(let client): returned(client, &turn)
        case .departed(let client): depart(client, &turn)
        case .verb(let client, let re, let message):
            perform(message, Request(client, re), &turn)
        case .asked(let client, let request):
            perform(request, by: client, &turn)
        case .reserve(let match, let partner): reserve(match, with: partner, &turn)
        case .release(let match): release(match)
        case .queueFull: queueFull(&turn)
        case .matched(let matched, let partner): begin(matched, with: partner, &turn)
        case .matchEnded(let match, let reason): ended(match, reason, &turn)
        case .partnerAway(let match, let isAway): partnerAway(match, isAway, &turn)
        case .lookedUp: break
        case .unbanned: ban = nil
        case .banned(let ban): banned(ban, &turn)
        case .introduced(let introduction, let other):
            introduced(introduction, to: other, &turn)
        case .presence(let event): handle(event, &turn)
        case .call(let event): handle(event, &turn)
        case .contact(let event): handle(event, &turn)
        }
        report(before, &turn)
        reportCall(callBefore, &turn)
        report(outwardBefore, &turn)
    }

    // MARK: What the device is told

    /// The roulette's state as snapshots tell it, with the device it concerns.
    private var state: (client: ConnectionID, roulette: Snapshot.Roulette)? {
        guard let search else { return nil }
        if case .chatting(_, let chat) = activity {
            return (search.client, Snapshot.Roulette(state: .matched, match: chat.match))
        }
        return (search.client, Snapshot.Roulette(state: .waiting))
    }

    var search: Search? {
        switch activity {
        case .idle: nil
        case .penalised(let search, _), .waiting(let search), .reserved(let search, _), .chatting(let search, _),
            .away(let search):
            search
        }
    }

    private func report(_ before: (client: ConnectionID, roulette: Snapshot.Roulette)?, _ turn: inout Turn) {
        let after = state
        if let before, before.client != after?.client {
            turn.tell(.client(before.client, .roulette(Snapshot.Roulette())))
        }
        if let after, before?.client != after.client || before?.roulette != after.roulette {
            turn.tell(.client(after.client, .roulette(after.roulette)))
        }
    }

    // MARK: Devices

    private mutating func drop(_ client: ConnectionID, _ turn: inout Turn) {
        devices[client]?.isDropped = true
        if devices[client]?.isWatching ?? false { turn.tell(.directory(.viewerAway(client, true))) }
        callDeviceDropped(client, &turn)
        guard let search, search.client == client else { return }
        switch activity {
        case .waiting, .reserved:
            turn.tell(.pool(.withdraw(id)))
            activity = .away(search)
        case .penalised: activity = .away(search)
        case .chatting(_, let chat): turn.tell(.match(chat.match, .away(id, true)))
        case .idle, .away: break
        }
    }

    private mutating func returned(_ client: ConnectionID, _ turn: inout Turn) {
        devices[client]?.isDropped = false
        if devices[client]?.isWatching ?? false { turn.tell(.directory(.viewerAway(client, false))) }
        callDeviceReturned(client, &turn)
        guard let search, search.client == client else { return }
        switch activity {
        case .away: resumeSearch(search, re: nil, &turn)
        case .chatting(_, let chat): turn.tell(.match(chat.match, .away(id, false)))
        case .idle, .penalised, .waiting, .reserved: break
        }
    }

    private mutating func depart(_ client: ConnectionID, _ turn: inout Turn) {
        guard let device = devices.removeValue(forKey: client) else { return }
        if device.isWatching { turn.tell(.directory(.unwatch(client))) }
        callDeviceDeparted(client, wasDropped: device.isDropped, &turn)
        if search?.client == client { stopSearching(.partnerLeft, &turn) }
        // Blocks are on disk; an identity that never met anybody leaves nothing behind, nor does one that cannot come back.
        let isWorthIt =
            !recentChats.isEmpty || !skips.isEmpty || lastPartner != nil || trail != nil || calls.isWorthRemembering
            || !meetings.isEmpty
        if devices.isEmpty, device.home == nil, isWorthIt { emptySince = turn.now }
    }

    private mutating func banned(_ ban: Ban, _ turn: inout Turn) {
        self.ban = ban.isActive(at: turn.now) ? ban : nil
        guard let error = banError(now: turn.now) else { return }
        if let search, case .chatting(_, let chat) = activity {
            turn.send(.ended(Ended(match: chat.match, reason: .banned)), to: search.client)
        }
        stopSearching(.banned, &turn)
        endAllCalls(.willingly, &turn)
        for client in devices.keys.sorted() { turn.tell(.client(client, .expel(error, .forbidden))) }
    }

    func banError(now: Timestamp) -> WireError? {
        guard let ban, ban.isActive(at: now) else { return nil }
        return .banned(ban, now: now)
    }
}

extension WireError {
    /// What somebody banned is told.
    public static func banned(_ ban: Ban, now: Timestamp) -> WireError {
        guard let end = ban.expiresAt else {
            return WireError(.banned, "You were banned from this server.")
        }
        let left = end - now
        return WireError(
            .banned, "You were banned from this server; come back in \(left.inWords).", retryable: true,
            retryAfter: left
        )
    }
}

extension Duration {
    /// Rounded up to a unit that a person would use.
    var inWords: String {
        let seconds = Swift.max(1, (wholeMilliseconds + 999) / 1000)
        let units: [(Int64, String)] = [(86_400, "day"), (3600, "hour"), (60, "minute"), (1, "second")]
        let (size, unit) = units.first { seconds >= $0.0 } ?? (1, "second")
        let count = (seconds + size - 1) / size
        return "\(count) \(unit)\(count == 1 ? "" : "s")"
    }
}
