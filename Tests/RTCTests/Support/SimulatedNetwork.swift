import RTC
import TestSupport

/// How bad a network is. Reordering comes from delays that differ.
struct MediaWeather {
    /// Of a thousand datagrams.
    var losses = 0
    var duplicates = 0
    /// In milliseconds.
    var delay: ClosedRange<Int64> = 10...10
}

/// Hosts with sockets, and a network between them, in simulated time and from one seed.
final class SimulatedNetwork {
    private struct Flight {
        var at: MediaTime
        var order: Int
        var bytes: [UInt8]
        var from: TransportAddress
        var to: TransportAddress
    }

    private(set) var now = MediaTime(nanoseconds: 1_000_000_000)
    var weather: MediaWeather
    var random: SeededGenerator
    private var flying: [Flight] = []
    private var order = 0
    fileprivate var hosts: [SimulatedHost] = []
    private(set) var sent = 0
    /// Sees each datagram before the network takes it; false drops it.
    var filter: (([UInt8], _ from: TransportAddress, _ to: TransportAddress) -> Bool)?

    init(seed: UInt64, weather: MediaWeather = MediaWeather()) {
        random = SeededGenerator(seed: seed)
        self.weather = weather
    }

    func host(_ addresses: TransportAddress...) -> SimulatedHost {
        let host = SimulatedHost(self, addresses)
        hosts.append(host)
        return host
    }

    /// Anybody can send anything from anywhere.
    func inject(_ bytes: [UInt8], from: TransportAddress, to: TransportAddress) {
        sent += 1
        guard filter?(bytes, from, to) ?? true else { return }
        var copies = Int.random(in: 0..<1000, using: &random) < weather.losses ? 0 : 1
        if copies == 1, Int.random(in: 0..<1000, using: &random) < weather.duplicates { copies = 2 }
        for _ in 0..<copies {
            order += 1
            let delay = Int64.random(in: weather.delay, using: &random)
            flying.append(
                Flight(at: now + .milliseconds(delay), order: order, bytes: bytes, from: from, to: to))
        }
    }

    /// Runs until the condition holds, or for so long.
    @discardableResult
    func run(for interval: MediaInterval, until isDone: () -> Bool = { false }) -> Bool {
        let end = now + interval
        var steps = 0
        while !isDone() {
            let flight = flying.indices.min { (flying[$0].at, flying[$0].order) < (flying[$1].at, flying[$1].order) }
            let timer = hosts.compactMap { host in host.nextTimeout().map { (host, $0) } }.min { $0.1 < $1.1 }
            let next = [flight.map { flying[$0].at }, timer?.1].compactMap { $0 }.min()
            guard let next, next <= end else {
                now = end
                return isDone()
            }
            steps = next > now ? 0 : steps + 1
            precondition(steps < 10_000, "time stands still")
            now = max(now, next)
            if let flight, flying[flight].at <= now {
                let arrived = flying.remove(at: flight)
                for host in hosts { host.deliver(arrived.bytes, from: arrived.from, to: arrived.to) }
            } else {
                timer?.0.handleTimeout()
            }
        }
        return true
    }
}

/// A machine with a few sockets, numbered from 0 in the order of its addresses.
final class SimulatedHost: DatagramSink {
    private unowned let network: SimulatedNetwork
    /// What the others see. Changing one is what a NAT does when it forgets.
    var addresses: [TransportAddress]
    private let memory = UnsafeMutableRawBufferPointer.allocate(byteCount: 2048, alignment: 8)
    var receive: (UnsafeMutableRawBufferPointer, Path) -> Void = { _, _ in }
    var nextTimeout: () -> MediaTime? = { nil }
    var handleTimeout: () -> Void = {}

    fileprivate init(_ network: SimulatedNetwork, _ addresses: [TransportAddress]) {
        (self.network, self.addresses) = (network, addresses)
    }

    deinit { memory.deallocate() }

    func prepare(_ capacity: Int) -> UnsafeMutableRawBufferPointer {
        precondition(capacity <= memory.count)
        return memory
    }

    func send(_ count: Int, on path: Path) {
        network.inject(Array(memory.prefix(count)), from: addresses[Int(path.socket)], to: path.remote)
    }

    fileprivate func deliver(_ bytes: [UInt8], from: TransportAddress, to: TransportAddress) {
        guard let socket = addresses.firstIndex(of: to) else { return }
        var bytes = bytes
        bytes.withUnsafeMutableBytes { receive($0, Path(socket: UInt32(socket), remote: from)) }
    }
}

/// A transport on a host of its own.
final class SimulatedPeer {
    let network: SimulatedNetwork
    let host: SimulatedHost
    let transport: PeerTransport
    private(set) var packets: [[UInt8]] = []
    private(set) var reports: [[UInt8]] = []
    /// Each state with the time when it began.
    private(set) var states: [TransportState] = [.new]

    init(_ network: SimulatedNetwork, _ transport: PeerTransport, _ addresses: TransportAddress...) {
        (self.network, self.transport) = (network, transport)
        host = network.host(addresses[0])
        host.addresses = addresses
        host.receive = { [unowned self] bytes, path in take(bytes, path) }
        host.nextTimeout = { transport.nextTimeout }
        host.handleTimeout = { [unowned self] in
            transport.handleTimeout(now: network.now, sink: host)
            note()
        }
    }

    private func take(_ bytes: UnsafeMutableRawBufferPointer, _ path: Path) {
        switch transport.receive(bytes, on: path, now: network.now, sink: host) {
        case .rtp(let length): packets.append(Array(bytes[..<length]))
        case .rtcp(let length): reports.append(Array(bytes[..<length]))
        case .nothing: break
        }
        note()
    }

    private func note() {
        if states.last != transport.state { states.append(transport.state) }
    }

    var isConnected: Bool { transport.state == .connected }

    /// An RTP packet of 12 bytes of header and this payload, protected as the transport does; nil if it will not.
    func protected(_ payload: [UInt8], sequence: UInt16, ssrc: UInt32 = 7) -> [UInt8]? {
        var packet = [UInt8](repeating: 0, count: 1500)
        packet[0] = 0x80
        packet[1] = 96
        (packet[2], packet[3]) = (UInt8(sequence >> 8), UInt8(truncatingIfNeeded: sequence))
        packet[11] = UInt8(truncatingIfNeeded: ssrc)
        let length = packet.withUnsafeMutableBytes { packet in
            payload.withUnsafeBytes {
                transport.protect(
                    packet, headerLength: 12, prefix: UnsafeRawBufferPointer(start: nil, count: 0), payload: $0)
            }
        }
        return length.map { Array(packet.prefix($0)) }
    }

    @discardableResult
    func send(_ payload: [UInt8], sequence: UInt16) -> Bool {
        guard let packet = protected(payload, sequence: sequence), let path = transport.selectedPath else {
            return false
        }
        host.send(packet, on: path)
        return true
    }
}
