/// What a Confab counted of its media, as its `GET /metrics` says it. Zero of a server that does not say.
struct LoadCounters: Sendable {
    /// Packets from publishers, and packets to subscribers.
    var taken: Int64 = 0
    var forwarded: Int64 = 0
    /// Packets that it could not use, and datagrams that the system did not take from it.
    var dropped: Int64 = 0
    var unsent: Int64 = 0

    init() {}

    /// - Parameter text: Prometheus' format: a name, a space and a number in each line that does not begin with `#`.
    init(exposition text: String) {
        for line in text.split(separator: "\n") where !line.hasPrefix("#") {
            let fields = line.split(separator: " ")
            guard fields.count >= 2, let value = Double(fields[1]), let count = Int64(exactly: value.rounded()) else {
                continue
            }
            switch fields[0] {
            case "confab_media_packets_received": taken = count
            case "confab_media_packets_forwarded": forwarded = count
            case "confab_media_packets_dropped": dropped = count
            case "confab_media_datagrams_unsent": unsent = count
            default: break
            }
        }
    }
}
