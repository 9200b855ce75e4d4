import RTC

/// The loss, duplication and delay of a simulated network. Datagrams are reordered if their delays differ.
public struct NetworkConditions {
    /// The number of datagrams per thousand that are lost.
    public var losses: Int
    /// The number of datagrams per thousand that arrive twice.
    public var duplicates: Int
    /// The range of delays in milliseconds.
    public var delay: ClosedRange<Int64>

    public init(losses: Int = 0, duplicates: Int = 0, delay: ClosedRange<Int64> = 10...10) {
        (self.losses, self.duplicates, self.delay) = (losses, duplicates, delay)
    }
}

/// A slow link to one host: datagrams wait in a queue while the link is busy, and are lost if the queue is full.
public struct SimulatedLink {
    /// The number of bits that the link carries in a second.
    public var bitsPerSecond: Int64
    /// The longest time that a datagram waits in the queue. A datagram that would wait longer is lost.
    public var longestQueue: MediaInterval
    /// How many bytes may pass at once after a pause (the burst of a token bucket).
    public var burst: Int
    /// The longest waiting and transmission time of a datagram since a test last reset this property.
    public var longestWait = MediaInterval.zero
    /// The number of lost datagrams since a test last reset this property.
    public var lost = 0
    private var freeAt = MediaTime(nanoseconds: 0)

    public init(bitsPerSecond: Int64, longestQueue: MediaInterval = .milliseconds(300), burst: Int = 0) {
        (self.bitsPerSecond, self.longestQueue, self.burst) = (bitsPerSecond, longestQueue, burst)
    }

    /// Returns the waiting and transmission time of a datagram; nil if it is lost.
    mutating func delay(of bytes: Int, now: MediaTime) -> MediaInterval? {
        // The tokens saved during a pause let a burst pass as if it had been sent that much earlier.
        let start = max(MediaTime(nanoseconds: now.nanoseconds - time(for: burst).nanoseconds), freeAt)
        guard start - now <= longestQueue else {
            lost += 1
            return nil
        }
        // The headers of UDP and IP take 28 bytes.
        freeAt = start + time(for: bytes + 28)
        let wait = max(.zero, freeAt - now)
        longestWait = max(longestWait, wait)
        return wait
    }

    /// Returns how long a datagram that is sent now would wait in the queue.
    public func waiting(at now: MediaTime) -> MediaInterval { max(.zero, freeAt - now) }

    private func time(for bytes: Int) -> MediaInterval {
        MediaInterval(nanoseconds: Int64(bytes) * 8_000_000_000 / bitsPerSecond)
    }
}

/// Hosts connected by a network in simulated time. A seed determines the whole run.
public final class SimulatedMediaNetwork {
    /// A datagram in flight, and when it arrives.
    private struct Flight {
        var at: MediaTime
        var bytes: [UInt8]
        var from: TransportAddress
        var to: TransportAddress
    }

    public private(set) var now = MediaTime(nanoseconds: 1_000_000_000)
    public var weather: NetworkConditions
    public var random: SeededGenerator
    /// Datagrams in flight, sorted so that the last element arrives next. Datagrams that arrive at the same time keep the order
    /// in which they were sent.
    private var flying: [Flight] = []
    fileprivate var hosts: [SimulatedHost] = []
    public private(set) var sent = 0
    /// The slow links, keyed by the address of the host behind each.
    public var links: [TransportAddress: SimulatedLink] = [:]
    /// A function that is called with each datagram before the datagram enters the network, and returns false to drop
    /// it; nil to drop none.
    public var filter: (([UInt8], _ from: TransportAddress, _ to: TransportAddress) -> Bool)?

    public init(seed: UInt64, weather: NetworkConditions = NetworkConditions()) {
        random = SeededGenerator(seed: seed)
        self.weather = weather
    }

    public func host(_ addresses: TransportAddress...) -> SimulatedHost {
        let host = SimulatedHost(self, addresses)
        hosts.append(host)
        return host
    }

    /// Sends a datagram with any source address.
    public func inject(_ bytes: [UInt8], from: TransportAddress, to: TransportAddress) {
        sent += 1
        guard filter?(bytes, from, to) ?? true else { return }
        var copies = Int.random(in: 0..<1000, using: &random) < weather.losses ? 0 : 1
        if copies == 1, Int.random(in: 0..<1000, using: &random) < weather.duplicates { copies = 2 }
        for _ in 0..<copies {
            let delay = Int64.random(in: weather.delay, using: &random)
            var at = now + .milliseconds(delay)
            if links[to] != nil {
                guard let wait = links[to]?.delay(of: bytes.count, now: now) else { continue }
                at = MediaTime(nanoseconds: at.nanoseconds + wait.nanoseconds)
            }
            insert(Flight(at: at, bytes: bytes, from: from, to: to))
        }
    }

    private func insert(_ flight: Flight) {
        var (low, high) = (0, flying.count)
        while low < high {
            let middle = (low + high) / 2
            if flying[middle].at > flight.at { low = middle + 1 } else { high = middle }
        }
        flying.insert(flight, at: low)
    }

    /// Runs until the condition is true or the interval has passed. Returns whether the condition is true.
    @discardableResult
    public func run(for interval: MediaInterval, until isDone: () -> Bool = { false }) -> Bool {
        let end = now + interval
        var steps = 0
        while !isDone() {
            let timer = nextTimer()
            let next = min(flying.last?.at ?? Self.never, timer?.at ?? Self.never)
            guard next <= end else {
                now = end
                return isDone()
            }
            steps = next > now ? 0 : steps + 1
            precondition(steps < 10_000, "time stands still")
            now = max(now, next)
            if let arrived = flying.last, arrived.at <= now {
                flying.removeLast()
                for host in hosts { host.deliver(arrived.bytes, from: arrived.from, to: arrived.to) }
            } else {
                timer?.host.handleTimeout()
            }
        }
        return true
    }

    private static let never = MediaTime(nanoseconds: .max)

    private func nextTimer() -> (host: SimulatedHost, at: MediaTime)? {
        var next: (host: SimulatedHost, at: MediaTime)?
        for host in hosts {
            guard let at = host.nextTimeout(), next.map({ at < $0.at }) ?? true else { continue }
            next = (host, at)
        }
        return next
    }
}

/// A host with sockets, numbered from 0 in the order of its addresses.
public final class SimulatedHost: DatagramSink {
    private unowned let network: SimulatedMediaNetwork
    /// The addresses that other hosts see. Changing one simulates a NAT rebinding.
    public var addresses: [TransportAddress]
    private let memory = UnsafeMutableRawBufferPointer.allocate(byteCount: 2048, alignment: 8)
    public var receive: (UnsafeMutableRawBufferPointer, Path) -> Void = { _, _ in }
    public var nextTimeout: () -> MediaTime? = { nil }
    public var handleTimeout: () -> Void = {}

    fileprivate init(_ network: SimulatedMediaNetwork, _ addresses: [TransportAddress]) {
        (self.network, self.addresses) = (network, addresses)
    }

    deinit { memory.deallocate() }

    public func prepare(_ capacity: Int) -> UnsafeMutableRawBufferPointer {
        precondition(capacity <= memory.count)
        return memory
    }

    public func send(_ count: Int, on path: Path) {
        network.inject(Array(memory.prefix(count)), from: addresses[Int(path.socket)], to: path.remote)
    }

    fileprivate func deliver(_ bytes: [UInt8], from: TransportAddress, to: TransportAddress) {
        guard let socket = addresses.firstIndex(of: to) else { return }
        var bytes = bytes
        bytes.withUnsafeMutableBytes { receive($0, Path(socket: UInt32(socket), remote: from)) }
    }
}

/// A peer transport on its own simulated host.
public final class SimulatedPeer {
    public let network: SimulatedMediaNetwork
    public let host: SimulatedHost
    public let transport: PeerTransport
    public private(set) var packets: [[UInt8]] = []
    public private(set) var reports: [[UInt8]] = []
    /// All states of the transport so far, in order. Consecutive states differ.
    public private(set) var states: [TransportState] = [.new]

    public init(_ network: SimulatedMediaNetwork, _ transport: PeerTransport, _ addresses: TransportAddress...) {
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

    public var isConnected: Bool { transport.state == .connected }

    /// Returns a protected RTP packet with a 12-byte header and this payload; nil if the transport refuses to protect it.
    public func protected(_ payload: [UInt8], sequence: UInt16, ssrc: UInt32 = 7) -> [UInt8]? {
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
    public func send(_ payload: [UInt8], sequence: UInt16) -> Bool {
        guard let packet = protected(payload, sequence: sequence), let path = transport.selectedPath else {
            return false
        }
        host.send(packet, on: path)
        return true
    }
}
