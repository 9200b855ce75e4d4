import CAllocations
import RTC
import TestSupport
import Testing

@testable import SFU

/// Sends a router's datagrams to the simulated network. For TCP, the test sets how long the send queue is.
final class SimulatedSink: MediaSink {
    let host: SimulatedHost
    /// The socket numbers of TCP connections, by remote address.
    var streams: [TransportAddress: UInt32] = [:]
    var queued: [TransportAddress: MediaInterval] = [:]
    private(set) var sentBytes: [TransportAddress: Int] = [:]
    /// Called with each datagram that is sent.
    var sending: (UnsafeRawBufferPointer, Path) -> Void = { _, _ in }

    init(_ host: SimulatedHost) { self.host = host }

    func prepare(_ capacity: Int) -> UnsafeMutableRawBufferPointer { host.prepare(capacity) }

    func send(_ count: Int, on path: Path) {
        // Do not count the simulated network's allocations as the router's.
        let counted = confab_allocations_pause()
        defer { confab_allocations_resume(counted) }
        sentBytes[path.remote, default: 0] += count
        sending(UnsafeRawBufferPointer(rebasing: host.prepare(count)[..<count]), path)
        host.send(count, on: Path(socket: 0, remote: path.remote))
    }

    func queuedTime(on path: Path) -> MediaInterval { queued[path.remote] ?? .zero }

    func path(_ path: Path) -> Path {
        guard let socket = streams[path.remote] else { return path }
        return Path(socket: socket, isTCP: true, remote: path.remote)
    }
}

struct AllocationCount {
    var isOn = false
    private(set) var total: UInt64 = 0

    mutating func count(_ body: () -> Void) {
        guard isOn else { return body() }
        confab_allocations_begin()
        body()
        total += confab_allocations_end()
    }
}

/// A router on a host of a simulated network. Like the media loop, it passes several datagrams to the router at once,
/// in memory that is reused afterwards.
final class SimulatedServer {
    /// The address of the first event loop.
    static let address = TransportAddress(v4: 0x0a00_0001, port: 40_000)
    /// The time until the server runs after another event loop has woken it.
    private static let wakeTime = MediaInterval(nanoseconds: 100_000)
    /// A certificate for all tests, because creating one takes longer than a test.
    private static let certificate = DTLSCertificate.make()
    private static let burst = 4
    static var fingerprint: Fingerprint? { certificate?.fingerprint }

    /// The number of the router's allocations for datagrams and for ticks, counted only while `isOn`.
    var onPackets = AllocationCount()
    var onTicks = AllocationCount()
    /// Called after each flush with the number of packets forwarded before it.
    var flushed: (_ before: UInt64) -> Void = { _ in }
    /// Records what the router sends; nil in tests that record nothing.
    var recorder: TraceRecorder? {
        didSet { sink.sending = { [recorder, network] in recorder?.record(sent: $0, on: $1, at: network.now) } }
    }
    let network: SimulatedMediaNetwork
    let address: TransportAddress
    let sink: SimulatedSink
    let router: Router
    private(set) var events: [RouterEvent] = []
    /// Events about opened and lost connections. They are not in `events`, because most tests do not need them.
    private(set) var connections: [RouterEvent] = []
    /// What was reported to publishers about the need for their videos. It is not in `events` either.
    private(set) var wanted: [LayersWanted] = []
    /// The events of each relay, in order: whether it can carry media, the limits it has reached, and the layers it does not carry.
    private(set) var relayChanges: [RelayEvent] = []
    /// Passes credentials to the other end of a relay.
    var pass: (RelayID, _ attempt: UInt32, ICECredentials) -> Void = { _, _, _ in }
    private var tickAt: MediaTime
    private var flushAt: MediaTime?
    private var held: [UnsafeMutableRawBufferPointer] = []
    private var heldCount = 0

    /// - Parameters:
    ///   - pipes: connects the routers of several event loops.
    ///   - loop: the index of the server's event loop.
    ///   - node: the index of the server among the nodes of a cluster.
    init(
        _ network: SimulatedMediaNetwork, seed: UInt64, longestFlush: Int? = nil, pipes: PipeRings? = nil,
        loop: Int = 0, node: Int = 0, adjust: (inout RouterSettings) -> Void = { _ in }
    ) throws {
        self.network = network
        address = TransportAddress(v4: 0x0a00_0001 + UInt32(node), port: Self.address.port + UInt16(loop))
        sink = SimulatedSink(network.host(address))
        let candidate = Candidate(foundation: "1", transport: .udp, priority: 100, address: address)
        var settings = RouterSettings(candidates: [candidate], clockOrigin: NTPTime(0xe000_0000_0000_0000))
        if let longestFlush { settings.longestFlush = longestFlush }
        adjust(&settings)
        router = Router(
            settings: settings,
            certificate: try #require(Self.certificate), sink: sink,
            generator: SeededGenerator(seed: seed &+ UInt64(loop) &+ UInt64(node) << 32),
            pipes: pipes, loop: loop)
        tickAt = network.now
        for _ in 0..<Self.burst { held.append(.allocate(byteCount: 2048, alignment: 16)) }
        sink.host.receive = { [unowned self] in receive($0, on: $1) }
        sink.host.nextTimeout = { [unowned self] in ticks ? min(tickAt, flushAt ?? tickAt) : flushAt }
        sink.host.handleTimeout = { [unowned self] in handleTimeout() }
    }

    deinit { for memory in held { memory.deallocate() } }

    /// Like a media loop, one of several does not tick while it is idle.
    private var ticks: Bool { !router.pipes.isConnected || !router.isIdle }

    /// Lets the server run soon, because another event loop has sent something.
    func wake() {
        let at = network.now + Self.wakeTime
        flushAt = min(flushAt ?? at, at)
    }

    /// Does what an event loop does before it waits.
    private func wait() { if !router.beginWait() { wake() } }

    private func receive(_ datagram: UnsafeMutableRawBufferPointer, on path: Path) {
        held[heldCount].copyMemory(from: UnsafeRawBufferPointer(datagram))
        let memory = UnsafeMutableRawBufferPointer(rebasing: held[heldCount][..<datagram.count])
        heldCount += 1
        let path = sink.path(path)
        // RFC 7983 §7: other first bytes are checks and handshakes, which are rare.
        if (128...191).contains(datagram[0]) {
            onPackets.count { router.receive(memory, on: path, now: network.now) }
        } else {
            router.receive(memory, on: path, now: network.now)
        }
        if heldCount == Self.burst { flush() } else if flushAt == nil { flushAt = network.now + .milliseconds(1) }
    }

    private func flush() {
        let before = router.counters.packetsForwarded
        onPackets.count { router.flush(now: network.now) }
        flushed(before)
        for memory in held { for index in memory.indices { memory[index] = 0xaa } }
        heldCount = 0
        flushAt = router.hasMore ? network.now + .milliseconds(1) : nil
        wait()
    }

    private func handleTimeout() {
        if let flushAt, flushAt <= network.now { flush() }
        guard ticks, tickAt <= network.now else { return }
        onTicks.count { router.tick(now: network.now) }
        wait()
        tickAt = network.now + Router.interval
        for event in router.takeRelayEvents() {
            switch event {
            case .credentials(let id, let attempt, let credentials): pass(id, attempt, credentials)
            case .connected, .full, .thinned: relayChanges.append(event)
            }
        }
        let new = router.takeEvents()
        recorder?.record(new, at: network.now)
        for event in new {
            switch event {
            case .connected: connections.append(event)
            case .layersWanted(let news): wanted.append(news)
            default: events.append(event)
            }
        }
    }
}
