/// The media counters of a Confab server, read from `GET /metrics`. Missing counters are zero.
struct LoadCounters: Sendable {
    /// The number of packets received from publishers.
    var taken: Int64 = 0
    /// The number of packets forwarded to subscribers.
    var forwarded: Int64 = 0
    /// The number of packets sent to other nodes of a cluster.
    var relayed: Int64 = 0
    /// The number of packets that the server could not use.
    var dropped: Int64 = 0
    /// The number of datagrams that the server's kernel did not accept for sending.
    var unsent: Int64 = 0
    /// How long media waited in the server: the upper bounds of the histogram's buckets in seconds, ascending, and the
    /// cumulative counts.
    var waits: [(bound: Double, count: Int64)] = []

    init() {}

    /// Parses the counters in metrics.
    ///
    /// - Parameter text: the metrics in the Prometheus text format. Each line that does not begin with `#` contains a
    ///   name, a space and a number.
    init(exposition text: String) {
        for line in text.split(separator: "\n") where !line.hasPrefix("#") {
            let fields = line.split(separator: " ")
            guard fields.count >= 2, let value = Double(fields[1]), let count = Int64(exactly: value.rounded()) else {
                continue
            }
            switch fields[0] {
            case "confab_media_packets_received": taken = count
            case "confab_media_packets_forwarded": forwarded = count
            case "confab_media_packets_relayed_total": relayed = count
            case "confab_media_packets_dropped": dropped = count
            case "confab_media_datagrams_unsent": unsent = count
            default:
                if let bound = fields[0].wholeMatch(of: /confab_media_wait_seconds_bucket\{le="([^"]+)"\}/).flatMap({
                    Double($0.1)
                }) {
                    waits.append((bound, count))
                }
            }
        }
    }

    /// Adds the counters of another server, without its waits.
    static func += (total: inout LoadCounters, other: LoadCounters) {
        total.taken += other.taken
        total.forwarded += other.forwarded
        total.relayed += other.relayed
        total.dropped += other.dropped
        total.unsent += other.unsent
    }

    /// Returns the number of waits in each bucket since earlier counters. The last bucket has no bound.
    func waits(since earlier: LoadCounters) -> [(bound: Double, count: Int64)] {
        var below: Int64 = 0
        return waits.enumerated().map { index, bucket in
            let before = earlier.waits.indices.contains(index) ? earlier.waits[index].count : 0
            let total = bucket.count - before
            defer { below = total }
            return (bucket.bound, total - below)
        }
    }
}
