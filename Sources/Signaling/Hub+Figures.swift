import Wire

/// How much there is of everything, for metrics and tests.
extension Hub {
    public var surroundings: Surroundings { turn.surroundings }

    public var clientCount: Int { turn.figures.online }
    public var resourceCount: Int { clients.resourceCount }
    public var personCount: Int { people.count }
    public var sessionCount: Int { sessions.count }
    public var matchCount: Int { matches.count }
    public var callCount: Int { calls.count }
    /// People who are there on some device.
    public var presentCount: Int { turn.figures.present }
    public var callFigures: (ringing: Int, active: Int) {
        let ringing = calls.count { $0.isRinging }
        return (ringing, calls.count - ringing)
    }
    public var waitingCount: Int { pool.machine.waitingCount }
    /// People who search or chat in the roulette while in a call. There must be none, which tests check.
    package var peopleInTwoPlaces: [IdentityID] { people.ids { $0.roulette.search != nil && $0.calls.isBusy } }
}
