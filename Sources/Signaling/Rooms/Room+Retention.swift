import Wire

/// Decides how long a room is kept while it is empty, and writes to storage when a persistent room was last used.
///
/// The room measures this time itself while the server runs. After a restart, the stored time of the last use counts
/// (`keptUntil`), and the room is kept at least as long as any empty room.
extension Room {
    /// The longest timer that a room may set. A timer cannot be canceled, and outlives its room. A persistent room,
    /// which waits for a year, therefore waits in steps of this length. Otherwise a client that creates and ends many
    /// rooms would fill the memory with timers.
    static let longestTimer: Duration = .seconds(3600)
    /// How often the last-used time of an unchanged room is written to storage. `storeUse` shortens this if the
    /// retention is short.
    private static let useInterval: Duration = .seconds(86400)

    private func emptyTime(_ context: Context) -> Duration {
        let grace = context.rules.roomEmptyGrace
        // Do not keep a locked room without owners, because nobody can enter it.
        guard creator != nil || hasHostTokens || !options.locked else { return grace }
        if options.persistent { return context.rules.roomRetention }
        // Keep a room with a password longer. Otherwise a stranger could take its name and meet the people who
        // return.
        return options.password ? max(grace, context.rules.roomPasswordGrace) : grace
    }

    // MARK: Waiting

    /// Decides when the room ends, because it has become empty.
    mutating func beginEmptyTime(_ context: Context) {
        keptUntil = nil
        waitForPeople(until: context.now + emptyTime(context), context)
    }

    /// Decides when a restored room ends, which has been empty since before the restart.
    mutating func continueEmptyTime(lastUse: Timestamp, _ context: Context) {
        // People who were in the room when the server stopped need time to return, no matter how old the last use is.
        let earliest = context.now + context.rules.roomEmptyGrace
        keptUntil = lastUse + context.rules.roomRetention
        waitForPeople(until: earliest, context)
    }

    /// Decides again when the room ends, if it is empty.
    mutating func updateEnd(_ context: Context) {
        guard case .empty = state else { return }
        beginEmptyTime(context)
    }

    private mutating func waitForPeople(until: Timestamp, _ context: Context) {
        var checkAt = min(until, context.now + Self.longestTimer)
        if let keptUntil, until <= context.now || keptUntil > context.moment.wall(at: until) {
            checkAt = context.moment.look(forWall: keptUntil)
        }
        state = .empty(until: until, checkAt: checkAt)
    }

    // MARK: The end

    /// Ends the empty room if its time is over. Otherwise it continues to wait.
    mutating func endOrWait(until: Timestamp, _ context: inout Context) {
        if until <= context.now, isRetentionOver(context) {
            end(&context)
        } else {
            waitForPeople(until: until, context)
        }
    }

    /// Returns whether the retention has ended. Only a restored room that has not been used since the restart has a
    /// time for this (`keptUntil`); for every other room, the result is true. The clock must be confirmed, because a
    /// clock that is a year ahead would end every room.
    private func isRetentionOver(_ context: Context) -> Bool {
        guard let keptUntil else { return true }
        return context.moment.confirmedWall.map { keptUntil <= $0 } ?? false
    }

    // MARK: Storing

    mutating func storeUse(_ context: inout Context) {
        // Store the use more often if the retention is short, as in tests.
        let interval = min(Self.useInterval, context.rules.roomRetention / 10)
        if let storedAt, storedAt + interval <= context.wallNow { store(&context) }
    }

    /// Stores changed options. If the room is empty and the changes affect how long an empty room is kept, also
    /// recomputes when the room ends.
    mutating func optionsChanged(from before: RoomOptions, _ context: inout Context) {
        store(&context)
        let isSame =
            options.persistent == before.persistent && options.locked == before.locked
            && options.password == before.password
        if !isSame { updateEnd(context) }
    }
}
