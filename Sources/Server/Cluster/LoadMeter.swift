import Cluster
import Foundation

/// Measures how much of its capacity this node uses, from the processor time that its threads take.
struct LoadMeter {
    /// Readings of clocks and counters.
    struct Reading: Equatable {
        var at: Duration
        /// The processor time of the thread that runs the rules, and of the whole process.
        var rules: Duration
        var process: Duration
        /// Media packets sent since the start.
        var packets: UInt64
    }

    /// Loads are averages over at least this time.
    static let interval = Duration.seconds(1)

    private var last: Reading?
    private(set) var load = NodeRecord.Load()

    /// Handles a reading.
    ///
    /// - Parameter mediaLoops: the number of threads for media. Their load is an average, in which all other work of the process
    ///   counts too.
    mutating func measure(_ reading: Reading, mediaLoops: Int, sockets: Int) {
        load.sockets = sockets
        guard let last else { return self.last = reading }
        let passed = reading.at - last.at
        guard passed >= Self.interval else { return }
        let rules = reading.rules - last.rules
        load.rules = Self.share(rules, of: passed)
        load.media = Self.share(reading.process - last.process - rules, of: passed * max(1, mediaLoops))
        load.packetsPerSecond = Int(Double(reading.packets &- last.packets) / (passed / .seconds(1)))
        self.last = reading
    }

    private static func share(_ part: Duration, of whole: Duration) -> Double { min(1, max(0, part / whole)) }

    /// Reads the clocks of the calling thread and of the process.
    static func read(packets: UInt64) -> Reading {
        Reading(
            at: read(CLOCK_MONOTONIC), rules: read(CLOCK_THREAD_CPUTIME_ID), process: read(CLOCK_PROCESS_CPUTIME_ID),
            packets: packets)
    }

    /// A `timespec` is two words, seconds and nanoseconds. Its members are not named, because the compiler finds their module in
    /// `CoreFoundation` or in the C library, depending on the other files of a batch, and only accepts the one that is imported.
    private static func read(_ clock: clockid_t) -> Duration {
        withUnsafeTemporaryAllocation(of: Int.self, capacity: 2) { words in
            words.initialize(repeating: 0)
            words.withMemoryRebound(to: timespec.self) { time in
                if let time = time.baseAddress { clock_gettime(clock, time) }
            }
            return .seconds(words[0]) + .nanoseconds(words[1])
        }
    }
}
