import Signaling
import Wire

#if canImport(Glibc)
import Glibc
#endif

/// Measures the cost of one page of people nearby and of one change of location, for several numbers and distributions of
/// people.
struct NearbyBenchmark {
    /// The distribution of the people. The viewer is always in the middle.
    enum Crowd: String, CaseIterable {
        /// All people are distributed evenly over the globe. This case runs first, because memory is measured with it, and
        /// later runs reuse memory that it freed.
        case globe = "over the globe"
        /// All people are in the viewer's cell.
        case oneCell = "all in one cell"
        /// All people are distributed evenly over 200 miles.
        case region = "over 200 miles"
        /// Thirty people are within reach, and all others are far away.
        case few = "30 within reach"
        /// Thirty people are nearby, and all others are in a city at the boundary of the last buckets.
        case cityAtTheEdge = "a city at the edge"
    }

    struct Figures {
        /// The CPU time per page in nanoseconds: the median over batches of each batch's mean.
        var perPage: Double
        var perMove: Double
        /// The CPU time per page in the slowest batch, in nanoseconds.
        var slowestPage: Double
        /// The growth of the resident set per person; nil if too few people are listed to measure it.
        var bytesPerPerson: Double?
    }

    private static let now = Timestamp(milliseconds: 1_790_000_000_000)
    /// The number of degrees of latitude in a mile.
    private static let mile = 1 / 69.093
    private static let middle = (latitude: 47.0, longitude: 11.0)

    private let count: Int
    private let crowd: Crowd
    private var directory: Directory
    private var generator = SplitMix64(state: 42)
    private var listings: [Listing] = []
    private var context: Context
    private var cursors: [String] = []

    init(count: Int, crowd: Crowd, project: Project) {
        (self.count, self.crowd) = (count, crowd)
        directory = Directory(rules: Rules(), project: project)
        context = Context(HubSettings(rules: Rules(), project: project), generator: generator)
        context.now = Self.now
    }

    mutating func run(pages: Int, moves: Int) -> Figures {
        let this = ServerProcess(name: "self", port: 0, id: Int(getpid()))
        listings.reserveCapacity(count)
        for index in 0..<count { listings.append(person(index)) }
        let before = this.residentBytes()
        for listing in listings { directory.handle(.show(listing), &context) }
        precondition(context.letters.isEmpty && directory.listedCount == count, "some people are not listed")
        let after = this.residentBytes()
        let moving = measure(batches: 50, of: moves / 50) { $0.move() }
        let looking = measure(batches: 50, of: max(1, pages / 50)) { $0.look() }
        return Figures(
            perPage: looking.median, perMove: moving.median, slowestPage: looking.max() ?? 0,
            bytesPerPerson: count < 10_000 ? nil : (after - before) / Double(count)
        )
    }

    private mutating func measure(
        batches: Int, of size: Int, _ body: (inout NearbyBenchmark) -> Void
    ) -> [Double] {
        (0..<batches).map { _ in
            let start = processorSeconds()
            for _ in 0..<size { body(&self) }
            return (processorSeconds() - start) * 1e9 / Double(size)
        }
    }

    // MARK: People

    private mutating func person(_ index: Int) -> Listing {
        Listing(
            identity: .random(using: &generator), person: .random(using: &generator), name: "Gentle Otter",
            isBusy: false, cell: cell(index)
        )
    }

    private mutating func cell(_ index: Int) -> Cell {
        let (latitude, longitude) = place(index)
        guard let cell = Cell(latitude: latitude, longitude: longitude) else { preconditionFailure("off the globe") }
        return cell
    }

    private mutating func place(_ index: Int) -> (Double, Double) {
        switch crowd {
        case .oneCell: Self.middle
        case .region: around(Self.middle, miles: 200)
        case .few: index < 30 ? around(Self.middle, miles: 200) : around((-30, -60), miles: 2000)
        case .cityAtTheEdge:
            index < 30
                ? around(Self.middle, miles: 50)
                : around((Self.middle.latitude + 100 * Self.mile, Self.middle.longitude), miles: 10)
        case .globe: onTheGlobe()
        }
    }

    private mutating func onTheGlobe() -> (Double, Double) {
        // Use rejection sampling for equal areas: discard points where the globe is narrower.
        while true {
            let latitude = Double.random(in: -90...90, using: &generator)
            if Double.random(in: 0..<1, using: &generator) < roughCosine(latitude) {
                return (latitude, Double.random(in: -180...180, using: &generator))
            }
        }
    }

    private mutating func around(_ middle: (latitude: Double, longitude: Double), miles: Double) -> (Double, Double) {
        while true {
            let north = Double.random(in: -1...1, using: &generator)
            let east = Double.random(in: -1...1, using: &generator)
            guard north * north + east * east <= 1 else { continue }
            let latitude = middle.latitude + north * miles * Self.mile
            return (latitude, middle.longitude + east * miles * Self.mile / roughCosine(latitude))
        }
    }

    /// Returns Bhaskara's approximation of the cosine, accurate to a few thousandths.
    private func roughCosine(_ degrees: Double) -> Double {
        let square = degrees * degrees
        return (32_400 - 4 * square) / (32_400 + square)
    }

    // MARK: What is measured

    private mutating func move() {
        let index = Int.random(in: listings.indices, using: &generator)
        listings[index].cell = cell(index)
        directory.handle(.show(listings[index]), &context)
    }

    /// Requests one page, either the first or a following one.
    private mutating func look() {
        guard let cell = Cell(latitude: Self.middle.latitude, longitude: Self.middle.longitude) else { return }
        let client = ConnectionID(high: 0, low: 1)
        let after = Bool.random(using: &generator) ? cursors.popLast() : nil
        let watch = NearbyVerb.Watch(unit: .miles, radius: 200, after: after, limit: 50)
        directory.handle(
            .watch(client, re: 1, viewer: IdentityID(high: 0, low: 0), blocked: [], at: cell, watch), &context)
        guard case .client(_, .deliver(.nearby(.list(let list))))? = context.nextLetter() else {
            preconditionFailure("the directory returned no page")
        }
        while context.nextLetter() != nil {}
        if let next = list.next, cursors.count < 100 { cursors.append(next) }
    }
}
