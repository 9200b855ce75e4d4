import Wire

/// Limits what people cost who come to a room and leave it: each arrival and departure is a message to everyone in it.
///
/// A room that grows is not charged. Its size limits what growth can cost, and all may arrive at once, also after a restart or
/// a break. Only joins that follow departures are charged, to three budgets: the room's, which is another one than that of the
/// chat, so that people who come and go silence nobody; the person's; and the address's, so that one address does not use up
/// the room's budget.
struct RoomArrivals: Equatable, Sendable {
    /// The approximate size of a message to everyone.
    private static let messageSize = 256
    /// An arrival, the departure after it, and a new host because of it.
    private static let messagesPerStay = 3
    /// A connection that drops, and comes back.
    private static let messagesPerDrop = 2
    /// Maximum number of people and addresses with budgets of their own, twice as many as fit into a room.
    private static let maxBudgets = 200

    private var size = RecentSize()
    /// Nil if it is full.
    private var traffic: Budget?
    private var people = BudgetTable<IdentityID>(maxKeys: Self.maxBudgets)
    private var addresses = BudgetTable<String>(maxKeys: Self.maxBudgets)

    /// Charges a person who joins.
    ///
    /// - Parameters:
    ///   - count: how many people are in the room.
    ///   - isReplacing: whether the person takes the place of a connection of theirs, so that the room does not grow.
    mutating func charge(
        _ applicant: RoomApplicant, to count: Int, isReplacing: Bool, _ turn: Turn
    ) throws(WireError) {
        note(count, turn)
        guard isReplacing || count < size.greatest else { return }
        let (person, network) = (turn.rules.roomReturns, turn.rules.roomReturnsPerAddress)
        if let wait = people.wait(applicant.identity, person, now: turn.now) { throw .tooManyReturns(wait) }
        if let wait = addresses.wait(applicant.address, network, now: turn.now) { throw .tooManyReturns(wait) }
        try pay(Self.messagesPerStay, to: count, turn)
        _ = people.take(applicant.identity, person, now: turn.now)
        _ = addresses.take(applicant.address, network, now: turn.now)
    }

    /// Charges a knock, and its end.
    mutating func chargeKnock(to hosts: Int, _ turn: Turn) throws(WireError) { try pay(2, to: hosts, turn) }

    /// Charges a connection that drops. Returns false if the budget is exhausted, so that nobody is told.
    mutating func affordsDrop(to count: Int, _ turn: Turn) -> Bool {
        (try? pay(Self.messagesPerDrop, to: count, turn)) != nil
    }

    /// Notes how many people were in the room before someone left.
    mutating func left(_ count: Int, _ turn: Turn) {
        note(count, turn)
        // Nobody is left whom arrivals would cost anything.
        if count <= 1 { size = RecentSize() }
    }

    private mutating func note(_ count: Int, _ turn: Turn) {
        size.note(count, for: turn.rules.sessionSizeMemory, now: turn.now)
    }

    private mutating func pay(_ messages: Int, to count: Int, _ turn: Turn) throws(WireError) {
        let cost = Double(messages * Self.messageSize * count)
        if let wait = traffic.take(turn.rules.sessionTraffic, cost: cost, now: turn.now) { throw .tooManyReturns(wait) }
    }
}

extension WireError {
    fileprivate static func tooManyReturns(_ wait: Duration) -> WireError {
        WireError(
            .rateLimited, "People leave and join this room too often. Try again in \(wait.roundedText).",
            retryable: true, retryAfter: wait)
    }
}
