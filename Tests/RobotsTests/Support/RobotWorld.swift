import RTC
import TestSupport
import Testing

@testable import Peers
@testable import Robots
@testable import SFU

/// A router and robots on a simulated network. One seed determines everything that happens.
final class RobotWorld {
    static let server = TransportAddress(v4: 0x0a00_0001, port: 40_000)
    /// A certificate for all tests, because creating one takes longer than a test.
    static let certificate = DTLSCertificate.make()

    let network: SimulatedMediaNetwork
    let router: Router
    private let host: SimulatedHost
    private var tickAt: MediaTime
    private var robots = 0

    init(seed: UInt64, weather: NetworkConditions = NetworkConditions()) throws {
        network = SimulatedMediaNetwork(seed: seed, weather: weather)
        host = network.host(Self.server)
        let candidate = Candidate(foundation: "1", transport: .udp, priority: 100, address: Self.server)
        router = Router(
            settings: RouterSettings(candidates: [candidate], clockOrigin: NTPTime(0xe000_0000_0000_0000)),
            certificate: try #require(Self.certificate), sink: RouterSink(host), generator: SeededGenerator(seed: seed)
        )
        tickAt = network.now
        host.receive = { [unowned self] datagram, path in
            router.receive(datagram, on: path, now: network.now)
            router.flush(now: network.now)
        }
        host.nextTimeout = { [unowned self] in tickAt }
        host.handleTimeout = { [unowned self] in
            router.tick(now: network.now)
            _ = router.takeEvents()
            tickAt = network.now + Router.interval
        }
    }

    /// Creates a robot's connection on a separate host.
    func connection() throws -> RobotConnection {
        robots += 1
        let address = TransportAddress(v4: 0xc0a8_0000 | UInt32(robots), port: 5000)
        return try Self.connection(on: network, at: address)
    }

    static func connection(on network: SimulatedMediaNetwork, at address: TransportAddress) throws -> RobotConnection {
        let host = network.host(address)
        let connection = RobotConnection(
            certificate: try #require(certificate), sink: host, clockOrigin: NTPTime(0xd000_0000_0000_0000),
            random: SeededGenerator(seed: network.random.next())
        )
        host.receive = { [unowned network] in connection.receive($0, on: $1, now: network.now) }
        host.nextTimeout = { connection.nextTimeout }
        host.handleTimeout = { [unowned network] in connection.handleTimeout(now: network.now) }
        return connection
    }

    // MARK: Clients of the router

    static func client(_ number: UInt64) -> Key { Key(high: 1, low: number) }
    static func stream(_ number: UInt64) -> Key { Key(high: 2, low: number) }

    /// Passes the connection's offer to the router and applies the answer.
    func negotiate(_ connection: RobotConnection, _ number: UInt64, _ side: Side, _ offer: String) throws {
        let answer = try router.offer(Self.client(number), side, sdp: offer, now: network.now)
        try connection.accept(answer: answer, now: network.now)
    }

    /// Adds a client that publishes synthetic media.
    func publisher(_ number: UInt64) throws -> RobotConnection {
        let connection = try connection()
        let offer = connection.offer([.audio(mid: "a", .sendonly), .video(mid: "v", .sendonly)])
        connection.source = LoadSource(of: connection, now: network.now, phase: .milliseconds(Int64(number)))
        try negotiate(connection, number, .send, offer)
        router.publish(
            Self.stream(number), session: "s", client: Self.client(number), mids: Mids(audio: "a", video: "v"),
            audio: true, video: true
        )
        return connection
    }

    /// Adds a client that subscribes to these streams.
    func subscriber(_ number: UInt64, of publishers: [UInt64], handler: any RobotHandler) throws -> RobotConnection {
        let connection = try connection()
        connection.handler = handler
        let sections = publishers.indices.flatMap { slot in
            [OfferedMedia.audio(mid: "a\(slot)", .recvonly), .video(mid: "v\(slot)", .recvonly)]
        }
        try negotiate(connection, number, .receive, connection.offer(sections))
        for (slot, publisher) in publishers.enumerated() {
            router.subscribe(
                Self.stream(publisher), client: Self.client(number),
                mids: Mids(audio: "a\(slot)", video: "v\(slot)"), audio: true, video: true
            )
        }
        return connection
    }
}

private final class RouterSink: MediaSink {
    private let host: SimulatedHost
    init(_ host: SimulatedHost) { self.host = host }
    func prepare(_ capacity: Int) -> UnsafeMutableRawBufferPointer { host.prepare(capacity) }
    func send(_ count: Int, on path: Path) { host.send(count, on: path) }
    func queuedTime(on path: Path) -> MediaInterval { .zero }
}

/// Two robots without a server. One makes the offer, sends synthetic media and is the controlling ICE agent. The other
/// is ICE-lite.
struct RobotPair {
    let one: RobotConnection
    let other: RobotConnection
    let answer: String

    init(on network: SimulatedMediaNetwork, _ number: UInt32, _ witness: Witness) throws {
        one = try RobotWorld.connection(on: network, at: Self.near(number))
        other = try RobotWorld.connection(on: network, at: Self.far(number))
        other.handler = witness
        let offer = one.offer([.audio(mid: "a", .sendonly), .video(mid: "v", .sendonly)])
        let candidate = Candidate(foundation: "1", transport: .udp, priority: 100, address: Self.far(number))
        answer = try other.answer(offer: offer, candidates: [candidate], now: network.now)
        try one.accept(answer: answer, now: network.now)
        one.source = LoadSource(of: one, now: network.now, phase: .milliseconds(Int64(number)))
    }

    static func near(_ number: UInt32) -> TransportAddress { TransportAddress(v4: 0x0a00_0100 | number, port: 6000) }
    static func far(_ number: UInt32) -> TransportAddress { TransportAddress(v4: 0x0a00_0200 | number, port: 6000) }
}

/// Records the received packets.
final class Witness: RobotHandler {
    struct Arrival: Hashable {
        var mid: String
        var number: Int64
        var isRetransmission: Bool
        var at: MediaTime
        var sentAt: MediaTime?
        var timestamp: UInt32
        var payloadType: UInt8
        var ssrc: UInt32
        /// Whether a keyframe starts with this packet.
        var startsKeyframe: Bool
    }

    private(set) var arrivals: [Arrival] = []
    private(set) var states: [TransportState] = []

    func received(_ packet: RobotPacket, of reception: RobotReception, over connection: RobotConnection) {
        arrivals.append(
            Arrival(
                mid: reception.mid, number: packet.number, isRetransmission: packet.isRetransmission, at: packet.at,
                sentAt: LoadSource.sentAt(packet.payload, reception.kind), timestamp: packet.header.timestamp,
                payloadType: packet.header.payloadType, ssrc: packet.header.ssrc,
                startsKeyframe: reception.kind == .video
                    && VideoPayloadFormat.vp8.isKeyframeStart(packet.payload)
            ))
    }

    func stateChanged(of connection: RobotConnection) { states.append(connection.state) }

    func of(_ mid: String) -> [Arrival] { arrivals.filter { $0.mid == mid } }

    /// Returns the numbers of missing packets between the first and the last received one.
    func missing(_ mid: String) -> Set<Int64> {
        let numbers = Set(of(mid).map(\.number))
        guard let first = numbers.min(), let last = numbers.max() else { return [] }
        return Set(first...last).subtracting(numbers)
    }
}
