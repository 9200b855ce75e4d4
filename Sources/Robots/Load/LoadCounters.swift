/// Media counters of a Confab server from `GET /metrics`. Missing ones are zero.
struct LoadCounters: Sendable {
    /// Packets received from publishers, and packets forwarded to subscribers.
    var taken: Int64 = 0
    var forwarded: Int64 = 0
    /// Packets the server could not use, and datagrams its kernel did not accept for sending.
    var dropped: Int64 = 0
    var unsent: Int64 = 0

    init() {}

    /// - Parameter text: the Prometheus text format. Each line that does not begin with `#` has a name, a space and a
    ///   number.
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
