import Signaling
import Wire

#if canImport(Glibc)
import Glibc
#endif

/// What one pairing costs the pool, from the newcomer's `enter` to the letter that begins the match, however many wait.
///
/// Everybody waiting has an interest nobody else has and is within the exclusive wait, which is the hardest queue there
/// is: no two of them may meet, and of all of them the newcomer may meet one. Each pairing takes a waiting person at
/// random, so that at a million nothing about him is in the processor's cache.
struct PairingBenchmark {
    struct Figures {
        var waiting: Int
        /// Medians over the batches' means, in nanoseconds of processor time.
        var perPairing: Double
        /// Of the resident set, per waiting person; nil where too few wait to tell.
        var bytesPerEntry: Double?
    }

    private static let now = Timestamp(milliseconds: 1_700_000_000_000)

    private let waiting: Int
    private let batch: Int
    private let batches: Int
    private var pool: Pool
    private var generator = SplitMix64(state: 42)
    private var turn: Turn
    /// Numbers of those who wait; whoever has the number n has the n-th interest.
    private var people: [Int] = []
    private var lastPerson = 0

    init(waiting: Int, pairings: Int) {
        self.waiting = waiting
        // A batch long enough for the clock, and short beside the queue it shrinks.
        batch = min(1000, max(20, waiting / 10))
        batches = max(1, pairings / batch)
        pool = Pool(rules: Rules())
        // The pool signs nothing; a turn has a project all the same.
        guard let project = Project(apiKey: "1", secret: String(repeating: "0", count: Project.shortestSecret)) else {
            preconditionFailure("this is a project")
        }
        turn = Turn(Surroundings(rules: Rules(), project: project), generator: generator)
        turn.now = Self.now
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
            // The queue is filled up above the number under test and falls to it while the batch is measured.
            fill(upTo: waiting + batch)
            let newcomers = (0..<batch).map { _ in newcomer() }
            let start = processorSeconds()
            for newcomer in newcomers { pair(newcomer) }
            samples.append((processorSeconds() - start) * 1e9 / Double(batch))
        }
        precondition(pool.waitingCount == waiting, "somebody was not paired")
        // People's own table is the benchmark's, not the pool's.
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
        precondition(turn.letters.isEmpty, "two who share nothing were paired")
    }

    /// Somebody who shares the interest of one who waits, chosen at random and then no longer waiting.
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
            identity: id, interests: ["stamps \(interest)"], name: "Somebody",
            address: "10.\(id.low & 255).\(id.high >> 8 & 255).\(id.high & 255)"
        )
    }

    private mutating func enter(_ entry: PoolEntry) {
        pool.handle(.enter(entry), &turn)
    }

    /// Enter, two letters asking, two answers, one letter to the match.
    private mutating func pair(_ newcomer: PoolEntry) {
        enter(newcomer)
        guard case .person(let first, .reserve(let match, let second))? = turn.nextLetter(), turn.letters.count == 2
        else { preconditionFailure("the newcomer met nobody") }
        forgetLetters()
        pool.handle(.reserved(match, first), &turn)
        pool.handle(.reserved(match, second), &turn)
        precondition(turn.letters.count == 1, "no match began")
        forgetLetters()
    }

    private mutating func forgetLetters() {
        while turn.nextLetter() != nil {}
    }
}
