import Signaling
import Wire

/// Limits the TCP connections to the public port, both per address and in total, and the rate of new ones per address.
///
/// Counts from the moment a connection is accepted, before TLS and before any request. Idle connections of one address
/// then cannot use up the process's file descriptors, and its TLS handshakes cannot use up the event loop's time.
/// Connections from trusted proxies count only toward the total.
struct ConnectionCounts {
    private var places: AddressPlaces
    private var new: NewConnectionBudgets
    /// The budgets of wide blocks, such as all networks of one customer.
    private var newOfWideBlocks: NewConnectionBudgets

    init(perAddress: Int, total: Int, new: Budget.Rate) {
        places = AddressPlaces(perAddress: perAddress, total: total)
        self.new = NewConnectionBudgets(new)
        newOfWideBlocks = NewConnectionBudgets(new.ofWideBlock)
    }

    /// Maximum number of connections per limiting block of addresses. Lowering it does not close any connections.
    var perAddress: Int {
        get { places.perAddress }
        set { places.perAddress = newValue }
    }

    var count: Int { places.count }

    /// Returns whether nearly all connections are in use, so that a load balancer should send new clients to another server. A few
    /// addresses with many connections do not count: they lose theirs to newcomers.
    mutating func isFull() -> Bool { places.isNearlyFull() }

    /// Counts a new connection, or returns nil without counting it if the connection must be refused.
    ///
    /// - Parameter address: the peer; nil for a trusted proxy, and for a connection without an IP address.
    /// - Returns: the place of the connection, and the place of the connection that must be closed for it, if any.
    mutating func admit(
        _ address: IPAddress?, now: Timestamp
    ) -> (place: AddressPlaces.Place, dropped: AddressPlaces.Place?)? {
        if let address {
            guard places.hasRoom(for: address), new.take(address.limitingBlock.network, now: now) else { return nil }
            if !address.isIPv4, !newOfWideBlocks.take(address.wideBlock.network, now: now) { return nil }
        }
        return try? places.take(address)
    }

    /// Releases the place of a connection that was admitted.
    mutating func release(_ place: AddressPlaces.Place) { places.release(place) }
}

/// A budget for each address, in bounded memory.
///
/// Budgets are kept in two generations. Starting a new generation drops the older one. By then, the dropped budgets are
/// full again, or too many addresses are active. In the second case they are dropped early, which is lenient but bounds
/// the memory.
struct NewConnectionBudgets: Equatable, Sendable {
    /// Maximum number of addresses per generation. Each takes about 70 bytes.
    static let maxAddresses = 16_384

    private let rate: Budget.Rate
    private let limit: Int
    private var current: [IPAddress: Budget] = [:]
    private var earlier: [IPAddress: Budget] = [:]
    private var startedAt: Timestamp?

    init(_ rate: Budget.Rate, limit: Int = maxAddresses) { (self.rate, self.limit) = (rate, limit) }

    /// The number of addresses in memory.
    var count: Int { current.count + earlier.count }

    /// Charges one new connection to the address's budget. Returns false if the budget is used up.
    mutating func take(_ address: IPAddress, now: Timestamp) -> Bool {
        let start = startedAt ?? now
        let refillTime = Duration.milliseconds(Int64(rate.burst / max(rate.perSecond, 0.001) * 1000))
        if now - start > refillTime || current.count >= limit {
            (earlier, current, startedAt) = (current, [:], now)
        } else {
            startedAt = start
        }
        var budget = current[address] ?? earlier.removeValue(forKey: address) ?? Budget(rate, now: now)
        defer { current[address] = budget }
        return budget.take(rate, now: now) == nil
    }
}
