/// Places of a limited number that all addresses share, such as connections, each of which takes a file descriptor.
///
/// Each limiting block of addresses may take some of them, and each wide block (an IPv6 /56) four times as many. When no place
/// is free, the wide block with the most loses its oldest place to a newcomer, so that a few addresses cannot keep out all
/// others. Blocks with few places lose none: if only such blocks are left, the newcomer is refused.
struct AddressPlaces {
    struct Place: Hashable, Sendable {
        fileprivate let number: UInt64
        /// Nil for a place without an address.
        fileprivate let address: IPAddress?
    }

    enum Refusal: Error, Equatable {
        /// The address has as many places as it may have.
        case address
        /// All places are taken, and no other block has too many.
        case full
    }

    /// A block with at most this many places loses none. A household with four pages, of six connections each, keeps them.
    static let maxModestShare = 24

    /// Maximum number of places per limiting block. A lower number takes no place away.
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

    /// Takes a place.
    ///
    /// - Parameter address: nil if only the total limits it.
    /// - Returns: the place, and the one that was taken away for it, which its holder must give up. It no longer counts.
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

    /// True if the address has fewer places than it may have.
    func hasRoom(for address: IPAddress) -> Bool {
        // Several addresses must be able to take places.
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

    /// Gives a place back. Does nothing if it was taken away.
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
