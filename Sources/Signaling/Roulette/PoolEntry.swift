import Wire

/// Somebody in the queue, with all that decides whom he may meet.
public struct PoolEntry: Equatable, Sendable {
    public var identity: IdentityID
    public var mode: ChatMode
    /// Normalised.
    public var interests: [String]
    public var name: String
    /// The remote address, for the limit per address.
    public var address: String
    /// Blocked by this person.
    public var excluded: Set<IdentityID>
    public var lastPartner: IdentityID?

    public init(
        identity: IdentityID, mode: ChatMode = .video, interests: [String] = [], name: String = "", address: String = "",
        excluded: Set<IdentityID> = [], lastPartner: IdentityID? = nil
    ) {
        self.identity = identity
        self.mode = mode
        self.interests = interests
        self.name = name
        self.address = address
        self.excluded = excluded
        self.lastPartner = lastPartner
    }

    func sharedInterests(with other: PoolEntry) -> [String] {
        interests.filter { other.interests.contains($0) }
    }

    /// Whether one was the other's last partner.
    func justLeft(_ other: PoolEntry) -> Bool {
        lastPartner == other.identity || other.lastPartner == identity
    }

    func isBlocked(with other: PoolEntry) -> Bool {
        excluded.contains(other.identity) || other.excluded.contains(identity)
    }
}

/// Waiting people in the order of their entry, who share one property (an interest, or having none left to wait for).
///
/// Numbers only grow, so the array stays sorted by appending; who leaves is skipped and swept out when half are gone.
struct Line: Equatable, Sendable {
    struct Place: Equatable, Sendable {
        var number: UInt64
        var slot: Int32
    }

    /// Most interests have one person waiting: no array for him.
    private var lone: Place?
    private var places: [Place] = []
    private var first = 0
    private var live = 0

    var isEmpty: Bool { live == 0 }

    mutating func append(_ place: Place) {
        live += 1
        if live == 1, places.isEmpty {
            lone = place
            return
        }
        if let alone = lone {
            places.append(alone)
            lone = nil
        }
        places.append(place)
    }

    /// Somebody in this line left it; `isAlive` tells who is still here.
    mutating func leave(_ isAlive: (Place) -> Bool) {
        live -= 1
        guard lone == nil else { return lone = nil }
        while first < places.count, !isAlive(places[first]) { first += 1 }
        if live == 0 {
            places.removeAll(keepingCapacity: false)
            first = 0
        } else if places.count - first > 2 * live + 16 || first > live + 64 {
            places = places[first...].filter(isAlive)
            first = 0
        }
    }

    /// The index of the first place with a number above `number`, to be used with `place(at:)`.
    func index(after number: UInt64) -> Int {
        if let lone { return lone.number > number ? 0 : 1 }
        guard number > 0 else { return first }
        var low = first
        var high = places.count
        while low < high {
            let middle = (low + high) / 2
            if places[middle].number > number { high = middle } else { low = middle + 1 }
        }
        return low
    }

    func place(at index: Int) -> Place? {
        if let lone { return index == 0 ? lone : nil }
        return index < places.count ? places[index] : nil
    }
}
