import CSockets
import Datagrams
import Foundation
import RTC
import Synchronization

/// A thread that runs many `RobotConnection`s, each with its own UDP socket.
///
/// `perform` and `run` schedule work on this thread. Connections must be created, used and closed on it.
///
/// ```swift
/// let loop = try RobotLoop()
/// let (connection, offer) = try await loop.run {
///     let connection = try loop.open()
///     return (connection, connection.offer([.video(mid: "v", .sendonly)]))
/// }
/// ```
///
/// The class is `@unchecked Sendable` because the inbox is locked and everything else is used only on the thread.
public final class RobotLoop: DatagramSink, @unchecked Sendable {
    /// The maximum number of reads from a socket before the other sockets get their turn.
    private static let readsPerTurn = 8
    private static let wakeTag: UInt32 = .max
    /// The maximum number of host candidates. A host has few networks, and checking more candidates only takes time.
    private static let maxCandidates = 4

    private let inbox: RobotInbox
    private let certificate: DTLSCertificate
    private let clockOrigin = NTPTime.monotonicOrigin

    // The following properties are used only on the thread.
    private let poller: any Poller
    private let io: any DatagramIO
    private let takesPieces: Bool
    private let stampsArrivals: Bool
    private var sockets: [DatagramSocket] = []
    private var connections: [RobotConnection?] = []
    private var free: [Int] = []
    private var due = DueQueue()
    private var arena: DatagramArena
    public private(set) var now = MediaTime.monotonic
    /// The number of datagrams that the kernel did not accept.
    public private(set) var unsent = 0

    /// Starts the thread. `stop` ends it.
    ///
    /// - Parameters:
    ///   - certificate: the certificate for all connections. If nil, a new one is created.
    ///   - yields: if true, an arriving datagram never makes this thread preempt another one. Otherwise, a load test
    ///     would interrupt the server while the server sends, and the load test's work would be counted as the
    ///     server's.
    ///   - stampsArrivals: if true, packets have the time at which the kernel received them, instead of the time at
    ///     which this thread read them. This keeps the thread's own delays out of measurements.
    /// - Throws: `RobotError` if the system is out of descriptors or OpenSSL fails.
    public init(certificate: DTLSCertificate? = nil, yields: Bool = false, stampsArrivals: Bool = false) throws {
        guard let certificate = certificate ?? DTLSCertificate.make() else {
            throw RobotError("OpenSSL could not create a certificate. Version 3.0 or newer is required.")
        }
        (self.certificate, self.stampsArrivals) = (certificate, stampsArrivals)
        inbox = try RobotInbox()
        #if os(Linux)
        poller = EpollPoller()
        let probe = try SocketOptions.datagram(TransportAddress(v4: 0, port: 0))
        takesPieces = SocketOptions.joinSegments(probe)
        io = BatchedDatagrams(probing: probe, takesPieces: takesPieces) ?? PlainDatagrams()
        close(probe)
        #else
        poller = PlainPoller()
        io = PlainDatagrams()
        takesPieces = false
        #endif
        arena = DatagramArena(joins: io.joins)
        poller.add(inbox.wakeDescriptor, tag: Self.wakeTag)
        // The thread retains the loop until the loop is stopped.
        Thread.detachNewThread { [self] in
            #if os(Linux)
            if yields { confab_give_way() }
            #endif
            live()
        }
    }

    // MARK: Any thread

    /// Runs `body` on the thread, after all work that was scheduled before.
    ///
    /// - Returns: false if the thread has ended and `body` will never run.
    @discardableResult
    public func perform(_ body: @escaping @Sendable () -> Void) -> Bool { inbox.add(body) }

    /// Runs `body` on the thread and returns its result. Throws the error that `body` throws, or `RobotError` if the
    /// thread has ended.
    public func run<Value: Sendable>(_ body: @escaping @Sendable () throws -> Value) async throws -> Value {
        try await withCheckedThrowingContinuation { continuation in
            let isTaken = inbox.add { continuation.resume(with: Result(catching: body)) }
            if !isTaken { continuation.resume(throwing: RobotError("The robots' thread has ended.")) }
        }
    }

    /// Ends the thread after all scheduled work. Closes the connections that are still open, and their sockets.
    public func stop() { inbox.end() }

    // MARK: On the thread

    /// Opens a connection with its own socket, on a port that the system chooses.
    ///
    /// - Parameter ipv6: whether the remote side is reached over IPv6.
    /// - Throws: an error if no socket can be opened.
    public func open(ipv6: Bool = false) throws -> RobotConnection {
        let address = ipv6 ? TransportAddress(high: 0, low: 0, port: 0) : TransportAddress(v4: 0, port: 0)
        let descriptor = try SocketOptions.datagram(address)
        if takesPieces { SocketOptions.joinSegments(descriptor) }
        if stampsArrivals { SocketOptions.stampArrivals(descriptor) }
        let index = free.popLast() ?? connections.count
        let connection = RobotConnection(
            certificate: certificate, sink: self, socket: UInt32(index), clockOrigin: clockOrigin)
        (connection.reachesIPv4, connection.reachesIPv6) = (!ipv6, ipv6)
        connection.onTimeoutChange = { [unowned self] in due.set(index, $0) }
        let socket = DatagramSocket(descriptor: descriptor, isIPv6: ipv6)
        if index == connections.count {
            connections.append(connection)
            sockets.append(socket)
        } else {
            (connections[index], sockets[index]) = (connection, socket)
        }
        poller.add(descriptor, tag: UInt32(index))
        return connection
    }

    /// Returns the local port of a connection's socket; nil if the connection has ended.
    public func port(of connection: RobotConnection) -> UInt16? {
        descriptor(of: connection).flatMap { SocketOptions.port(of: $0) }
    }

    /// Returns the descriptor of a connection's socket; nil if the connection has ended. For tests.
    func descriptor(of connection: RobotConnection) -> Int32? {
        owns(connection) ? sockets[Int(connection.socket)].descriptor : nil
    }

    /// Returns the host candidates of a connection, for IPv4 only.
    public func hostCandidates(of connection: RobotConnection) -> [Candidate] {
        guard let port = port(of: connection) else { return [] }
        return HostAddresses.ipv4().prefix(Self.maxCandidates).enumerated().map { index, address in
            // The priority combines type preference, local preference and component (RFC 8445 §5.1.2.1).
            let priority = UInt32(126) << 24 | UInt32(65_535 - index) << 8 | 255
            return Candidate(
                foundation: "\(index + 1)", transport: .udp, priority: priority,
                address: TransportAddress(v4: address, port: port))
        }
    }

    /// Sends BYE and closes the connection and its socket.
    public func end(_ connection: RobotConnection) {
        guard owns(connection) else { return }
        connection.close(now: now)
        sendAll()
        let index = Int(connection.socket)
        connection.onTimeoutChange = nil
        poller.remove(sockets[index].descriptor)
        close(sockets[index].descriptor)
        due.set(index, nil)
        connections[index] = nil
        free.append(index)
    }

    private func owns(_ connection: RobotConnection) -> Bool {
        let index = Int(connection.socket)
        return index < connections.count && connections[index] === connection
    }

    private func live() {
        var goesOn = true
        while goesOn {
            poller.wait(timeout) { tag, _, _ in
                if tag == Self.wakeTag { inbox.drainWakeup() } else { read(Int(tag)) }
            }
            now = .monotonic
            goesOn = inbox.takeAll { $0() }
            handleTimeouts()
            sendAll()
        }
        for connection in connections { if let connection { end(connection) } }
    }

    private var timeout: Int32 {
        guard let next = due.first?.at else { return -1 }
        let wait = next - MediaTime.monotonic
        return wait <= .zero ? 0 : Int32(clamping: (wait.nanoseconds + 999_999) / 1_000_000)
    }

    private func read(_ index: Int) {
        guard index < connections.count, let connection = connections[index] else { return }
        let socket = sockets[index]
        now = .monotonic
        for _ in 0..<Self.readsPerTurn {
            let now = now
            let count = io.receive(socket) { datagram, source, arrivedAt in
                connection.receive(
                    datagram, on: Path(socket: UInt32(index), remote: source), now: now,
                    arrivedAt: stampsArrivals ? arrivedAt : nil)
            }
            if count < io.burst { break }
        }
    }

    private func handleTimeouts() {
        // Handle each connection at most once per pass, so that a connection that is always due cannot starve the others.
        var left = connections.count
        while left > 0, let next = due.first, next.at <= now {
            left -= 1
            guard let connection = connections[next.number] else {
                due.set(next.number, nil)
                continue
            }
            connection.handleTimeout(now: now)
        }
    }

    // MARK: Sending (DatagramSink)

    public func prepare(_ capacity: Int) -> UnsafeMutableRawBufferPointer {
        if let memory = arena.prepare(capacity) { return memory }
        sendAll()
        // An empty arena has room for any datagram.
        return arena.prepare(capacity) ?? UnsafeMutableRawBufferPointer(start: nil, count: 0)
    }

    public func send(_ count: Int, on path: Path) { arena.commit(count, on: path) }

    private func sendAll() {
        guard !arena.isEmpty else { return }
        unsent += io.send(arena, on: sockets)
        arena.clear()
    }
}

/// An error that a robot reports, with a message for the user.
public struct RobotError: Error, CustomStringConvertible, Sendable {
    public var description: String
    public init(_ description: String) { self.description = description }
}

/// The work that other threads have scheduled on a loop.
final class RobotInbox: Sendable {
    /// The state that the lock protects.
    private struct State {
        var requests: [@Sendable () -> Void] = []
        var isOver = false
    }

    private let state = Mutex(State())
    private let readEnd: Int32
    private let writeEnd: Int32

    init() throws {
        var ends: [Int32] = [0, 0]
        guard pipe(&ends) == 0 else {
            throw RobotError("Could not create a pipe: \(String(cString: strerror(errno))).")
        }
        (readEnd, writeEnd) = (ends[0], ends[1])
        for end in ends { SocketOptions.makeNonBlocking(end) }
    }

    deinit {
        close(readEnd)
        close(writeEnd)
    }

    var wakeDescriptor: Int32 { readEnd }

    func add(_ request: @escaping @Sendable () -> Void) -> Bool {
        let (isTaken, isFirst) = state.withLock { state in
            guard !state.isOver else { return (false, false) }
            state.requests.append(request)
            return (true, state.requests.count == 1)
        }
        if isFirst { wake() }
        return isTaken
    }

    func end() {
        state.withLock { $0.isOver = true }
        wake()
    }

    private func wake() {
        var byte: UInt8 = 1
        _ = write(writeEnd, &byte, 1)
    }

    func drainWakeup() {
        withUnsafeTemporaryAllocation(byteCount: 64, alignment: 1) { bytes in
            while read(readEnd, bytes.baseAddress, bytes.count) > 0 {}
        }
    }

    /// Passes each scheduled piece of work to `body`.
    ///
    /// - Returns: false if the loop should end.
    func takeAll(_ body: (@Sendable () -> Void) -> Void) -> Bool {
        let (requests, isOver) = state.withLock { state in
            defer { state.requests = [] }
            return (state.requests, state.isOver)
        }
        for request in requests { body(request) }
        return !isOver
    }
}
