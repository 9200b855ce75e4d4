import Signaling
import Wire

/// The bans of addresses, indexed by prefix length. A lookup takes one step per distinct prefix length, no matter how
/// many bans there are.
struct AddressBans: Equatable, Sendable {
    /// The address family and prefix length of a block. The key of `bans`.
    private struct Length: Hashable {
        var isIPv4: Bool
        var bits: Int
    }

    private var bans: [Length: [IPAddress: Ban]] = [:]

    /// Indexes the address bans by their blocks. Ignores identity bans, and address bans whose block cannot be parsed.
    init(_ bans: [Ban] = []) {
        for ban in bans {
            guard case .address(let text) = ban.subject, let block = CIDRBlock(text) else { continue }
            self.bans[Length(isIPv4: block.network.isIPv4, bits: block.prefixLength), default: [:]][block.network] = ban
        }
    }

    /// Returns a ban that covers this address at `now`, if there is one.
    func ban(of address: IPAddress, at now: Timestamp) -> Ban? {
        for (length, bans) in bans where length.isIPv4 == address.isIPv4 {
            let network = CIDRBlock(address: address, prefixLength: length.bits).network
            if let ban = bans[network], ban.isActive(at: now) { return ban }
        }
        return nil
    }
}
