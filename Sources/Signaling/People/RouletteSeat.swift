import Wire

/// A person's current activity in the roulette, and its recent history there.
///
/// Invariant: a person has at most one pool entry and at most one match at any time, both on the same device.
struct RouletteSeat: Equatable, Sendable {
    /// Maximum number of recent chats kept, so that a partner who skipped quickly can still be reported. In practice the report
    /// window limits them first.
    private static let maxRecentChats = 8

    private var activity = Activity.idle
    /// Chats that ended recently and can still be reported, newest last.
    private var recentChats: [Chat] = []
    private var lastPartner: IdentityID?
    /// The times at which this person skipped a chat, within the skip period.
    private var skips: [Timestamp] = []
    private var penaltyUntil: Timestamp?
    private var reports: Budget?
    /// The device's address, if it has changed since this person entered the queue.
    private var newAddress: String?

    var isIdle: Bool { activity == .idle }
    var isChatting: Bool { if case .chatting = activity { true } else { false } }
    var hasStateToKeep: Bool { !recentChats.isEmpty || !skips.isEmpty || lastPartner != nil }

    var search: Search? {
        switch activity {
        case .idle: nil
        case .penalized(let search, _), .waiting(let search), .reserved(let search, _), .chatting(let search, _),
            .away(let search):
            search
        }
    }

    /// The roulette state for the snapshot, and the device that is searching or chatting.
    var state: (client: ConnectionID, roulette: Snapshot.Roulette)? {
        guard let search else { return nil }
        if case .chatting(_, let chat) = activity {
            return (search.client, Snapshot.Roulette(state: .matched, match: chat.match))
        }
        return (search.client, Snapshot.Roulette(state: .waiting))
    }

    /// Returns the chat that a report or block refers to: the chat with this match id, or without an id the current or most
    /// recent chat.
    func chat(_ match: MatchID?, _ turn: Turn) -> Chat? {
        var candidates: [Chat] = []
        if case .chatting(_, let chat) = activity { candidates.append(chat) }
        candidates += recentChats.reversed().filter { turn.now - ($0.ended ?? turn.now) <= turn.rules.reportWindow }
        return match.map { match in candidates.first { $0.match == match } } ?? candidates.first
    }

    // MARK: Time

    var nextTimeout: Timestamp? {
        if case .penalized(_, let until) = activity { until } else { nil }
    }

    mutating func handleTimeout(_ facts: Facts, _ turn: inout Turn) {
        if case .penalized(let search, let until) = activity, until <= turn.now { enter(search, facts, &turn) }
    }

    // MARK: Searching

    mutating func start(_ start: RouletteVerb.Start, _ request: Request, _ facts: Facts, _ turn: inout Turn) {
        let wanted: Search
        do throws(WireError) {
            wanted = try search(start, request.client, facts, turn)
        } catch {
            return turn.fail(error, request)
        }
        if let search, search.client != request.client {
            interrupt("You started searching in another tab. Press Start to search here instead.", facts, &turn)
        }
        switch activity {
        case .chatting: turn.ok(request)
        case .waiting(let search) where search == wanted:
            turn.send(.roulette(.waiting(.init(re: request.re))), to: request.client)
        case .waiting, .reserved:
            // The settings changed, so replace the pool entry with a new one at the end of the queue.
            turn.tell(.pool(.withdraw(facts.id)))
            resume(wanted, re: request.re, facts, &turn)
        case .idle, .penalized, .away: resume(wanted, re: request.re, facts, &turn)
        }
    }

    /// Returns the search to start; throws if this person may not search now.
    private func search(
        _ start: RouletteVerb.Start, _ client: ConnectionID, _ facts: Facts, _ turn: Turn
    ) throws(WireError) -> Search {
        if let error = facts.banError(turn.wallNow) { throw error }
        guard !facts.isCalling else { throw WireError(.elsewhere, "You are in a call. End it first.") }
        let limit = turn.rules.maxInterests
        guard let interests = Interests.normalized(start.interests ?? [], limit: limit) else {
            throw WireError(
                .invalidInterests, "Send at most \(limit) interests of up to \(Limits.interest) characters each.")
        }
        // Only one device may search or chat. This device takes over if the other device has lost its connection.
        if let search, search.client != client, facts.devices.isLive(search.client) {
            throw WireError(.elsewhere, "You are searching or chatting in another tab. Stop there first.")
        }
        return Search(
            client: client, mode: start.mode ?? .video, interests: interests,
            name: facts.devices[client]?.name.shown(or: start.name) ?? ""
        )
    }

    /// Waits for a penalty to end or enters the queue immediately, and notifies the device.
    private mutating func resume(_ search: Search, re: UInt64?, _ facts: Facts, _ turn: inout Turn) {
        let isLive = facts.devices.isLive(search.client)
        if let until = penaltyUntil, turn.now < until {
            turn.send(
                .roulette(.waiting(.init(re: re, retryAfter: until - turn.now))), to: search.client)
            activity = isLive ? .penalized(search, until: until) : .away(search)
            return
        }
        turn.send(.roulette(.waiting(.init(re: re))), to: search.client)
        if isLive { enter(search, facts, &turn) } else { activity = .away(search) }
    }

    private mutating func enter(_ search: Search, _ facts: Facts, _ turn: inout Turn) {
        activity = .waiting(search)
        newAddress = nil
        let device = facts.devices[search.client]
        let entry = PoolEntry(
            identity: facts.id, mode: search.mode, interests: search.interests, name: search.name,
            address: device?.address ?? "", excluded: facts.blocks.all, lastPartner: lastPartner, home: device?.home
        )
        turn.tell(.pool(.enter(entry)))
    }

    mutating func queueFull(_ turn: inout Turn) {
        guard case .waiting(let search) = activity else { return }
        activity = .idle
        let error = WireError(
            .queueFull, "Too many people from your network are waiting. Try again in a minute.", retryable: true,
            retryAfter: .seconds(60)
        )
        turn.fail(error, re: nil, to: search.client)
    }

    // MARK: Matching

    mutating func reserve(_ match: MatchID, with partner: IdentityID, _ facts: Facts, _ turn: inout Turn) {
        guard case .waiting(let search) = activity, !facts.blocks.contains(partner), partner != facts.id,
            facts.banError(turn.wallNow) == nil
        else { return turn.tell(.pool(.refused(match, facts.id))) }
        activity = .reserved(search, match)
        turn.tell(.pool(.reserved(match, facts.id)))
    }

    mutating func release(_ match: MatchID) {
        guard case .reserved(let search, match) = activity else { return }
        activity = .waiting(search)
    }

    mutating func begin(
        _ matched: RouletteNotice.Matched, with partner: Partner, of id: IdentityID, _ turn: inout Turn
    ) {
        guard case .reserved(let search, matched.match) = activity else {
            // The person left between the reservation and the match. Release the partner.
            return turn.tell(.match(matched.match, .leave(id, .partnerLeft)))
        }
        let chat = Chat(
            match: matched.match, partner: partner.identity, partnerAddress: partner.address,
            session: matched.publish.session, began: turn.now)
        activity = .chatting(search, chat)
        lastPartner = partner.identity
        if let newAddress { turn.tell(.match(chat.match, .moved(id, address: newAddress))) }
        turn.send(.roulette(.matched(matched)), to: search.client)
    }

    func partnerAway(_ match: MatchID, _ isAway: Bool, _ turn: inout Turn) {
        guard case .chatting(let search, let chat) = activity, chat.match == match else { return }
        let state = RouletteNotice.Partner(match: match, state: isAway ? .reconnecting : .connected)
        turn.send(.roulette(.partner(state)), to: search.client)
    }

    mutating func partnerMoved(_ match: MatchID, to address: String) {
        guard case .chatting(let search, var chat) = activity, chat.match == match else { return }
        chat.partnerAddress = address
        activity = .chatting(search, chat)
    }

    /// Handles a chat that the partner ended. Searches again, except for legacy clients, which request the next partner
    /// themselves after they have left the old session.
    mutating func ended(_ match: MatchID, _ reason: EndReason, _ facts: Facts, _ turn: inout Turn) {
        guard case .chatting(let search, let chat) = activity, chat.match == match else { return }
        remember(chat, turn.now)
        turn.send(.roulette(.ended(.init(match: match, reason: reason))), to: search.client)
        activity = .idle
        guard facts.devices[search.client]?.home == nil else { return }
        resume(search, re: nil, facts, &turn)
    }

    // MARK: Ending chats

    mutating func next(_ verb: RouletteVerb.MatchReference, _ request: Request, _ facts: Facts, _ turn: inout Turn) {
        guard let search, search.client == request.client else { return notMatched(request, &turn) }
        switch activity {
        case .chatting(_, let chat) where verb.match.map({ $0 != chat.match }) ?? false:
            // The request names an earlier match, so the current chat continues.
            turn.ok(request)
        case .chatting(_, let chat):
            endChat(chat, .next, facts.id, &turn)
            turn.send(.roulette(.ended(.init(match: chat.match, reason: .next))), to: request.client)
            resume(search, re: request.re, facts, &turn)
        case .penalized(_, let until):
            turn.send(
                .roulette(.waiting(.init(re: request.re, retryAfter: until - turn.now))),
                to: request.client)
        case .idle, .waiting, .reserved, .away:
            turn.send(.roulette(.waiting(.init(re: request.re))), to: request.client)
        }
    }

    mutating func stop(_ request: Request, _ facts: Facts, _ turn: inout Turn) {
        if search?.client == request.client { stop(.stopped, notifies: true, facts, &turn) }
        turn.ok(request)
    }

    /// Stops the search or chat because another activity takes precedence, and notifies the device on which it took place. A
    /// disconnected device receives the message when it reconnects.
    mutating func interrupt(_ why: String, _ facts: Facts, _ turn: inout Turn) {
        guard let search else { return }
        if !isChatting { turn.fail(WireError(.elsewhere, why), re: nil, to: search.client) }
        stop(.stopped, notifies: true, facts, &turn)
    }

    /// Leaves the queue or the match and becomes `idle`, from any state.
    ///
    /// - Parameter notifies: whether to notify the device that its chat ended.
    mutating func stop(_ reason: EndReason, notifies: Bool, _ facts: Facts, _ turn: inout Turn) {
        switch activity {
        case .chatting(let search, let chat):
            if notifies {
                turn.send(.roulette(.ended(.init(match: chat.match, reason: reason))), to: search.client)
            }
            endChat(chat, reason, facts.id, &turn)
        case .waiting, .reserved: turn.tell(.pool(.withdraw(facts.id)))
        case .idle, .penalized, .away: break
        }
        activity = .idle
    }

    private mutating func endChat(_ chat: Chat, _ reason: EndReason, _ id: IdentityID, _ turn: inout Turn) {
        turn.tell(.match(chat.match, .leave(id, reason)))
        remember(chat, turn.now)
        activity = .idle
        if reason != .blocked, reason != .banned { countSkip(of: chat, turn) }
    }

    private mutating func remember(_ chat: Chat, _ now: Timestamp) {
        var chat = chat
        chat.ended = now
        recentChats.append(chat)
        if recentChats.count > Self.maxRecentChats { recentChats.removeFirst() }
    }

    /// Counts a skip if the chat ended within `skipWindow`. From the third skip in `skipPeriod` on, the person must wait 2, 4,
    /// … 60 s before the next search.
    private mutating func countSkip(of chat: Chat, _ turn: Turn) {
        let now = turn.now
        guard now - chat.began < turn.rules.skipWindow else { return }
        skips.removeAll { now - $0 >= turn.rules.skipPeriod }
        skips.append(now)
        guard skips.count >= turn.rules.skipsBeforeWait else { return }
        // Limit the exponent to avoid overflow. The longest wait is reached far earlier.
        let doublings = min(skips.count - turn.rules.skipsBeforeWait, 16)
        penaltyUntil = now + min(turn.rules.firstSkipWait * (1 << doublings), turn.rules.longestSkipWait)
        // Keep the list short, because more than 32 skips do not make the wait longer.
        if skips.count > 32 { skips.removeFirst() }
    }
}

// MARK: - Reporting and blocking

extension RouletteSeat {
    func notMatched(_ request: Request, _ turn: inout Turn) {
        turn.fail(WireError(.notMatched, "You are not in a chat. Start one first."), request)
    }

    mutating func report(_ verb: RouletteVerb.Report, _ request: Request, by facts: Facts, _ turn: inout Turn) {
        guard let chat = chat(verb.match, turn) else { return notMatched(request, &turn) }
        // Store only one report per chat. A second report of the same chat is accepted but ignored.
        guard !chat.isReported else { return turn.ok(request) }
        if let wait = reports.take(turn.rules.reports, now: turn.now) {
            let error = WireError(
                .rateLimited, "Too many reports. Try again later. You can still block people.", retryable: true,
                retryAfter: wait
            )
            return turn.fail(error, request)
        }
        markReported(chat.match)
        let report = Report(
            match: chat.match, by: facts.id, against: chat.partner, reason: verb.reason, lines: [],
            createdAt: turn.wallNow,
            byAddress: facts.devices[request.client]?.address ?? "", againstAddress: chat.partnerAddress)
        turn.tell(.session(chat.session, .report(report, by: request.client, re: request.re)))
    }

    private mutating func markReported(_ match: MatchID) {
        if case .chatting(let search, var chat) = activity, chat.match == match {
            chat.isReported = true
            activity = .chatting(search, chat)
        }
        for index in recentChats.indices where recentChats[index].match == match {
            recentChats[index].isReported = true
        }
    }

    /// Ends the current chat if the partner is this blocked person. Compares people rather than match ids, because the two may
    /// have been matched again.
    ///
    /// - Parameter request: a request to answer, if any.
    mutating func endChat(
        withBlocked other: IdentityID, _ request: Request?, _ facts: Facts, _ turn: inout Turn
    ) {
        guard case .chatting(let search, let chat) = activity, chat.partner == other else {
            if let request { turn.ok(request) }
            return
        }
        endChat(chat, .blocked, facts.id, &turn)
        if let request { turn.ok(request) }
        turn.send(.roulette(.ended(.init(match: chat.match, reason: .blocked))), to: search.client)
        resume(search, re: nil, facts, &turn)
    }
}

// MARK: - Devices

extension RouletteSeat {
    mutating func dropped(_ client: ConnectionID, of id: IdentityID, _ turn: inout Turn) {
        guard let search, search.client == client else { return }
        switch activity {
        case .waiting, .reserved:
            turn.tell(.pool(.withdraw(id)))
            activity = .away(search)
        case .penalized: activity = .away(search)
        case .chatting(_, let chat): turn.tell(.match(chat.match, .away(id, true)))
        case .idle, .away: break
        }
    }

    mutating func returned(_ client: ConnectionID, _ facts: Facts, _ turn: inout Turn) {
        guard let search, search.client == client else { return }
        switch activity {
        case .away: resume(search, re: nil, facts, &turn)
        case .chatting(_, let chat): turn.tell(.match(chat.match, .away(facts.id, false)))
        case .idle, .penalized, .waiting, .reserved: break
        }
    }

    /// Passes the device's new address on to the partner, for a report. The queue's limit per address still counts the
    /// old address.
    mutating func moved(_ client: ConnectionID, to address: String, of id: IdentityID, _ turn: inout Turn) {
        guard let search, search.client == client else { return }
        newAddress = address
        if case .chatting(_, let chat) = activity { turn.tell(.match(chat.match, .moved(id, address: address))) }
    }

    mutating func departed(_ client: ConnectionID, _ facts: Facts, _ turn: inout Turn) {
        if search?.client == client { stop(.partnerLeft, notifies: false, facts, &turn) }
    }

    /// Handles a request of a legacy client. Legacy clients request each new partner themselves, so the end of a chat does not
    /// start a new search.
    mutating func perform(
        _ request: RouletteTokRequest, by client: ConnectionID, _ facts: Facts, _ turn: inout Turn
    ) {
        switch (request, activity) {
        case (.next, .chatting(let search, let chat)):
            // Do not notify the client of the end of this chat. Otherwise it would request yet another partner and lose the one
            // found by this request.
            endChat(chat, .next, facts.id, &turn)
            resume(search, re: nil, facts, &turn)
        case (.next, .penalized), (.next, .waiting), (.next, .reserved):
            turn.send(.roulette(.waiting(.init())), to: client)
        case (.next, .idle), (.next, .away):
            // Do the same as for `roulette.start` without settings.
            resume(Search(client: client, mode: .video, interests: [], name: ""), re: nil, facts, &turn)
        case (.disconnectPartners, .chatting(_, let chat)):
            endChat(chat, .next, facts.id, &turn)
            turn.send(.roulette(.ended(.init(match: chat.match, reason: .stopped))), to: client)
        // The request is a duplicate, or refers to a chat that the partner has just ended. It must not end the next chat.
        case (.disconnectPartners, _): return
        }
    }
}
