import Wire

/// Allows only one bot of the process to wait in the queue at a time, so that its bots are never matched with each other.
actor RouletteTurns {
    private var waiting: Int?
    private var line: [(bot: Int, turn: AsyncStream<Void>.Continuation)] = []
    private var matches: [MatchID: Int] = [:]

    /// Waits until this bot may enter the queue. Returns false if the task was canceled before that.
    func take(_ bot: Int) async -> Bool {
        if tryTaking(bot) { return true }
        let (stream, turn) = AsyncStream.makeStream(of: Void.self)
        line.append((bot, turn))
        // The stream ends without an element when the task is canceled.
        for await _ in stream { return true }
        line.removeAll { $0.bot == bot }
        release(bot)
        return false
    }

    /// Takes the turn if no other bot has it. Returns whether this bot has the turn now.
    func tryTaking(_ bot: Int) -> Bool {
        guard waiting == nil || waiting == bot else { return false }
        waiting = bot
        return true
    }

    /// Passes the turn to the next bot, if this bot has it.
    func release(_ bot: Int) {
        guard waiting == bot else { return }
        waiting = nil
        guard !line.isEmpty else { return }
        let next = line.removeFirst()
        waiting = next.bot
        next.turn.yield()
        next.turn.finish()
    }

    /// Registers a match. Returns false if another bot of this process is in the same match.
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
