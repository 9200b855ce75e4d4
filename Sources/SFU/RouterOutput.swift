import RTC

/// Where the router's parts write: the datagrams for clients, the events for the router's owner, and the counters.
final class RouterOutput {
    let sink: any MediaSink
    var counters = RouterCounters()
    /// The latest time that the router's owner has passed, for what is recorded of requests, which have no time.
    var now = MediaTime(nanoseconds: 0)
    private var events: [RouterEvent] = []

    /// The maximum length of the reports in a datagram in bytes, before encryption.
    static let maxReport = 1200
    /// The maximum number of bytes by which a packet can grow: longer header extensions, the original sequence number
    /// of a retransmission, and the SRTP tag.
    static let maxGrowth = 128

    init(sink: any MediaSink) { self.sink = sink }

    func report(_ event: RouterEvent) { events.append(event) }

    /// Returns the events since the previous call and removes them.
    func takeEvents() -> [RouterEvent] {
        defer { events.removeAll(keepingCapacity: true) }
        return events
    }

    /// Encrypts the RTCP packets that `write` writes, and sends them.
    /// - Parameter limit: the maximum length of the packets, before encryption.
    /// - Returns: false if `write` wrote nothing, or more than fits.
    @discardableResult
    func sendControl(
        to link: PeerLink, on path: Path, limit: Int = maxReport, _ write: (inout ByteWriter) -> Bool
    ) -> Bool {
        let memory = sink.prepare(Self.maxReport + Self.maxGrowth)
        var writer = ByteWriter(UnsafeMutableRawBufferPointer(rebasing: memory[..<limit]))
        guard write(&writer), !writer.overflowed, writer.count > 0 else { return false }
        if let length = link.transport.protectControl(memory, length: writer.count) { sink.send(length, on: path) }
        return true
    }
}
