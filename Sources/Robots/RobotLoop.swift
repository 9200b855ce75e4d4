import CSockets
import Datagrams
import Foundation
import RTC
import Synchronization

/// One thread that gives many `RobotConnection`s what they lack: a UDP socket each, and the time.
///
/// `perform` and `run` bring work to the thread; everything else belongs on it. Connections are made, used and ended
/// there.
///
/// ```swift
/// let loop = try RobotLoop()
/// let (connection, offer) = try await loop.run {
///     let connection = try loop.open()
///     return (connection, connection.offer([.video(mid: "v", .sendonly)]))
/// }
/// ```
/// Unchecked: the inbox is locked, the rest is the thread's own.
public final class RobotLoop: DatagramSink, @unchecked Sendable {
    /// Reads of one socket before the others have their turn.
    private static let readsPerTurn = 8
    private static let wakeTag: UInt32 = .max
    /// A machine has a few networks; checks of more only take time.
    private static let mostCandidates = 4

    private let inbox: RobotInbox
    private let certificate: DTLSCertificate
    private let clockOrigin = NTPTime.monotonicOrigin

    // The thread's own from here.
    private let poller: any Poller
    private let io: any DatagramIO
    private let takesPieces: Bool
    private var sockets: [DatagramSocket] = []
    private var connections: [RobotConnection?] = []
    private var free: [Int] = []
    private var due = DueQueue()
    private var arena: DatagramArena
    public private(set) var now = MediaTime.monotonic
    /// Datagrams that the system did not take.
    public private(set) var unsent = 0

    /// Starts the thread; `stop` ends it.
    /// - Parameters:
    ///   - certificate: of all its connections; one is made without it.
    ///   - givesWay: whether it never interrupts another thread because a datagram came for it. A load that does would
    ///     interrupt the server it measures in the middle of sending, and be counted as its work.
    /// - Throws: a sentence when the system has no descriptors left, or OpenSSL no randomness.
    public init(certificate: DTLSCertificate? = nil, givesWay: Bool = false) throws {
        guard let certificate = certificate ?? DTLSCertificate.make() else {
            throw RobotError("OpenSSL makes no certificate. Is its version 3.0 or newer?")
        }
        self.certificate = certificate
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
        // The thread holds the loop until it is stopped.
        Thread.detachNewThread { [self] in
            #if os(Linux)
            if givesWay { confab_give_way() }
            #endif
            live()
        }
    }

    // MARK: Any thread

    /// Has it done on the thread, in the order of the calls.
    /// - Returns: false when the thread has ended, and it will never be done.
    @discardableResult
    public func perform(_ body: @escaping @Sendable () -> Void) -> Bool { inbox.add(body) }

    /// Has it done on the thread, and comes back with what came of it.
    public func run<Value: Sendable>(_ body: @escaping @Sendable () throws -> Value) async throws -> Value {
        try await withCheckedThrowingContinuation { continuation in
            let isTaken = inbox.add { continuation.resume(with: Result(catching: body)) }
            if !isTaken { continuation.resume(throwing: RobotError("The robots' thread has ended.")) }
        }
    }

    /// Ends the thread after what was asked before, and closes its sockets. Connections should have been closed.
    public func stop() { inbox.end() }

    // MARK: On the thread

    /// Makes a connection with a socket of its own, at a port that the system chooses.
    /// - Parameter ipv6: whether the other end is reached by IPv6.
    /// - Throws: a sentence when there is no socket to be had.
    public func open(ipv6: Bool = false) throws -> RobotConnection {
        let address = ipv6 ? TransportAddress(high: 0, low: 0, port: 0) : TransportAddress(v4: 0, port: 0)
        let descriptor = try SocketOptions.datagram(address)
        if takesPieces { SocketOptions.joinSegments(descriptor) }
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

    /// The port of a connection's socket on this machine.
    public func port(of connection: RobotConnection) -> UInt16? {
        guard owns(connection) else { return nil }
        return SocketOptions.port(of: sockets[Int(connection.socket)].descriptor)
    }

    /// Where it can be reached from this machine and its networks, over IPv4.
    public func hostCandidates(of connection: RobotConnection) -> [Candidate] {
        guard let port = port(of: connection) else { return [] }
        return HostAddresses.ipv4().prefix(Self.mostCandidates).enumerated().map { index, address in
            // RFC 8445 §5.1.2.1: the type's preference, the address's own, and the component.
            let priority = UInt32(126) << 24 | UInt32(65_535 - index) << 8 | 255
            return Candidate(
                foundation: "\(index + 1)", transport: .udp, priority: priority,
                address: TransportAddress(v4: address, port: port))
        }
    }

    /// Says farewell and closes the socket.
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
                if tag == Self.wakeTag { inbox.heard() } else { read(Int(tag)) }
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
            let count = io.receive(socket) { datagram, source in
                connection.receive(datagram, on: Path(socket: UInt32(index), remote: source), now: now)
            }
            if count < io.burst { break }
        }
    }

    private func handleTimeouts() {
        // Each once: whoever is due again at once waits for the others.
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

/// Why a robot cannot work, in a sentence.
public struct RobotError: Error, CustomStringConvertible, Sendable {
    public var description: String
    public init(_ description: String) { self.description = description }
}

/// What other threads asked a loop for.
final class RobotInbox: Sendable {
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
            throw RobotError("A pipe cannot be made: \(String(cString: strerror(errno))).")
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

    func heard() {
        withUnsafeTemporaryAllocation(byteCount: 64, alignment: 1) { bytes in
            while read(readEnd, bytes.baseAddress, bytes.count) > 0 {}
        }
    }

    /// Does what was asked for.
    /// - Returns: false when it is over.
    func takeAll(_ body: (@Sendable () -> Void) -> Void) -> Bool {
        let (requests, isOver) = state.withLock { state in
            defer { state.requests = [] }
            return (state.requests, state.isOver)
        }
        for request in requests { body(request) }
        return !isOver
    }
}
