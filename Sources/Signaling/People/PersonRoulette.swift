import Wire

/// A person's side of the roulette: searching, being reserved, chatting, skipping, blocking and reporting.
extension Person {
    /// Quick skippers can be reported as well; the window of time is the real bound.
    private static let mostRecentChats = 8

    mutating func perform(_ message: ClientMessage, _ request: Request, _ turn: inout Turn) {
        switch message {
        case .start(let start): self.start(start, request, &turn)
        case .next(let verb): next(verb, request, &turn)
        case .stop: stop(request, &turn)
        case .report(let report): self.report(report, request, &turn)
        case .block(let block): self.block(block, request, &turn)
        case .presence(let verb):
            perform(verb, request, &turn)
        case .nearby(let verb): perform(verb, request, &turn)
        case .call(let verb): perform(verb, request, &turn)
        case .contact(let verb): perform(verb, request, &turn)
        default: turn.fail(WireError(.unknownType, "A person does not know this."), request)
        }
    }

    // MARK: Searching

    private mutating func start(_ start: Start, _ request: Request, _ turn: inout Turn) {
        if let error = banError(now: turn.now) { return turn.fail(error, request) }
        guard !calls.isBusy else {
            let error = WireError(.elsewhere, "You are in a call; end it first.")
            return turn.fail(error, request)
        }
        guard let interests = Interests.normalised(start.interests ?? [], limit: turn.rules.maxInterests) else {
            let error = WireError(
                .invalidInterests,
                "At most \(turn.rules.maxInterests) interests of at most \(Limits.interest) characters each."
            )
            return turn.fail(error, request)
        }
        if let search, search.client != request.client {
            // A device that dropped cannot be asked; whoever is here now goes first.
            guard devices[search.client]?.isDropped ?? true else {
                let error = WireError(.elsewhere, "You are searching or chatting in another tab; stop there first.")
                return turn.fail(error, request)
            }
            leaveRoulette("You search in another tab now; press Start to search here.", &turn)
        }
        let wanted = Search(
            client: request.client, mode: start.mode ?? .video, interests: interests,
            name: devices[request.client]?.name.spoken(or: start.name) ?? ""
        )
        switch activity {
        case .chatting: turn.ok(request)
        case .waiting(let search) where search == wanted:
            turn.send(.waiting(Waiting(re: request.re)), to: request.client)
        case .waiting, .reserved:
            // Other interests: a new entry, at the end.
            turn.tell(.pool(.withdraw(id)))
            resumeSearch(wanted, re: request.re, &turn)
        case .idle, .penalised, .away: resumeSearch(wanted, re: request.re, &turn)
        }
    }

    /// Waits out a penalty, or enters the queue at once; tells the device which.
    mutating func resumeSearch(_ search: Search, re: UInt64?, _ turn: inout Turn) {
        if let until = penaltyUntil, turn.now < until {
            turn.send(.waiting(Waiting(re: re, retryAfter: until - turn.now)), to: search.client)
            activity = devices[search.client]?.isDropped ?? true ? .away(search) : .penalised(search, until: until)
            return
        }
        turn.send(.waiting(Waiting(re: re)), to: search.client)
        if devices[search.client]?.isDropped ?? true {
            activity = .away(search)
        } else {
            enter(search, &turn)
        }
    }

    mutating func enter(_ search: Search, _ turn: inout Turn) {
        activity = .waiting(search)
        let entry = PoolEntry(
            identity: id, mode: search.mode, interests: search.interests, name: search.name,
            address: devices[search.client]?.address ?? "", excluded: blockedSet, lastPartner: lastPartner,
            home: devices[search.client]?.home
        )
        turn.tell(.pool(.enter(entry)))
    }

    mutating func queueFull(_ turn: inout Turn) {
        guard case .waiting(let search) = activity else { return }
        activity = .idle
        let error = WireError(
            .queueFull, "Too many people wait from your network; try again in a minute.", retryable: true,
            retryAfter: .seconds(60)
        )
        turn.fail(error, re: nil, to: search.client)
    }

    // MARK: Being paired

    mutating func reserve(_ match: MatchID, with partner: IdentityID, _ turn: inout Turn) {
        guard case .waiting(let search) = activity, !blockedSet.contains(partner), partner != id,
            banError(now: turn.now) == nil
        else { return turn.tell(.pool(.refused(match, id))) }
        activity = .reserved(search, match)
        turn.tell(.pool(.reserved(match, id)))
    }

    mutating func release(_ match: MatchID) {
        guard case .reserved(let search, match) = activity else { return }
        activity = .waiting(search)
    }

    mutating func begin(_ matched: Matched, with partner: IdentityID, _ turn: inout Turn) {
        guard case .reserved(let search, matched.match) = activity else {
            // Left between the reservation and the match: the other must not wait for nobody.
            return turn.tell(.match(matched.match, .leave(id, .partnerLeft)))
        }
        let chat = Chat(match: matched.match, partner: partner, session: matched.publish.session, began: turn.now)
        activity = .chatting(search, chat)
        lastPartner = partner
        turn.send(.matched(matched), to: search.client)
    }

    mutating func partnerAway(_ match: MatchID, _ isAway: Bool, _ turn: inout Turn) {
        guard case .chatting(let search, let chat) = activity, chat.match == match else { return }
        let state = PartnerState(match: match, state: isAway ? .reconnecting : .connected)
        turn.send(.partner(state), to: search.client)
    }

    /// The other ended it: search again, as RouletteTok's clients do. These ask for it themselves, when they have left the
    /// partner's session.
    mutating func ended(_ match: MatchID, _ reason: EndReason, _ turn: inout Turn) {
        guard case .chatting(let search, let chat) = activity, chat.match == match else { return }
        remember(chat, now: turn.now)
        turn.send(.ended(Ended(match: match, reason: reason)), to: search.client)
        activity = .idle
        guard devices[search.client]?.home == nil else { return }
        resumeSearch(search, re: nil, &turn)
    }

    // MARK: Ending it oneself

    private mutating func next(_ verb: OfMatch, _ request: Request, _ turn: inout Turn) {
        guard let search, search.client == request.client else { return notMatched(request, &turn) }
        switch activity {
        case .chatting(_, let chat) where verb.match.map({ $0 != chat.match }) ?? false:
            // It was pressed for a match that was over already: the new partner is not to suffer for it.
            turn.ok(request)
        case .chatting(_, let chat):
            leave(chat, .next, &turn)
            turn.send(.ended(Ended(match: chat.match, reason: .next)), to: request.client)
            resumeSearch(search, re: request.re, &turn)
        case .penalised(_, let until):
            turn.send(.waiting(Waiting(re: request.re, retryAfter: until - turn.now)), to: request.client)
        case .idle, .waiting, .reserved, .away:
            turn.send(.waiting(Waiting(re: request.re)), to: request.client)
        }
    }

    private mutating func stop(_ request: Request, _ turn: inout Turn) {
        if let search, search.client == request.client {
            if case .chatting(_, let chat) = activity {
                turn.send(.ended(Ended(match: chat.match, reason: .stopped)), to: request.client)
            }
            stopSearching(.stopped, &turn)
        }
        turn.ok(request)
    }

    /// Something else goes first. The device that searched or chatted hears of it, if need be when it is back.
    mutating func leaveRoulette(_ why: String, _ turn: inout Turn) {
        guard let search else { return }
        if case .chatting(_, let chat) = activity {
            turn.send(.ended(Ended(match: chat.match, reason: .stopped)), to: search.client)
        } else {
            turn.fail(WireError(.elsewhere, why), re: nil, to: search.client)
        }
        stopSearching(.stopped, &turn)
    }

    /// To `idle` from anywhere, leaving queue or match behind in order.
    mutating func stopSearching(_ reason: EndReason, _ turn: inout Turn) {
        switch activity {
        case .chatting(_, let chat): leave(chat, reason, &turn)
        case .waiting, .reserved: turn.tell(.pool(.withdraw(id)))
        case .idle, .penalised, .away: break
        }
        activity = .idle
    }

    mutating func leave(_ chat: Chat, _ reason: EndReason, _ turn: inout Turn) {
        turn.tell(.match(chat.match, .leave(id, reason)))
        remember(chat, now: turn.now)
        activity = .idle
        if reason != .blocked, reason != .banned { countSkip(of: chat, now: turn.now, turn.rules) }
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

    private func notMatched(_ request: Request, _ turn: inout Turn) {
        turn.fail(WireError(.notMatched, "There is no chat; press Start first."), request)
    }

    /// The chat that a report or block is about: the one named, the present one, or the last one for a while.
    func chat(_ match: MatchID?, now: Timestamp, _ rules: Rules) -> Chat? {
        var candidates: [Chat] = []
        if case .chatting(_, let chat) = activity { candidates.append(chat) }
        candidates += recentChats.reversed().filter { now - ($0.ended ?? now) <= rules.reportWindow }
        return match.map { match in candidates.first { $0.match == match } } ?? candidates.first
    }

    private mutating func report(_ verb: ReportMatch, _ request: Request, _ turn: inout Turn) {
        guard let chat = chat(verb.match, now: turn.now, turn.rules) else { return notMatched(request, &turn) }
        // Once for each chat: saying it twice does not make it weigh more.
        guard !chat.isReported else { return turn.ok(request) }
        if let wait = reports.take(turn.rules.reports, now: turn.now) {
            let error = WireError(
                .rateLimited, "Too many reports; block people instead.", retryable: true, retryAfter: wait
            )
            return turn.fail(error, request)
        }
        markReported(chat.match)
        let report = Report(
            match: chat.match, by: id, against: chat.partner, reason: verb.reason, lines: [], createdAt: turn.now
        )
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

    private mutating func block(_ verb: OfMatch, _ request: Request, _ turn: inout Turn) {
        guard let chat = chat(verb.match, now: turn.now, turn.rules) else { return notMatched(request, &turn) }
        block(chat.partner, &turn)
        // By partner, not by match: the same two may be together again.
        guard case .chatting(let search, let current) = activity, current.partner == chat.partner else {
            return turn.ok(request)
        }
        leave(current, .blocked, &turn)
        turn.ok(request)
        turn.send(.ended(Ended(match: current.match, reason: .blocked)), to: search.client)
        resumeSearch(search, re: nil, &turn)
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
