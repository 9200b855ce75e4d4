import Wire

/// The people waiting until a host admits them, and the people who were recently turned away.
struct RoomLobby: Equatable, Sendable {
    /// Maximum number of addresses with separate budgets, and of people in `sentAway`. It is small, because each room
    /// keeps separate lists.
    private static let maxKept = 100

    /// The people waiting, in order of arrival.
    private(set) var waiting: [RoomApplicant] = []
    private var knocks = BudgetTable<String>(maxKeys: Self.maxKept)
    private var sentAway: [IdentityID: Timestamp] = [:]

    func contains(_ client: ConnectionID) -> Bool { waiting.contains { $0.client == client } }

    /// Throws if a host recently turned this person away.
    func permit(_ identity: IdentityID, now: Timestamp) throws(WireError) {
        guard let until = sentAway[identity], now < until else { return }
        throw WireError(
            .roomRefused, "A host did not let you in. Try again in \((until - now).roundedText).",
            retryable: true, retryAfter: until - now)
    }

    /// Adds a person to those waiting. Throws if a limit is reached, if a host recently turned the person away, or if
    /// the person is already waiting on another connection.
    ///
    /// - Returns: a dropped connection of the same person that gives way, because the person returned but could not
    ///   resume it; nil if there is none.
    mutating func knock(_ applicant: RoomApplicant, _ context: Context) throws(WireError) -> RoomApplicant? {
        try permit(applicant.identity, now: context.now)
        // Each person has one place, so that nobody can fill the lobby with tabs.
        let former = waiting.first { $0.identity == applicant.identity }
        guard former?.isAway ?? true else {
            throw WireError(
                .alreadyJoined,
                "You are already waiting for this room in another tab or on another device. Leave it there first.")
        }
        let others = waiting.filter { $0.client != former?.client }
        let fromAddress = others.count { $0.address == applicant.address }
        guard others.count < context.rules.roomLobby, fromAddress < context.rules.roomLobbyPerAddress else {
            throw WireError(
                .rateLimited, "Too many people are waiting for this room. Try again in a minute.", retryable: true,
                retryAfter: .seconds(60))
        }
        if let wait = knocks.take(applicant.address, context.rules.roomKnocks, now: context.now) {
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

    /// Records that a host turned a person away. The person cannot knock again before `roomKnockPause` has passed.
    mutating func sendAway(_ identity: IdentityID, _ context: Context) {
        if sentAway.count >= Self.maxKept { sentAway = sentAway.filter { context.now < $0.value } }
        if sentAway.count >= Self.maxKept, let first = sentAway.min(by: { ($0.value, $0.key) < ($1.value, $1.key) }) {
            sentAway[first.key] = nil
        }
        sentAway[identity] = context.now + context.rules.roomKnockPause
    }
}
