/// The Socket.IO handshakes whose clients have not connected a transport yet. `PerchTokens` uses this type in the same
/// way for tokens.
///
/// If there are too many, the oldest handshake of the address with the most is removed, so that a few addresses cannot
/// displace the handshakes of others. Addresses are limiting blocks. There is no separate limit per address: each
/// Socket.IO handshake also counts as a socket of its address.
struct PendingHandshakes {
    let maxOfAll: Int
    private var shares = AddressShares<String>()

    init(maxOfAll: Int = 10_000) { self.maxOfAll = maxOfAll }

    var count: Int { shares.count }

    /// Adds a handshake.
    ///
    /// - Returns: the handshake to remove to make room, if there are too many. It no longer counts.
    mutating func add(_ id: String, of address: IPAddress) -> String? {
        shares.insert(id, of: address.limitingBlock)
        return count > maxOfAll ? shares.largest().flatMap { shares.removeOldest(of: $0) } : nil
    }

    /// Removes a handshake whose client has connected a transport or is gone. Does nothing if it was removed before.
    mutating func remove(_ id: String, of address: IPAddress) { shares.remove(id, of: address.limitingBlock) }
}
