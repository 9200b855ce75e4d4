import Wire

/// Limits the cost of people who join and leave a room. There is a cost because each arrival or departure causes a
/// message to everyone in the room.
///
/// Joins that make the room grow are not charged: the maximum size of the room limits their cost, and everyone may
/// arrive at once, also after a restart or a break. Only joins that follow departures are charged, to three budgets.
/// The room's budget is separate from that of the chat, so that joins and departures do not block the chat. The
/// person's and the address's budgets keep one person or address from using up the room's.
struct RoomArrivals: Equatable, Sendable {
    /// The approximate size of a message to everyone, in bytes.
    private static let messageSize = 256
    /// The number of messages that a join can cause: the arrival, the later departure, and a new host because of the
    /// departure.
    private static let messagesPerStay = 3
    /// The number of messages for a connection that drops and is resumed.
    private static let messagesPerDrop = 2
    /// Maximum number of people and addresses with separate budgets, twice as many as fit into a room.
    private static let maxBudgets = 200

    private var size = RecentSize()
    /// The room's budget; nil until it is first used.
    private var traffic: Budget?
    private var people = BudgetTable<IdentityID>(maxKeys: Self.maxBudgets)
    private var addresses = BudgetTable<String>(maxKeys: Self.maxBudgets)

    /// Charges a join that follows a departure. Does nothing if the room grows. Throws if a budget is exhausted.
    ///
    /// - Parameters:
    ///   - count: the number of people in the room.
    ///   - isReplacing: whether the person replaces one of their own connections, so that the room does not grow.
    mutating func charge(
        _ applicant: RoomApplicant, to count: Int, isReplacing: Bool, _ context: Context
    ) throws(WireError) {
        note(count, context)
        guard isReplacing || count < size.greatest else { return }
        let (person, network) = (context.rules.roomReturns, context.rules.roomReturnsPerAddress)
        if let wait = people.wait(applicant.identity, person, now: context.now) { throw .tooManyReturns(wait) }
        if let wait = addresses.wait(applicant.address, network, now: context.now) { throw .tooManyReturns(wait) }
        try pay(Self.messagesPerStay, to: count, context)
        _ = people.take(applicant.identity, person, now: context.now)
        _ = addresses.take(applicant.address, network, now: context.now)
    }

    /// Charges a knock: one message to each host when the person begins to wait, and one when the wait ends. Throws if
    /// the room's budget is exhausted.
    mutating func chargeKnock(to hosts: Int, _ context: Context) throws(WireError) { try pay(2, to: hosts, context) }

    /// Charges the drop of a connection together with its return. If the budget is exhausted, charges nothing and
    /// returns false; the room then announces neither.
    mutating func affordsDrop(to count: Int, _ context: Context) -> Bool {
        (try? pay(Self.messagesPerDrop, to: count, context)) != nil
    }

    /// Records how many people were in the room before someone left.
    mutating func left(_ count: Int, _ context: Context) {
        note(count, context)
        // Forget the size when the last person leaves: arrivals in an empty room cost nothing.
        if count <= 1 { size = RecentSize() }
    }

    private mutating func note(_ count: Int, _ context: Context) {
        size.note(count, for: context.rules.sessionSizeMemory, now: context.now)
    }

    private mutating func pay(_ messages: Int, to count: Int, _ context: Context) throws(WireError) {
        let cost = Double(messages * Self.messageSize * count)
        if let wait = traffic.take(context.rules.sessionTraffic, cost: cost, now: context.now) {
            throw .tooManyReturns(wait)
        }
    }
}

extension WireError {
    fileprivate static func tooManyReturns(_ wait: Duration) -> WireError {
        WireError(
            .rateLimited, "People leave and join this room too often. Try again in \(wait.roundedText).",
            retryable: true, retryAfter: wait)
    }
}
