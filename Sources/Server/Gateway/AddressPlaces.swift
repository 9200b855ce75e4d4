/// A limited number of places shared by all addresses, such as connections, each of which takes a file descriptor.
///
/// Each limiting block of addresses may take some of them, and each wide block (an IPv6 /56) four times as many, but
/// no block more than half of all. When no place is free, the wide block with the most places loses its oldest one to
/// a newcomer, so that a few addresses cannot keep out all others. Blocks with few places lose none: if only such
/// blocks are left, the newcomer is refused.
struct AddressPlaces {
    /// A place that was taken. Its holder frees it with `release`.
    struct Place: Hashable, Sendable {
        fileprivate let number: UInt64
        /// The address that holds the place; nil for a place that counts only toward the total.
        fileprivate let address: IPAddress?
    }

    /// The reason why no place could be taken.
    enum Refusal: Error, Equatable {
        /// The address has reached its maximum number of places.
        case address
        /// All places are taken, and no other block has so many that it must give one up.
        case full
    }

    /// A block with at most this many places loses none. A household with four pages of six connections each keeps all
    /// of them.
    static let maxModestShare = 24

    /// Maximum number of places per limiting block. Lowering it does not take away any places.
    var perAddress: Int
    /// Maximum number of places in total.
    let total: Int
    private let modestShare: Int

    private var shares = AddressShares<Place>()
    private var byAddress: [IPAddress: Int] = [:]
    private var withoutAddress = 0
    private var lastNumber: UInt64 = 0

    init(perAddress: Int, total: Int, modestShare: Int = maxModestShare) {
        (self.perAddress, self.total, self.modestShare) = (perAddress, total, modestShare)
    }

    /// The number of places that are taken.
    var count: Int { shares.count + withoutAddress }

    /// Returns whether less than a twentieth is left, and no block has so many places that it would lose one to a newcomer.
    mutating func isNearlyFull() -> Bool {
        guard count >= total - total / 20 else { return false }
        return shares.largest().map { shares.count(of: $0) <= modestShare } ?? true
    }

    /// Takes a place.
    ///
    /// - Parameter address: nil if only the total limits it.
    /// - Returns: the new place, and the place taken away to make room, if any. The latter no longer counts, and the
    ///   caller must make its holder give it up.
    mutating func take(_ address: IPAddress?) throws(Refusal) -> (place: Place, dropped: Place?) {
        if let address, !hasRoom(for: address) { throw .address }
        var dropped: Place?
        if count >= total {
            dropped = takeAway(for: address)
            guard dropped != nil else { throw .full }
        }
        lastNumber += 1
        let place = Place(number: lastNumber, address: address)
        if let address {
            byAddress[address.limitingBlock.network, default: 0] += 1
            shares.insert(place, of: address.wideBlock)
        } else {
            withoutAddress += 1
        }
        return (place, dropped)
    }

    /// Returns whether the limits of the address and its wide block permit another place. Does not check whether a
    /// place is free.
    func hasRoom(for address: IPAddress) -> Bool {
        // Limit one address to half of the places, so that several addresses can have some.
        let most = min(perAddress, total / 2)
        guard byAddress[address.limitingBlock.network, default: 0] < most else { return false }
        return shares.count(of: address.wideBlock) < min(IPAddress.wideFactor * most, total / 2)
    }

    private mutating func takeAway(for address: IPAddress?) -> Place? {
        guard let block = shares.largest() else { return nil }
        let own = address.map { shares.count(of: $0.wideBlock) } ?? 0
        guard shares.count(of: block) > max(modestShare, own), let place = shares.removeOldest(of: block) else {
            return nil
        }
        forget(place.address)
        return place
    }

    /// Frees a place. Does nothing if it was taken away.
    mutating func release(_ place: Place) {
        guard let address = place.address else {
            withoutAddress -= 1
            return
        }
        if shares.remove(place, of: address.wideBlock) { forget(address) }
    }

    private mutating func forget(_ address: IPAddress?) {
        guard let block = address?.limitingBlock.network, let left = byAddress[block] else { return }
        byAddress[block] = left > 1 ? left - 1 : nil
    }
}
