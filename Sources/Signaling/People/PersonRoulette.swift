import Wire

/// A person's side of the roulette: searching, being reserved, chatting, skipping, blocking and reporting.
extension Person {
    /// Quick skippers can be reported as well; the window of time is the real bound.
    private static let mostRecentChats = 8

    mutating func perform(
        _ message: ClientMessage, by client: ConnectionID, re: UInt64, now: Timestamp, _ surroundings: Surroundings,
        into effects: inout [Effect]
    ) {
        let rules = surroundings.rules
        switch message {
        case .start(let start): self.start(start, by: client, re: re, now: now, rules, into: &effects)
        case .next(let verb): next(verb, by: client, re: re, now: now, rules, into: &effects)
        case .stop: stop(by: client, re: re, now: now, rules, into: &effects)
        case .report(let report): self.report(report, by: client, re: re, now: now, rules, into: &effects)
        case .block(let block): self.block(block, by: client, re: re, now: now, rules, into: &effects)
        case .presence(let verb):
            perform(verb, by: client, re: re, now: now, in: surroundings, into: &effects)
        case .nearby(let verb): perform(verb, by: client, re: re, now: now, in: surroundings, into: &effects)
        case .call(let verb): perform(verb, by: client, re: re, now: now, in: surroundings, into: &effects)
        case .contact(let verb): perform(verb, by: client, re: re, now: now, in: surroundings, into: &effects)
        default: effects.fail(WireError(.unknownType, "A person does not know this."), re: re, to: client)
        }
    }

    // MARK: Searching

    private mutating func start(
        _ start: Start, by client: ConnectionID, re: UInt64, now: Timestamp, _ rules: Rules,
        into effects: inout [Effect]
    ) {
        if let error = banError(now: now) { return effects.fail(error, re: re, to: client) }
        guard !calls.isBusy else {
            let error = WireError(.elsewhere, "You are in a call; end it first.")
            return effects.fail(error, re: re, to: client)
        }
        guard let interests = Interests.normalised(start.interests ?? [], limit: rules.maxInterests) else {
            let error = WireError(
                .invalidInterests,
                "At most \(rules.maxInterests) interests of at most \(Limits.interest) characters each."
            )
            return effects.fail(error, re: re, to: client)
        }
        if let search, search.client != client {
            // A device that dropped cannot be asked; whoever is here now goes first.
            guard devices[search.client]?.isDropped ?? true else {
                let error = WireError(.elsewhere, "You are searching or chatting in another tab; stop there first.")
                return effects.fail(error, re: re, to: client)
            }
            leaveRoulette("You search in another tab now; press Start to search here.", now: now, rules, into: &effects)
        }
        let wanted = Search(
            client: client, mode: start.mode ?? .video, interests: interests,
            name: devices[client]?.name.spoken(or: start.name) ?? ""
        )
        switch activity {
        case .chatting: effects.send(.ok(Answer(re: re)), to: client)
        case .waiting(let search) where search == wanted:
            effects.send(.waiting(Waiting(re: re)), to: client)
        case .waiting, .reserved:
            // Other interests: a new entry, at the end.
            effects.tell(.pool(.withdraw(id)))
            resumeSearch(wanted, re: re, now: now, into: &effects)
        case .idle, .penalised, .away: resumeSearch(wanted, re: re, now: now, into: &effects)
        }
    }

    /// Waits out a penalty, or enters the queue at once; tells the device which.
    mutating func resumeSearch(_ search: Search, re: UInt64?, now: Timestamp, into effects: inout [Effect]) {
        if let until = penaltyUntil, now < until {
            effects.send(.waiting(Waiting(re: re, retryAfter: until - now)), to: search.client)
            activity = devices[search.client]?.isDropped ?? true ? .away(search) : .penalised(search, until: until)
            return
        }
        effects.send(.waiting(Waiting(re: re)), to: search.client)
        if devices[search.client]?.isDropped ?? true {
            activity = .away(search)
        } else {
            enter(search, now: now, into: &effects)
        }
    }

    mutating func enter(_ search: Search, now: Timestamp, into effects: inout [Effect]) {
        activity = .waiting(search)
        let entry = PoolEntry(
            identity: id, mode: search.mode, interests: search.interests, name: search.name,
            address: devices[search.client]?.address ?? "", excluded: blockedSet, lastPartner: lastPartner,
            home: devices[search.client]?.home
        )
        effects.tell(.pool(.enter(entry)))
    }

    mutating func queueFull(into effects: inout [Effect]) {
        guard case .waiting(let search) = activity else { return }
        activity = .idle
        let error = WireError(
            .queueFull, "Too many people wait from your network; try again in a minute.", retryable: true,
            retryAfter: .seconds(60)
        )
        effects.fail(error, re: nil, to: search.client)
    }

    // MARK: Being paired

    mutating func reserve(_ match: MatchID, with partner: IdentityID, now: Timestamp, into effects: inout [Effect]) {
        guard case .waiting(let search) = activity, !blockedSet.contains(partner), partner != id,
            banError(now: now) == nil
        else { return effects.tell(.pool(.refused(match, id))) }
        activity = .reserved(search, match)
        effects.tell(.pool(.reserved(match, id)))
    }

    mutating func release(_ match: MatchID) {
        guard case .reserved(let search, match) = activity else { return }
        activity = .waiting(search)
    }

    mutating func begin(
        _ matched: Matched, with partner: IdentityID, now: Timestamp, into effects: inout [Effect]
    ) {
        guard case .reserved(let search, matched.match) = activity else {
            // Left between the reservation and the match: the other must not wait for nobody.
            return effects.tell(.match(matched.match, .leave(id, .partnerLeft)))
        }
        let chat = Chat(match: matched.match, partner: partner, session: matched.publish.session, began: now)
        activity = .chatting(search, chat)
        lastPartner = partner
        effects.send(.matched(matched), to: search.client)
    }

    mutating func partnerAway(_ match: MatchID, _ isAway: Bool, into effects: inout [Effect]) {
        guard case .chatting(let search, let chat) = activity, chat.match == match else { return }
        let state = PartnerState(match: match, state: isAway ? .reconnecting : .connected)
        effects.send(.partner(state), to: search.client)
    }

    /// The other ended it: search again, as RouletteTok's clients do. These ask for it themselves, when they have left the
    /// partner's session.
    mutating func ended(_ match: MatchID, _ reason: EndReason, now: Timestamp, into effects: inout [Effect]) {
        guard case .chatting(let search, let chat) = activity, chat.match == match else { return }
        remember(chat, now: now)
        effects.send(.ended(Ended(match: match, reason: reason)), to: search.client)
        activity = .idle
        guard devices[search.client]?.home == nil else { return }
        resumeSearch(search, re: nil, now: now, into: &effects)
    }

    // MARK: Ending it oneself

    private mutating func next(
        _ verb: OfMatch, by client: ConnectionID, re: UInt64, now: Timestamp, _ rules: Rules,
        into effects: inout [Effect]
    ) {
        guard let search, search.client == client else { return notMatched(re, client, into: &effects) }
        switch activity {
        case .chatting(_, let chat) where verb.match.map({ $0 != chat.match }) ?? false:
            // It was pressed for a match that was over already: the new partner is not to suffer for it.
            effects.send(.ok(Answer(re: re)), to: client)
        case .chatting(_, let chat):
            leave(chat, .next, now: now, rules, into: &effects)
            effects.send(.ended(Ended(match: chat.match, reason: .next)), to: client)
            resumeSearch(search, re: re, now: now, into: &effects)
        case .penalised(_, let until):
            effects.send(.waiting(Waiting(re: re, retryAfter: until - now)), to: client)
        case .idle, .waiting, .reserved, .away:
            effects.send(.waiting(Waiting(re: re)), to: client)
        }
    }

    private mutating func stop(
        by client: ConnectionID, re: UInt64, now: Timestamp, _ rules: Rules, into effects: inout [Effect]
    ) {
        if let search, search.client == client {
            if case .chatting(_, let chat) = activity {
                effects.send(.ended(Ended(match: chat.match, reason: .stopped)), to: client)
            }
            stopSearching(.stopped, now: now, rules, into: &effects)
        }
        effects.send(.ok(Answer(re: re)), to: client)
    }

    /// Something else goes first. The device that searched or chatted hears of it, if need be when it is back.
    mutating func leaveRoulette(
        _ why: String, now: Timestamp, _ rules: Rules, into effects: inout [Effect]
    ) {
        guard let search else { return }
        if case .chatting(_, let chat) = activity {
            effects.send(.ended(Ended(match: chat.match, reason: .stopped)), to: search.client)
        } else {
            effects.fail(WireError(.elsewhere, why), re: nil, to: search.client)
        }
        stopSearching(.stopped, now: now, rules, into: &effects)
    }

    /// To `idle` from anywhere, leaving queue or match behind in order.
    mutating func stopSearching(
        _ reason: EndReason, now: Timestamp, _ rules: Rules, into effects: inout [Effect]
    ) {
        switch activity {
        case .chatting(_, let chat): leave(chat, reason, now: now, rules, into: &effects)
        case .waiting, .reserved: effects.tell(.pool(.withdraw(id)))
        case .idle, .penalised, .away: break
        }
        activity = .idle
    }

    mutating func leave(
        _ chat: Chat, _ reason: EndReason, now: Timestamp, _ rules: Rules, into effects: inout [Effect]
    ) {
        effects.tell(.match(chat.match, .leave(id, reason)))
        remember(chat, now: now)
        activity = .idle
        if reason != .blocked, reason != .banned { countSkip(of: chat, now: now, rules) }
    }

    private mutating func remember(_ chat: Chat, now: Timestamp) {
        var chat = chat
        chat.ended = now
        recentChats.append(chat)
        if recentChats.count > Self.mostRecentChats { recentChats.removeFirst() }
    }

    /// Skips within `skipWindow` of being paired; from the third in `skipPeriod` on, waits of 2, 4, … 60 s.
    private mutating func countSkip(of chat: Chat, now: Timestamp, _ rules: Rules) {
        guard now - chat.began < rules.skipWindow else { return }
        skips.removeAll { now - $0 >= rules.skipPeriod }
        skips.append(now)
        guard skips.count >= rules.skipsBeforeWait else { return }
        // Beyond six doublings of any first wait the longest has been reached; the shift stays small.
        let doublings = min(skips.count - rules.skipsBeforeWait, 16)
        penaltyUntil = now + min(rules.firstSkipWait * (1 << doublings), rules.longestSkipWait)
        // More than this many make no difference, and a list must not grow.
        if skips.count > 32 { skips.removeFirst() }
    }

    // MARK: Reporting and blocking

    private func notMatched(_ re: UInt64, _ client: ConnectionID, into effects: inout [Effect]) {
        effects.fail(WireError(.notMatched, "There is no chat; press Start first."), re: re, to: client)
    }

    /// The chat that a report or block is about: the one named, the present one, or the last one for a while.
    func chat(_ match: MatchID?, now: Timestamp, _ rules: Rules) -> Chat? {
        var candidates: [Chat] = []
        if case .chatting(_, let chat) = activity { candidates.append(chat) }
        candidates += recentChats.reversed().filter { now - ($0.ended ?? now) <= rules.reportWindow }
        return match.map { match in candidates.first { $0.match == match } } ?? candidates.first
    }

    private mutating func report(
        _ verb: ReportMatch, by client: ConnectionID, re: UInt64, now: Timestamp, _ rules: Rules,
        into effects: inout [Effect]
    ) {
        guard let chat = chat(verb.match, now: now, rules) else { return notMatched(re, client, into: &effects) }
        // Once for each chat: saying it twice does not make it weigh more.
        guard !chat.isReported else { return effects.send(.ok(Answer(re: re)), to: client) }
        if let wait = reports.take(rules.reports, now: now) {
            let error = WireError(
                .rateLimited, "Too many reports; block people instead.", retryable: true, retryAfter: wait
            )
            return effects.fail(error, re: re, to: client)
        }
        markReported(chat.match)
        let report = Report(
            match: chat.match, by: id, against: chat.partner, reason: verb.reason, lines: [], createdAt: now
        )
        effects.tell(.session(chat.session, .report(report, by: client, re: re)))
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

    private mutating func block(
        _ verb: OfMatch, by client: ConnectionID, re: UInt64, now: Timestamp, _ rules: Rules,
        into effects: inout [Effect]
    ) {
        guard let chat = chat(verb.match, now: now, rules) else { return notMatched(re, client, into: &effects) }
        block(chat.partner, now: now, rules, into: &effects)
        // By partner, not by match: the same two may be together again.
        guard case .chatting(let search, let current) = activity, current.partner == chat.partner else {
            return effects.send(.ok(Answer(re: re)), to: client)
        }
        leave(current, .blocked, now: now, rules, into: &effects)
        effects.send(.ok(Answer(re: re)), to: client)
        effects.send(.ended(Ended(match: current.match, reason: .blocked)), to: search.client)
        resumeSearch(search, re: nil, now: now, into: &effects)
    }
}

/// Interests as people type them, made comparable.
enum Interests {
    /// Trimmed, case-folded, without repetitions; `nil` when there are too many or one is too long. `String` compares by
    /// canonical equivalence, so that "é" typed either way is one interest.
    static func normalised(_ interests: [String], limit: Int) -> [String]? {
        var result: [String] = []
        for interest in interests {
            let text = interest.split(whereSeparator: \.isWhitespace).joined(separator: " ").lowercased()
            // Small letters may take more bytes than the capitals did.
            guard text.count <= Limits.interest, text.utf8.count <= Limits.name else { return nil }
            if !text.isEmpty, !result.contains(text) { result.append(text) }
        }
        return result.count <= limit ? result : nil
    }
}

extension DeviceName {
    /// The name to show when somebody asks to be called `wish` now.
    func spoken(or wish: String?) -> String {
        switch self {
        case .vouched(let name): name
        case .chosen(let name): wish ?? name
        case .none: wish ?? ""
        }
    }
}
