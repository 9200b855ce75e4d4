import Signaling
import Wire

#if canImport(Glibc)
import Glibc
#endif

/// Measures the cost of one pairing in the pool, from the newcomer's `enter` to the letter that starts the match.
///
/// Each waiting person has a unique interest and is within the exclusive wait. No queue is harder: no two of the waiting people
/// may be matched, and the newcomer may be matched with exactly one. Each pairing takes a random waiting person. With a million
/// people waiting, that person's data is then not in the CPU cache.
struct PairingBenchmark {
    struct Figures {
        var waiting: Int
        /// The CPU time per pairing in nanoseconds: the median over batches of each batch's mean.
        var perPairing: Double
        /// The growth of the resident set per waiting person; nil if too few people are waiting to measure it.
        var bytesPerEntry: Double?
    }

    private static let now = Timestamp(milliseconds: 1_700_000_000_000)

    private let waiting: Int
    private let batch: Int
    private let batches: Int
    private var pool: Pool
    private var generator = SplitMix64(state: 42)
    private var context: Context
    /// The indices of the waiting people. The person with index n has the interest with index n.
    private var people: [Int] = []
    private var lastPerson = 0

    init(waiting: Int, pairings: Int) {
        self.waiting = waiting
        // Make the batch large enough for the clock, but small compared with the queue, which shrinks with each pairing.
        batch = min(1000, max(20, waiting / 10))
        batches = max(1, pairings / batch)
        pool = Pool(rules: Rules())
        // The pool signs nothing, but a turn requires a project.
        guard let project = Project(apiKey: "1", secret: String(repeating: "0", count: Project.shortestSecret)) else {
            preconditionFailure("invalid project")
        }
        context = Context(HubSettings(rules: Rules(), project: project), generator: generator)
        context.now = Self.now
    }

    mutating func run() -> Figures {
        let this = ServerProcess(name: "self", port: 0, id: Int(getpid()))
        let before = this.residentBytes()
        people.reserveCapacity(waiting + batch)
        fill(upTo: waiting)
        let after = this.residentBytes()
        var samples: [Double] = []
        samples.reserveCapacity(batches)
        for _ in 0..<batches {
            // Fill the queue above the number under test. The batch then shrinks it to that number.
            fill(upTo: waiting + batch)
            let newcomers = (0..<batch).map { _ in newcomer() }
            let start = processorSeconds()
            for newcomer in newcomers { pair(newcomer) }
            samples.append((processorSeconds() - start) * 1e9 / Double(batch))
        }
        precondition(pool.waitingCount == waiting, "some people were not paired")
        // Subtract the memory of `people`, which belongs to the benchmark and not to the pool.
        let bytes = (after - before) - Double(people.capacity * MemoryLayout<Int>.stride)
        return Figures(
            waiting: waiting, perPairing: samples.median,
            bytesPerEntry: waiting < 10_000 ? nil : bytes / Double(waiting)
        )
    }

    private mutating func fill(upTo count: Int) {
        while people.count < count {
            lastPerson += 1
            people.append(lastPerson)
            enter(entry(interest: lastPerson))
        }
        precondition(context.letters.isEmpty, "two people without a common interest were paired")
    }

    /// Returns a newcomer who shares an interest with a random waiting person, and removes that person from `people`.
    private mutating func newcomer() -> PoolEntry {
        let index = Int.random(in: people.indices, using: &generator)
        let partner = people[index]
        people.swapAt(index, people.count - 1)
        people.removeLast()
        return entry(interest: partner)
    }

    private mutating func entry(interest: Int) -> PoolEntry {
        let id = IdentityID.random(using: &generator)

        return PoolEntry(
            identity: id, interests: ["stamps \(interest)"], name: "Ada",
            address: "10.\(id.low & 255).\(id.high >> 8 & 255).\(id.high & 255)"
        )
    }

    private mutating func enter(_ entry: PoolEntry) {
        pool.handle(.enter(entry), &context)
    }

    /// Delivers the newcomer's `enter`, the two requests, the two answers, and the letter to the match.
    private mutating func pair(_ newcomer: PoolEntry) {
        enter(newcomer)
        guard case .person(let first, .reserve(let match, let second, _))? = context.nextLetter(),
            context.letters.count == 1
        else { preconditionFailure("the newcomer was not paired") }
        forgetLetters()
        pool.handle(.reserved(match, first), &context)
        pool.handle(.reserved(match, second), &context)
        precondition(context.letters.count == 1, "no match started")
        forgetLetters()
    }

    private mutating func forgetLetters() {
        while context.nextLetter() != nil {}
    }
}
