import Signaling
import Wire

/// The uploads and downloads of room files in progress.
///
/// The client determines how long a transfer holds its connection. The number of transfers per address is therefore
/// limited, and each must reach a minimum rate. When all places are taken, the address with the most transfers loses
/// its oldest. The gateway closes the connections of the transfers that this type returns.
struct Transfers {
    /// The minimum rate of a transfer in bytes per second: its time limit is `graceTime` plus the time that it takes
    /// at this rate. A call uses ten times as much bandwidth.
    static let minRate = 16 * 1024
    /// Additional time for each transfer, for connections that stall for a while.
    static let graceTime = Duration.seconds(60)

    typealias Place = AddressPlaces.Place

    private var places: AddressPlaces
    private var deadlines: [Place: Timestamp] = [:]

    init(perAddress: Int, total: Int) { places = AddressPlaces(perAddress: perAddress, total: total) }

    /// Maximum number of transfers per limiting block of addresses. Lowering it does not end any transfers.
    var perAddress: Int {
        get { places.perAddress }
        set { places.perAddress = newValue }
    }

    var count: Int { places.count }

    /// Begins a transfer of `size` bytes.
    ///
    /// - Returns: the new transfer, and the one that must end to make room for it, if any.
    mutating func begin(
        _ address: IPAddress, size: Int, now: Timestamp
    ) throws(AddressPlaces.Refusal) -> (place: Place, dropped: Place?) {
        let (place, dropped) = try places.take(address)
        deadlines[place] = now + Self.graceTime + .milliseconds(Int64(size) * 1000 / Int64(Self.minRate))
        if let dropped { deadlines[dropped] = nil }
        return (place, dropped)
    }

    /// Ends a transfer. Does nothing if it has ended.
    mutating func end(_ place: Place) {
        guard deadlines.removeValue(forKey: place) != nil else { return }
        places.release(place)
    }

    /// Ends and returns the transfers that were too slow.
    mutating func takeSlow(now: Timestamp) -> [Place] {
        let slow = deadlines.filter { $0.value <= now }.map(\.key)
        for place in slow { end(place) }
        return slow
    }
}
