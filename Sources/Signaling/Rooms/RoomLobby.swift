import Wire

/// The people who wait until a host admits them, and those who were sent away.
struct RoomLobby: Equatable, Sendable {
    /// Maximum number of addresses with a budget of their own, and of people who were sent away recently. They are kept for
    /// each room, so the numbers are small.
    private static let maxKept = 100

    /// In the order of arrival.
    private(set) var waiting: [RoomApplicant] = []
    private var knocks = BudgetTable<String>(maxKeys: Self.maxKept)
    private var sentAway: [IdentityID: Timestamp] = [:]

    func contains(_ client: ConnectionID) -> Bool { waiting.contains { $0.client == client } }

    /// Throws if a host sent this person away recently.
    func permit(_ identity: IdentityID, now: Timestamp) throws(WireError) {
        guard let until = sentAway[identity], now < until else { return }
        throw WireError(
            .roomRefused, "A host did not let you in. Try again in \((until - now).roundedText).",
            retryable: true, retryAfter: until - now)
    }

    /// Adds a person.
    ///
    /// - Returns: the same person on a connection that dropped, who gave way: the person is back, but could not resume it.
    mutating func knock(_ applicant: RoomApplicant, _ turn: Turn) throws(WireError) -> RoomApplicant? {
        try permit(applicant.identity, now: turn.now)
        // One place for each person, so that nobody fills the lobby with tabs.
        let former = waiting.first { $0.identity == applicant.identity }
        guard former?.isAway ?? true else {
            throw WireError(
                .alreadyJoined, "You are already waiting for this room in another tab. Leave it there first.")
        }
        let others = waiting.filter { $0.client != former?.client }
        let fromAddress = others.count { $0.address == applicant.address }
        guard others.count < turn.rules.roomLobby, fromAddress < turn.rules.roomLobbyPerAddress else {
            throw WireError(
                .rateLimited, "Too many people are waiting for this room. Try again in a minute.", retryable: true,
                retryAfter: .seconds(60))
        }
        if let wait = knocks.take(applicant.address, turn.rules.roomKnocks, now: turn.now) {
            throw WireError(
                .rateLimited, "Too many join requests from your network. Try again in \(wait.roundedText).",
                retryable: true, retryAfter: wait)
        }
        waiting = others + [applicant]
        return former
    }

    mutating func remove(_ client: ConnectionID) -> RoomApplicant? {
        waiting.firstIndex { $0.client == client }.map { waiting.remove(at: $0) }
    }

    mutating func setAway(_ isAway: Bool, _ client: ConnectionID) {
        if let index = waiting.firstIndex(where: { $0.client == client }) { waiting[index].isAway = isAway }
    }

    mutating func removeAll() -> [RoomApplicant] {
        defer { waiting = [] }
        return waiting
    }

    /// Keeps a person from knocking again at once.
    mutating func sendAway(_ identity: IdentityID, _ turn: Turn) {
        if sentAway.count >= Self.maxKept { sentAway = sentAway.filter { turn.now < $0.value } }
        if sentAway.count >= Self.maxKept, let first = sentAway.min(by: { ($0.value, $0.key) < ($1.value, $1.key) }) {
            sentAway[first.key] = nil
        }
        sentAway[identity] = turn.now + turn.rules.roomRefusal
    }
}
