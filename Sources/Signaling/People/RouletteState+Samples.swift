import Wire

/// What the verdict about a sample of this person's camera does in a chat. A verdict about an earlier chat does nothing.
extension RouletteState {
    /// The minimum time between two warnings in a chat, so that a program that repeats itself does not cover the chat with them.
    private static let warningPause = Duration.seconds(60)
    /// A chat counts as one without samples only if it lasted at least this many intervals, because the first sample may be late.
    private static let intervalsBeforeCounting = 3

    mutating func sampled(_ match: MatchID) {
        guard case .chatting(let search, var chat) = activity, chat.match == match else { return }
        chat.hasSample = true
        activity = .chatting(search, chat)
    }

    mutating func judged(
        _ match: MatchID, _ judgment: SampleJudgment, _ snapshot: PersonSnapshot, _ context: inout Context
    ) {
        guard case .chatting(let search, let chat) = activity, chat.match == match else { return }
        switch judgment.verdict {
        case .ok: blur(false, &context)
        case .warn:
            blur(false, &context)
            warn(judgment.text, &context)
        case .blur: blur(true, &context)
        case .end:
            let warning = RouletteNotice.Warning(match: match, source: .check, ends: true, text: judgment.text)
            context.send(.roulette(.warning(warning)), to: search.client)
            context.persist(.endedByCheck(snapshot.id, chat.match, text: judgment.text ?? "", at: context.wallNow))
            stop(.stopped, notifies: true, snapshot, &context)
        }
    }

    /// Blurs this person's video, or shows it again, and notifies both clients if that changes anything.
    private mutating func blur(_ isBlurred: Bool, _ context: inout Context) {
        guard case .chatting(let search, var chat) = activity, chat.isBlurred != isBlurred else { return }
        chat.isBlurred = isBlurred
        activity = .chatting(search, chat)
        let notice = RouletteNotice.Blur(match: chat.match, whose: .own, blurred: isBlurred)
        context.send(.roulette(.blur(notice)), to: search.client)
        context.tell(chat.partner, .partnerBlurred(chat.match, isBlurred), at: chat.partnerNode)
    }

    private mutating func warn(_ text: String?, _ context: inout Context) {
        guard case .chatting(let search, var chat) = activity else { return }
        if let last = chat.warnedAt, context.now - last < Self.warningPause { return }
        chat.warnedAt = context.now
        activity = .chatting(search, chat)
        let warning = RouletteNotice.Warning(match: chat.match, source: .check, text: text)
        context.send(.roulette(.warning(warning)), to: search.client)
    }

    func partnerBlurred(_ match: MatchID, _ isBlurred: Bool, _ context: inout Context) {
        guard case .chatting(let search, let chat) = activity, chat.match == match else { return }
        let notice = RouletteNotice.Blur(match: match, whose: .partner, blurred: isBlurred)
        context.send(.roulette(.blur(notice)), to: search.client)
    }

    /// Counts a video chat that is over and from which no sample of this person's camera came.
    func countUnsampled(_ chat: Chat, _ mode: ChatMode, _ context: inout Context) {
        let rules = context.rules
        guard rules.checksSamples, mode == .video, !chat.hasSample,
            context.now - chat.began >= rules.sampleInterval * Self.intervalsBeforeCounting
        else { return }
        context.figures.unsampledChats += 1
    }
}

extension Person {
    /// Sends an operator's warning to all of the person's devices.
    func warned(_ text: String?, _ context: inout Context) {
        for client in devices.clients {
            context.send(.roulette(.warning(.init(source: .operator, text: text))), to: client)
        }
    }
}
