import Signaling
import Wire

/// Counts the queries in progress: in total, per person, and per address. The limits per person and per address keep
/// one person, or one address with several identities, from using up the total.
///
/// A query counts from the event that causes it until its answer is handled, including the time that it waits for a
/// commit.
struct QueryCounts {
    /// Maximum number of queries. A query takes a fraction of a millisecond on one of a few database readers, so only
    /// a flood causes more.
    static let maxOfAll = 2048
    static let maxOfPerson = 16
    /// Maximum number of queries per address: an eighth of all. Hundreds of clients at one address rarely send queries
    /// at the same moment.
    static let maxOfAddress = 256

    private(set) var total = 0
    private var ofPeople: [IdentityID: Int] = [:]
    /// The queries of each client, and the account against which they count. The client may be gone when they are
    /// answered.
    private var ofClients: [ConnectionID: (slot: AddressBudgets.Slot?, count: Int)] = [:]

    /// Counts a query.
    ///
    /// - Returns: nil if the query was counted. If there are too many, the error with which to answer it; the query is
    ///   then not counted.
    mutating func begin(
        _ question: Question, in slot: AddressBudgets.Slot?, _ budgets: (any ClientBudgets)?
    ) -> WireError? {
        guard total < Self.maxOfAll, ofPeople[question.identity, default: 0] < Self.maxOfPerson else {
            return Self.tooMany("The server is busy. Try again in a moment.")
        }
        let slot = if let client = ofClients[question.client] { client.slot } else { slot }
        if let slot, let budgets, !budgets.beginQuery(in: slot) {
            return Self.tooMany("Too many requests from your network. Try again in a moment.")
        }
        total += 1
        ofPeople[question.identity, default: 0] += 1
        ofClients[question.client, default: (slot, 0)].count += 1
        return nil
    }

    /// Returns the account against which this client's queries count, even if the client is gone; nil if none are in
    /// progress.
    func slot(of client: ConnectionID) -> AddressBudgets.Slot? { ofClients[client]?.slot }

    /// Ends a counted query. Call this after handling its answer, because stored data is charged to `slot(of:)`.
    mutating func end(_ question: Question, _ budgets: (any ClientBudgets)?) {
        total -= 1
        let left = ofPeople[question.identity, default: 1] - 1
        ofPeople[question.identity] = left > 0 ? left : nil
        guard let client = ofClients[question.client] else { return }
        if let slot = client.slot { budgets?.endQuery(in: slot) }
        ofClients[question.client] = client.count > 1 ? (client.slot, client.count - 1) : nil
    }

    private static func tooMany(_ sentence: String) -> WireError {
        WireError(.rateLimited, sentence, retryable: true, retryAfter: .seconds(1))
    }
}
