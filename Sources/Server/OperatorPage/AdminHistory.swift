import DequeModule
import Wire

/// What the server does at one moment.
struct AdminFigures: Equatable, Sendable {
    var clients = 0
    var people = 0
    var sessions = 0
    var rooms = 0
    var waiting = 0
    var matches = 0
    var activeCalls = 0
    var archives = 0
    var broadcasts = 0
}

/// What the server has done since it started. The totals only grow.
struct AdminTotals: Equatable, Sendable {
    /// CPU time of the process in seconds; nil if the system does not report it.
    var cpuSeconds: Double?
    /// Bytes of UDP datagrams, without the headers of UDP and IP.
    var bytesIn: UInt64 = 0
    var bytesOut: UInt64 = 0
    var packetsForwarded: UInt64 = 0
    /// Changes of the video layer that is forwarded to a subscriber.
    var switches: UInt64 = 0
}

/// The figures at one moment, with what happened per second since the sample before.
struct AdminSample: Equatable, Sendable {
    var at: Timestamp
    var figures: AdminFigures
    /// CPU cores in use; nil if unknown.
    var cores: Double?
    var bitsIn = 0.0
    var bitsOut = 0.0
    var packets = 0.0
    var switches = 0.0
}

/// The samples of the last hour.
struct AdminHistory: Sendable {
    /// The time between two samples.
    static let interval: Duration = .seconds(5)
    /// The number of samples that are kept: an hour. They take about 120 KB.
    static let maxSamples = 720

    private var kept: Deque<AdminSample> = []
    /// The oldest first.
    var samples: [AdminSample] { Array(kept) }
    /// The time of the newest sample; nil if there is none.
    var newest: Timestamp? { kept.last?.at }
    private var last: (at: Timestamp, totals: AdminTotals)?

    /// Adds a sample. The first one has no rates, because there is nothing to compare it with.
    ///
    /// - Parameters:
    ///   - now: the time of the clock that never jumps, for the rates.
    ///   - wallNow: the time that the sample shows.
    mutating func add(_ figures: AdminFigures, _ totals: AdminTotals, at now: Timestamp, wallNow: Timestamp) {
        var sample = AdminSample(at: wallNow, figures: figures)
        if let last, last.at < now {
            let seconds = Double((now - last.at).wholeMilliseconds) / 1000
            func rate(_ total: KeyPath<AdminTotals, UInt64>) -> Double {
                let (before, after) = (last.totals[keyPath: total], totals[keyPath: total])
                return after > before ? Double(after - before) / seconds : 0
            }
            (sample.bitsIn, sample.bitsOut) = (8 * rate(\.bytesIn), 8 * rate(\.bytesOut))
            (sample.packets, sample.switches) = (rate(\.packetsForwarded), rate(\.switches))
            if let before = last.totals.cpuSeconds, let after = totals.cpuSeconds {
                sample.cores = max(0, after - before) / seconds
            }
        }
        last = (now, totals)
        if kept.count >= Self.maxSamples { kept.removeFirst() }
        kept.append(sample)
    }
}
