import Cluster
import Wire

/// A person's current activity in the roulette, and the person's recent chats and skips.
///
/// Invariant: a person has at most one pool entry and at most one match at any time, both on the same device.
struct RouletteState: Equatable, Sendable {
    /// Maximum number of recent chats kept. They are kept so that a partner who skipped quickly can still be
    /// reported. In practice, the report window of a chat ends before this many further chats have taken place.
    private static let maxRecentChats = 8

    var activity = Activity.idle
    /// Chats that ended recently and can still be reported, newest last.
    private var recentChats: [Chat] = []
    private var lastPartner: IdentityID?
    /// The times at which this person skipped a chat, within the skip period.
    private var skips: [Timestamp] = []
    private var penaltyUntil: Timestamp?
    private var reports: Budget?
    /// The device's new address; nil if it has not changed since this person entered the queue.
    var newAddress: String?
    /// In a cluster, when to ask whether this person should wait on another node; nil if the person has been waiting on the right
    /// one, or does not wait.
    var hallAt: Timestamp?
    /// The other node whose pool this person waits or is reserved in; nil if it is this node, or if the person is in no pool.
    var hall: NodeTag?
    /// The time by which a reservation that involves another node must have become a match or been released; nil for other reservations.
    var reservedUntil: Timestamp?

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

    /// The roulette state that a resuming client receives in its `Snapshot`, and the device that is searching or
    /// chatting; nil while idle.
    var state: (client: ConnectionID, roulette: Snapshot.Roulette)? {
        guard let search else { return nil }
        if case .chatting(_, let chat) = activity {
            return (search.client, Snapshot.Roulette(state: .matched, match: chat.match))
        }
        return (search.client, Snapshot.Roulette(state: .waiting))
    }

    /// Returns the chat that a report or block refers to: the chat with this match id or, if there is no id, the
    /// current or most recent chat. Returns nil if there is none, or if it ended longer than `reportWindow` ago.
    func chat(_ match: MatchID?, _ context: Context) -> Chat? {
        var candidates: [Chat] = []
        if case .chatting(_, let chat) = activity { candidates.append(chat) }
        candidates += recentChats.reversed().filter {
            context.now - ($0.ended ?? context.now) <= context.rules.reportWindow
        }
        return match.map { match in candidates.first { $0.match == match } } ?? candidates.first
    }

    /// Whether the current chat or a recent one has this match id and this partner, who was on this node when it began.
    func hasMet(_ partner: IdentityID, on node: NodeTag, in match: MatchID) -> Bool {
        var chats = recentChats
        if case .chatting(_, let chat) = activity { chats.append(chat) }
        return chats.contains { $0.match == match && $0.partner == partner && $0.partnerNode == node }
    }

    // MARK: Time

    var nextTimeout: Timestamp? {
        switch activity {
        case .penalized(_, let until): until
        case .waiting: hallAt
        case .reserved: reservedUntil
        case .idle, .chatting, .away: nil
        }
    }

    mutating func handleTimeout(_ snapshot: PersonSnapshot, _ context: inout Context) {
        switch activity {
        case .penalized(let search, let until) where until <= context.now: enter(search, snapshot, &context)
        case .waiting:
            guard let hallAt, hallAt <= context.now else { return }
            self.hallAt = nil
            context.tell(.hall(snapshot.id))
        case .reserved(let search, _):
            guard let reservedUntil, reservedUntil <= context.now else { return }
            enterAgain(search, snapshot, &context)
        default: return
        }
    }

    // MARK: Searching

    mutating func start(
        _ start: RouletteVerb.Start, _ request: Request, _ snapshot: PersonSnapshot, _ context: inout Context
    ) {
        let wanted: Search
        do throws(WireError) {
            wanted = try search(start, request.client, snapshot, context)
        } catch {
            return context.fail(error, request)
        }
        if let search, search.client != request.client {
            interrupt(
                "You started searching in another tab or on another device. Press Start to search here instead.",
                snapshot, &context)
        }
        switch activity {
        case .chatting: context.ok(request)
        case .waiting(let search) where search == wanted:
            context.send(.roulette(.waiting(.init(re: request.re))), to: request.client)
        case .waiting, .reserved:
            // The settings changed, or the pool has reserved this person with the existing entry. Replace the entry
            // with a new one at the end of the queue.
            leavePool(snapshot.id, &context)
            resume(wanted, re: request.re, snapshot, &context)
        case .idle, .penalized, .away: resume(wanted, re: request.re, snapshot, &context)
        }
    }

    /// Returns the search to start. Throws if the interests are invalid, or if this person may not search on this
    /// device now.
    private func search(
        _ start: RouletteVerb.Start, _ client: ConnectionID, _ snapshot: PersonSnapshot, _ context: Context
    ) throws(WireError) -> Search {
        if let error = snapshot.banError(context.wallNow) { throw error }
        guard !snapshot.isCalling else { throw WireError(.elsewhere, "You are in a call. End it first.") }
        let limit = context.rules.maxInterests
        guard let interests = Interests.normalized(start.interests ?? [], limit: limit) else {
            throw WireError(
                .invalidInterests, "Send at most \(limit) interests of up to \(Limits.interest) characters each.")
        }
        // Only one device may search or chat. This device takes over if the other device has lost its connection.
        if let search, search.client != client, snapshot.devices.isLive(search.client) {
            throw WireError(
                .elsewhere, "You are searching or chatting in another tab or on another device. Stop there first.")
        }
        return Search(
            client: client, mode: start.mode ?? .video, interests: interests,
            name: snapshot.devices[client]?.name.shown(or: start.name) ?? ""
        )
    }

    /// Starts a search and notifies the device: enters the queue, or waits for a penalty to end or for the device to
    /// reconnect.
    mutating func resume(_ search: Search, re: UInt64?, _ snapshot: PersonSnapshot, _ context: inout Context) {
        let isLive = snapshot.devices.isLive(search.client)
        if let until = penaltyUntil, context.now < until {
            context.send(
                .roulette(.waiting(.init(re: re, retryAfter: until - context.now))), to: search.client)
            activity = isLive ? .penalized(search, until: until) : .away(search)
            return
        }
        context.send(.roulette(.waiting(.init(re: re))), to: search.client)
        if isLive { enter(search, snapshot, &context) } else { activity = .away(search) }
    }

    mutating func enter(_ search: Search, _ snapshot: PersonSnapshot, _ context: inout Context) {
        activity = .waiting(search)
        newAddress = nil
        context.tell(.pool(.enter(entry(of: search, snapshot, snapshot.blocks.all, context))))
        // A legacy client cannot be redirected, so it asks only if it might wait in the hall without moving.
        let asks = context.tag != nil && (context.spansNodes || !isLegacy(search, snapshot))
        hallAt = asks ? context.now + context.hallWait : nil
    }

    /// Whether this search is that of a legacy client.
    func isLegacy(_ search: Search, _ snapshot: PersonSnapshot) -> Bool {
        snapshot.devices[search.client]?.home != nil
    }

    /// Returns this person's entry for a pool.
    func entry(
        of search: Search, _ snapshot: PersonSnapshot, _ excluded: Set<IdentityID>, _ context: Context
    ) -> PoolEntry {
        let device = snapshot.devices[search.client]
        return PoolEntry(
            identity: snapshot.id, mode: search.mode, interests: search.interests, name: search.name,
            address: device?.address ?? "", excluded: excluded, lastPartner: lastPartner, home: device?.home,
            node: context.tag)
    }

    mutating func queueFull(of id: IdentityID, _ context: inout Context) {
        guard case .waiting(let search) = activity else { return }
        // Another node may have received the entry twice, and have had room for it the second time.
        if hall != nil { leavePool(id, &context) }
        activity = .idle
        let error = WireError(
            .queueFull, "Too many people from your network are waiting. Try again in a minute.", retryable: true,
            retryAfter: .seconds(60)
        )
        context.fail(error, re: nil, to: search.client)
    }

    // MARK: Matching

    /// - Parameter node: the partner's node; nil without a cluster.
    mutating func reserve(
        _ match: MatchID, with partner: IdentityID, at node: NodeTag?, _ snapshot: PersonSnapshot,
        _ context: inout Context
    ) {
        guard case .waiting(let search) = activity, !snapshot.blocks.contains(partner), partner != snapshot.id,
            snapshot.banError(context.wallNow) == nil
        else { return context.tell(.refused(match, snapshot.id), at: hall) }
        guard context.hasMedia(with: node) else { return refuseDistant(match, search, snapshot, &context) }
        activity = .reserved(search, match)
        let isDistant = hall != nil || context.tag.map { match.node(unless: $0) != nil } ?? false
        reservedUntil = isDistant ? context.now + context.rules.reservationTime * 2 : nil
        context.tell(.reserved(match, snapshot.id), at: hall)
    }

    mutating func release(_ match: MatchID, _ context: Context) {
        guard case .reserved(let search, match) = activity else { return }
        activity = .waiting(search)
        // The answer about the hall may have arrived meanwhile, when it could not be used.
        if context.spansNodes, hallAt == nil { hallAt = context.now + context.rules.hallRetry }
    }

    mutating func begin(
        _ matched: RouletteNotice.Matched, with partner: Partner, _ snapshot: PersonSnapshot, _ context: inout Context
    ) {
        let id = snapshot.id
        guard case .reserved(let search, matched.match) = activity else {
            // The person left between the reservation and the match. Release the partner.
            return context.tell(.match(matched.match, .leave(id, .partnerLeft)))
        }
        var chat = Chat(
            match: matched.match, partner: partner.identity, partnerAddress: partner.address,
            partnerNode: partner.node, session: matched.publish.session, began: context.now)
        if let tag = context.tag, !matched.match.isOn(tag), let home = snapshot.devices[search.client]?.home {
            // The match cannot open a session on another node.
            chat.home = home
            context.tell(.session(home, .matchOpened(matched.match.bound(to: tag), places: 1)))
        }
        activity = .chatting(search, chat)
        // The pool has removed the entry.
        hall = nil
        lastPartner = partner.identity
        if let newAddress { context.tell(.match(chat.match, .moved(id, address: newAddress))) }
        context.send(.roulette(.matched(matched)), to: search.client)
    }

    func partnerAway(_ match: MatchID, _ isAway: Bool, _ context: inout Context) {
        guard case .chatting(let search, let chat) = activity, chat.match == match else { return }
        let state = RouletteNotice.Partner(match: match, state: isAway ? .reconnecting : .connected)
        context.send(.roulette(.partner(state)), to: search.client)
    }

    mutating func partnerMoved(_ match: MatchID, to address: String) {
        guard case .chatting(let search, var chat) = activity, chat.match == match else { return }
        chat.partnerAddress = address
        activity = .chatting(search, chat)
    }

    /// Handles a chat that the partner ended. Searches again, except for legacy clients, which request the next partner
    /// themselves after they have left the old session.
    mutating func ended(_ match: MatchID, _ reason: EndReason, _ snapshot: PersonSnapshot, _ context: inout Context) {
        // The match is on another node, and its letter `matched` was lost.
        if case .reserved(let search, match) = activity { return enterAgain(search, snapshot, &context) }
        guard case .chatting(let search, let chat) = activity, chat.match == match else { return }
        remember(chat, search.mode, &context)
        context.send(.roulette(.ended(.init(match: match, reason: reason))), to: search.client)
        activity = .idle
        guard !isLegacy(search, snapshot) else { return }
        resume(search, re: nil, snapshot, &context)
    }

    // MARK: Ending chats

    mutating func next(
        _ verb: RouletteVerb.MatchReference, _ request: Request, _ snapshot: PersonSnapshot, _ context: inout Context
    ) {
        guard let search, search.client == request.client else { return notMatched(request, &context) }
        switch activity {
        case .chatting(_, let chat) where verb.match.map({ $0 != chat.match }) ?? false:
            // The request names an earlier match, so the current chat continues.
            context.ok(request)
        case .chatting(_, let chat):
            endChat(chat, .next, snapshot.id, &context)
            context.send(.roulette(.ended(.init(match: chat.match, reason: .next))), to: request.client)
            resume(search, re: request.re, snapshot, &context)
        case .penalized(_, let until):
            context.send(
                .roulette(.waiting(.init(re: request.re, retryAfter: until - context.now))),
                to: request.client)
        case .idle, .waiting, .reserved, .away:
            context.send(.roulette(.waiting(.init(re: request.re))), to: request.client)
        }
    }

    mutating func stop(_ request: Request, _ snapshot: PersonSnapshot, _ context: inout Context) {
        if search?.client == request.client { stop(.stopped, notifies: true, snapshot, &context) }
        context.ok(request)
    }

    /// Stops the search or chat because another activity takes precedence, and notifies the device on which it took place. A
    /// disconnected device receives the message when it reconnects.
    mutating func interrupt(_ why: String, _ snapshot: PersonSnapshot, _ context: inout Context) {
        guard let search else { return }
        if !isChatting { context.fail(WireError(.elsewhere, why), re: nil, to: search.client) }
        stop(.stopped, notifies: true, snapshot, &context)
    }

    /// Leaves the queue or the match and becomes `idle`, from any state.
    ///
    /// - Parameter notifies: whether to notify the device that its chat ended.
    mutating func stop(_ reason: EndReason, notifies: Bool, _ snapshot: PersonSnapshot, _ context: inout Context) {
        switch activity {
        case .chatting(let search, let chat):
            if notifies {
                context.send(.roulette(.ended(.init(match: chat.match, reason: reason))), to: search.client)
            }
            endChat(chat, reason, snapshot.id, &context)
        case .waiting, .reserved: leavePool(snapshot.id, &context)
        case .idle, .penalized, .away: break
        }
        activity = .idle
    }

    private mutating func endChat(_ chat: Chat, _ reason: EndReason, _ id: IdentityID, _ context: inout Context) {
        context.tell(.match(chat.match, .leave(id, reason)))
        remember(chat, search?.mode ?? .text, &context)
        activity = .idle
        if reason != .blocked, reason != .banned { countSkip(of: chat, context) }
    }

    private mutating func remember(_ chat: Chat, _ mode: ChatMode, _ context: inout Context) {
        if let tag = context.tag, let home = chat.home {
            context.tell(.session(home, .matchClosed(chat.match.bound(to: tag))))
        }
        countUnsampled(chat, mode, &context)
        var chat = chat
        chat.ended = context.now
        recentChats.append(chat)
        if recentChats.count > Self.maxRecentChats { recentChats.removeFirst() }
    }

    /// Counts a skip if the chat was shorter than `skipWindow`. With the default rules, starting with the third skip
    /// within `skipPeriod` the person must wait before the next search: 2 s, then 4 s, and so on up to 60 s.
    private mutating func countSkip(of chat: Chat, _ context: Context) {
        let now = context.now
        guard now - chat.began < context.rules.skipWindow else { return }
        skips.removeAll { now - $0 >= context.rules.skipPeriod }
        skips.append(now)
        guard skips.count >= context.rules.skipsBeforeWait else { return }
        // Limit the exponent to avoid overflow. The longest wait is reached far earlier.
        let doublings = min(skips.count - context.rules.skipsBeforeWait, 16)
        penaltyUntil = now + min(context.rules.firstSkipWait * (1 << doublings), context.rules.longestSkipWait)
        // Keep the list short, because more than 32 skips do not make the wait longer.
        if skips.count > 32 { skips.removeFirst() }
    }
}

// MARK: - Reporting and blocking

extension RouletteState {
    func notMatched(_ request: Request, _ context: inout Context) {
        context.fail(WireError(.notMatched, "You are not in a chat. Start one first."), request)
    }

    mutating func report(
        _ verb: RouletteVerb.Report, _ request: Request, by snapshot: PersonSnapshot, _ context: inout Context
    ) {
        guard let chat = chat(verb.match, context) else { return notMatched(request, &context) }
        // Store only one report per chat. A second report of the same chat is accepted but ignored.
        guard !chat.isReported else { return context.ok(request) }
        if let wait = reports.take(context.rules.reports, now: context.now) {
            let error = WireError(
                .rateLimited, "Too many reports. Try again later. You can still block people.", retryable: true,
                retryAfter: wait
            )
            return context.fail(error, request)
        }
        markReported(chat.match)
        let report = Report(
            match: chat.match, by: snapshot.id, against: chat.partner, reason: verb.reason, lines: [],
            createdAt: context.wallNow,
            byAddress: snapshot.devices[request.client]?.address ?? "", againstAddress: chat.partnerAddress)
        context.tell(.session(chat.session, .report(report, by: request.client, re: request.re)))
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

    /// Ends the current chat and searches again if the partner is this blocked person. Compares people rather than
    /// match ids, because the two may have been matched again.
    ///
    /// - Parameter request: the request to answer; nil if there is none.
    mutating func endChat(
        withBlocked other: IdentityID, _ request: Request?, _ snapshot: PersonSnapshot, _ context: inout Context
    ) {
        guard case .chatting(let search, let chat) = activity, chat.partner == other else {
            if let request { context.ok(request) }
            return
        }
        endChat(chat, .blocked, snapshot.id, &context)
        if let request { context.ok(request) }
        context.send(.roulette(.ended(.init(match: chat.match, reason: .blocked))), to: search.client)
        resume(search, re: nil, snapshot, &context)
    }
}

// MARK: - Devices

extension RouletteState {
    /// Passes the device's new address to the match, in case the partner reports this person. The queue's limit per
    /// address still counts the old address.
    mutating func moved(_ client: ConnectionID, to address: String, of id: IdentityID, _ context: inout Context) {
        guard let search, search.client == client else { return }
        newAddress = address
        if case .chatting(_, let chat) = activity { context.tell(.match(chat.match, .moved(id, address: address))) }
    }

    /// Handles a request of a legacy client. Legacy clients request each new partner themselves, so the end of a chat does not
    /// start a new search.
    mutating func perform(
        _ request: RouletteTokRequest, by client: ConnectionID, _ snapshot: PersonSnapshot, _ context: inout Context
    ) {
        switch (request, activity) {
        case (.next, .chatting(let search, let chat)):
            // Do not notify the client of the end of this chat. Otherwise the client would request yet another
            // partner and lose the one found by this request.
            endChat(chat, .next, snapshot.id, &context)
            resume(search, re: nil, snapshot, &context)
        case (.next, .penalized), (.next, .waiting), (.next, .reserved):
            context.send(.roulette(.waiting(.init())), to: client)
        case (.next, .idle), (.next, .away):
            // Start a search with default settings, as `roulette.start` does if it contains none.
            resume(Search(client: client, mode: .video, interests: [], name: ""), re: nil, snapshot, &context)
        case (.disconnectPartners, .chatting(_, let chat)):
            endChat(chat, .next, snapshot.id, &context)
            context.send(.roulette(.ended(.init(match: chat.match, reason: .stopped))), to: client)
        // The request is a duplicate, or refers to a chat that the partner has just ended. It must not end the next chat.
        case (.disconnectPartners, _): return
        }
    }
}
