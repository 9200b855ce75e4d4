import Wire

/// Sees to it that the bots of one process do not meet each other: only one of them waits in the queue at a time.
actor RouletteTurns {
    private var waiting: Int?
    private var line: [(bot: Int, turn: AsyncStream<Void>.Continuation)] = []
    private var matches: [MatchID: Int] = [:]

    /// Comes back when this bot may wait for a partner; false when it was cancelled meanwhile.
    func take(_ bot: Int) async -> Bool {
        if tryTaking(bot) { return true }
        let (stream, turn) = AsyncStream.makeStream(of: Void.self)
        line.append((bot, turn))
        // Ends without an element when the task is cancelled.
        for await _ in stream { return true }
        line.removeAll { $0.bot == bot }
        release(bot)
        return false
    }

    /// Whether it may at once.
    func tryTaking(_ bot: Int) -> Bool {
        guard waiting == nil || waiting == bot else { return false }
        waiting = bot
        return true
    }

    /// It waits no more.
    func release(_ bot: Int) {
        guard waiting == bot else { return }
        waiting = nil
        guard !line.isEmpty else { return }
        let next = line.removeFirst()
        waiting = next.bot
        next.turn.yield()
        next.turn.finish()
    }

    /// Takes note of a match; false when another bot of this process has it too.
    func begin(_ match: MatchID, of bot: Int) -> Bool {
        guard let other = matches[match], other != bot else {
            matches[match] = bot
            return true
        }
        return false
    }

    func end(_ match: MatchID, of bot: Int) {
        if matches[match] == bot { matches[match] = nil }
    }
}
