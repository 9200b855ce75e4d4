import RTC
import SFU
import TestSupport
import Testing

/// A room whose router is recorded. Only media is lost, because the number of a handshake's datagrams can differ between runs.
final class RecordedRoom {
    let room: SimulatedRoom
    let recorder: TraceRecorder
    /// Random numbers for the script.
    var random: SeededGenerator
    private var lossesFrom: [TransportAddress: (perThousand: Int, random: SeededGenerator)] = [:]
    /// Media from the first address is sent from the second one instead.
    var redirected: [TransportAddress: TransportAddress] = [:]

    init(
        seed: UInt64, interval: MediaInterval, keepsPackets: Bool, adjust: (inout RouterSettings) -> Void
    ) throws {
        room = try SimulatedRoom(seed: seed, adjust: adjust)
        random = SeededGenerator(seed: seed &+ 9)
        recorder = TraceRecorder(interval: interval, from: room.network.now, keepsPackets: keepsPackets)
        room.server.recorder = recorder
        room.network.filter = { [unowned self] in passes($0, from: $1, to: $2) }
    }

    var router: Router { room.router }
    var network: SimulatedMediaNetwork { room.network }

    /// Creates a client. The script connects it.
    func client(in session: String = "s") -> SimulatedClient {
        let client = room.client()
        client.session = session
        return client
    }

    /// Creates clients that publish and can subscribe, and connects them.
    func clients(_ count: Int, slots: Int = 2) throws -> [SimulatedClient] { try room.clients(count, slots: slots) }

    func run(_ milliseconds: Int64) { room.run(milliseconds) }

    /// Writes a step of the script between the recorded lines.
    func note(_ step: String) { recorder.note("# \(step)", at: network.now) }

    // MARK: The network

    /// Drops packets that arrive at this connection, after they have been recorded.
    func lose(_ perThousand: Int, to connection: SimulatedConnection?) {
        var random = SeededGenerator(seed: random.next())
        connection?.loses = { _ in perThousand > 0 && Int.random(in: 0..<1000, using: &random) < perThousand }
    }

    /// Drops packets that this connection sends.
    func lose(_ perThousand: Int, from connection: SimulatedConnection?) {
        guard let address = connection?.address else { return }
        lossesFrom[address] = (perThousand, SeededGenerator(seed: random.next()))
    }

    /// Puts a subscriber behind a slow link, or, with nil, ends that.
    func squeeze(
        _ client: SimulatedClient, to bitsPerSecond: Int64?, queue: MediaInterval = .milliseconds(300)
    ) throws {
        let address = try #require(client.receive).address
        network.links[address] = bitsPerSecond.map { SimulatedLink(bitsPerSecond: $0, longestQueue: queue) }
    }

    private func passes(_ datagram: [UInt8], from: TransportAddress, to: TransportAddress) -> Bool {
        // RFC 7983 §7: everything else is a connectivity check or part of a handshake.
        guard (128...191).contains(datagram[0]) else { return true }
        if let other = redirected[from] {
            network.inject(datagram, from: other, to: to)
            return false
        }
        guard var losses = lossesFrom[from], losses.perThousand > 0 else { return true }
        let draw = Int.random(in: 0..<1000, using: &losses.random)
        lossesFrom[from] = losses
        return draw >= losses.perThousand
    }

    // MARK: The end

    func noteEstimates() {
        let estimates = room.clients.compactMap { client in
            router.estimate(of: client.key).map { "\(client.number):\($0)" }
        }
        note("estimates \(estimates.isEmpty ? "-" : estimates.joined(separator: " "))")
    }

    /// Ends the recording with the router's counters, and returns its lines.
    func finish() -> [String] {
        noteEstimates()
        recorder.finish()
        let counters = Mirror(reflecting: router.counters).children.map { "\($0.label ?? "?") \($0.value)" }
        return recorder.lines + counters + ["peers \(router.peerCount)", "idle \(router.isIdle)"]
    }
}
