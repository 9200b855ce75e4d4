import Wire

/// What the sessions of one project use, so that no project can use up what another needs.
struct ProjectUsage: Equatable, Sendable {
    /// The number of connections in the sessions.
    var connections = 0
    /// The number of revoked tokens that sessions keep.
    var revocations = 0
    /// The budget for stored decisions of the application's server; nil until it is first used.
    var decisions: Budget?
    /// The same budget for archives that clients cause, so that they do not use up the application's; nil until it is first used.
    var recordings: Budget?

    var isInUse: Bool { connections > 0 || revocations > 0 }
}

extension Context {
    mutating func countConnections(_ change: Int, of apiKey: String) {
        usage[apiKey, default: ProjectUsage()].connections += change
    }

    /// True if another connection may join the sessions of this project.
    func hasRoomForConnection(of apiKey: String) -> Bool {
        let limit = min(projects[apiKey]?.maxConnections ?? .max, rules.connectionsPerProject)
        return usage[apiKey]?.connections ?? 0 < limit
    }

    mutating func countRevocations(_ change: Int, of apiKey: String) {
        guard change != 0 else { return }
        usage[apiKey, default: ProjectUsage()].revocations += change
    }

    /// Throws if the sessions of this project may not keep another revoked token.
    func permitRevocation(of apiKey: String) throws(WireError) {
        guard usage[apiKey]?.revocations ?? 0 >= rules.revocationsPerProject else { return }
        throw WireError(
            .rateLimited,
            "This application has removed too many people whose tokens are still valid. Try again when some of the tokens "
                + "have expired, and create tokens with shorter lifetimes.",
            retryable: true)
    }

    /// Charges a decision of the application's server that is stored.
    ///
    /// - Throws: `rate_limited` if the budget is exhausted.
    mutating func takeDecision(of apiKey: String) throws(WireError) {
        let wait = usage[apiKey, default: ProjectUsage()].decisions.take(rules.projectDecisions, now: now)
        guard let wait else { return }
        throw WireError(
            .rateLimited,
            "This application mutes sessions, removes people, or starts archives or broadcasts too often. Try again in \(wait.roundedText).",
            retryable: true, retryAfter: wait)
    }
    /// Charges an archive, or a refused start of one, that a client has caused and that is stored.
    ///
    /// - Throws: `rate_limited` if the budget is exhausted.
    mutating func takeRecording(of apiKey: String) throws(WireError) {
        let wait = usage[apiKey, default: ProjectUsage()].recordings.take(rules.projectDecisions, now: now)
        guard let wait else { return }
        throw WireError(
            .rateLimited, "Recordings are started too often. Try again in \(wait.roundedText).", retryable: true,
            retryAfter: wait)
    }
}
