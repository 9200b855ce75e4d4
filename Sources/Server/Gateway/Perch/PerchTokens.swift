import DequeModule
import Signaling
import Wire

/// The tokens with which clients of PerchRTC's protocol open their WebSockets. Each can be used once, and expires soon.
///
/// If there are too many, the oldest token of the address with the most tokens is removed, so that a few addresses
/// cannot displace the tokens of others.
struct PerchTokens {
    /// What a token permits, and until when.
    struct Ticket: Equatable {
        var place: PerchPlace
        /// The address that requested the token.
        var address: IPAddress
        var expiresAt: Timestamp
    }

    private var tickets: [String: Ticket] = [:]
    /// The tokens in the order of creation. Some may have been used or removed already.
    private var order: Deque<String> = []
    private var shares: PendingHandshakes

    /// - Parameter maxCount: Maximum number of tokens. Each takes up to 2 KB.
    init(maxCount: Int = 10_000) { shares = PendingHandshakes(maxOfAll: maxCount) }

    var count: Int { tickets.count }

    mutating func add(_ token: String, _ ticket: Ticket, now: Timestamp) {
        removeExpired(now: now)
        tickets[token] = ticket
        order.append(token)
        if let old = shares.add(token, of: ticket.address) { tickets[old] = nil }
        if order.count > 2 * tickets.count + 64 { order.removeAll { tickets[$0] == nil } }
    }

    /// Returns whether the token could be used now.
    func contains(_ token: String, now: Timestamp) -> Bool { tickets[token].map { now < $0.expiresAt } ?? false }

    /// Consumes a token. Returns nil if it does not exist or has expired.
    mutating func take(_ token: String, now: Timestamp) -> Ticket? {
        guard let ticket = tickets.removeValue(forKey: token) else { return nil }
        shares.remove(token, of: ticket.address)
        return now < ticket.expiresAt ? ticket : nil
    }

    private mutating func removeExpired(now: Timestamp) {
        while let first = order.first {
            if let ticket = tickets[first] {
                guard ticket.expiresAt <= now else { return }
                tickets[first] = nil
                shares.remove(first, of: ticket.address)
            }
            order.removeFirst()
        }
    }
}
