/// Limits the TCP connections to the public port, both per address and in total.
///
/// Counts from the moment a connection is accepted, before TLS and before any request, so that idle connections of one address
/// cannot use up the process's file descriptors. Connections from trusted proxies count only towards the total.
struct ConnectionCounts: Equatable, Sendable {
    /// Maximum number of connections per limiting block of addresses. A lower number closes no connection.
    var perAddress: Int
    /// Maximum number of connections in total.
    let total: Int

    private(set) var count = 0
    private var byAddress: [IPAddress: Int] = [:]

    init(perAddress: Int, total: Int) {
        (self.perAddress, self.total) = (perAddress, total)
    }

    /// Counts a new connection and returns true, or returns false without counting it if the connection must be refused.
    ///
    /// - Parameter address: the peer; nil for a trusted proxy, and for a connection without an IP address.
    mutating func admit(_ address: IPAddress?) -> Bool {
        guard count < total else { return false }
        if let key = address?.limitingBlock.network {
            guard byAddress[key, default: 0] < perAddress else { return false }
            byAddress[key, default: 0] += 1
        }
        count += 1
        return true
    }

    /// Forgets a connection that was admitted with the same address.
    mutating func release(_ address: IPAddress?) {
        count -= 1
        guard let key = address?.limitingBlock.network, let left = byAddress[key] else { return }
        byAddress[key] = left > 1 ? left - 1 : nil
    }
}
