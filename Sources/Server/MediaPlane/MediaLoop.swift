import CSockets
import Datagrams
import DequeModule
import Foundation
import RTC
import SFU

/// A thread that owns a router and its sockets. It reads datagrams, passes them to the router, and sends the router's output.
///
/// It makes no decisions about media. Invariant: everything in this type runs on the loop's thread. Other threads use
/// the inbox.
final class MediaLoop: MediaSink {
    /// The sockets of the loop.
    struct Sockets: Sendable {
        /// UDP sockets. The index is the socket number in `Path`.
        var datagram: [(descriptor: Int32, isIPv6: Bool)] = []
        var listeners: [Int32] = []
    }

    /// Maximum number of TCP connections, if enough file descriptors are available. Each takes at least 16 KiB. One
    /// address (an IPv6 /56 counts as one) may have at most half of them.
    static let maxConnections = 2000
    /// Limits for unverified TCP connections, which have not passed an ICE connectivity check yet, per address and in
    /// total. An IPv6 /64 counts as one address, and a /56 may have four times as many connections as an address.
    static let maxUnverifiedPerAddress = 16
    static let maxUnverified = 1000
    /// How long requests may run before packets are handled. The largest description takes 4 ms, most requests take 0.1
    /// ms.
    private static let requestTime = MediaInterval.milliseconds(2)
    /// Maximum delay of the router's tick if no packet wakes the loop earlier. The delay saves wake-ups, each of
    /// which costs more than the work of a tick.
    private static let tickSlack = MediaInterval.milliseconds(10)
    /// The first tag for TCP connections. Lower tags are UDP sockets and listeners.
    private static let firstConnection: UInt32 = 1 << 16
    private static let wakeTag: UInt32 = .max
    private static let listenerTag: UInt32 = 1 << 15

    private let inbox: MediaInbox
    private let activity: MediaActivity
    private let wait: MediaWait
    private let poller: any Poller
    private let io: any DatagramIO
    private let sockets: [DatagramSocket]
    private let listeners: [Int32]
    private let maxConnections: Int
    private var connections: [UInt32: StreamConnection] = [:]
    private var nextConnection = firstConnection
    private var dirty: Set<UInt32> = []
    /// Pending requests, in order.
    private var requests: Deque<MediaInbox.Request> = []
    /// The indices of the listeners that are paused until the next tick, because the process ran out of file
    /// descriptors or memory.
    private var pausedListeners: [Int] = []
    private let arena: DatagramArena
    private let scratch = UnsafeMutableRawBufferPointer.allocate(byteCount: 4096, alignment: 16)
    private var router: Router?
    private var now = MediaTime.monotonic
    private var tickAt: MediaTime?
    private var lost: UInt64 = 0
    private var slots = WakeSlots()
    /// Whether datagrams were read since the loop woke up.
    private var hasRead = false
    private var wakeups: UInt64 = 0

    init(
        inbox: MediaInbox, sockets: Sockets, portable: Bool, wait: MediaWait,
        maxConnections: Int = MediaLoop.maxConnections
    ) {
        (self.inbox, self.wait, self.maxConnections) = (inbox, wait, maxConnections)
        activity = inbox.activity
        self.sockets = sockets.datagram.map { DatagramSocket(descriptor: $0.descriptor, isIPv6: $0.isIPv6) }
        listeners = sockets.listeners
        #if os(Linux)
        let batched = portable ? nil : sockets.datagram.first.flatMap { BatchedDatagrams(probing: $0.descriptor) }
        io = batched ?? PlainDatagrams()
        poller = portable ? PlainPoller() : EpollPoller()
        #else
        io = PlainDatagrams()
        poller = PlainPoller()
        #endif
        arena = DatagramArena(joins: io.joins)
        for (index, socket) in self.sockets.enumerated() { poller.add(socket.descriptor, tag: UInt32(index)) }
        for (index, socket) in listeners.enumerated() { poller.add(socket, tag: Self.listenerTag + UInt32(index)) }
        poller.add(inbox.wakeDescriptor, tag: Self.wakeTag)
    }

    deinit {
        scratch.deallocate()
        for socket in sockets { close(socket.descriptor) }
        for socket in listeners { close(socket) }
    }

    /// Runs the loop until `MediaInbox.finish` is called.
    func run(_ makeRouter: (any MediaSink) -> Router) {
        let router = makeRouter(self)
        self.router = router
        while true {
            activity.enter(.waiting)
            pauseIfBusy(router)
            poller.wait(timeout(router)) { tag, readable, writable in
                now = .monotonic
                activity.enter(.reading)
                ready(tag, readable: readable, writable: writable, router)
            }
            if hasRead { slots.woke(at: now) }
            wakeups &+= 1
            now = .monotonic
            guard work(router) else { break }
            tick(router)
            // If datagrams were read, this iteration has already flushed. Read again before the next flush, because other
            // rooms' packets may wait behind a large keyframe.
            if router.hasMore, !hasRead {
                activity.enter(.flushing)
                router.flush(now: now)
            }
            hasRead = false
            sendAll()
            activity.enter(.reporting)
            inbox.report(router.takeEvents(), counters(of: router))
        }
        self.router = nil
        activity.enter(.ended)
    }

    private func tick(_ router: Router) {
        guard let at = tickAt, at <= now else { return }
        activity.enter(.ticking)
        router.tick(now: now)
        tickAt = nil
        dropUnverified(router)
        resumeListeners()
    }

    private func counters(of router: Router) -> MediaCounters {
        MediaCounters(router: router.counters, sockets: io.counters, lost: lost, wakeups: wakeups)
    }

    /// Lets packets collect while the loop is busy, so that it reads several at once.
    private func pauseIfBusy(_ router: Router) {
        guard !router.hasMore, requests.isEmpty else { return }
        let pause = slots.pause(at: .monotonic)
        if pause > .zero { usleep(UInt32(clamping: pause.nanoseconds / 1000)) }
    }

    /// Returns how long the poller may wait, in milliseconds: 0 if work is pending, -1 (no limit) if there are no
    /// clients, otherwise until the next tick, which this schedules if necessary.
    private func timeout(_ router: Router) -> Int32 {
        if !requests.isEmpty || router.hasMore { return 0 }
        if router.isIdle, connections.isEmpty, pausedListeners.isEmpty {
            tickAt = nil
            return -1
        }
        let at = tickAt ?? now + Router.interval
        tickAt = at
        let wait = at + Self.tickSlack - MediaTime.monotonic
        return wait <= .zero ? 0 : Int32(clamping: (wait.nanoseconds + 999_999) / 1_000_000)
    }

    /// Runs requests from other threads for at most `requestTime`, but at least one.
    /// - Returns: False if the loop should end.
    private func work(_ router: Router) -> Bool {
        requests += inbox.take()
        guard !requests.isEmpty else { return true }
        let end = now + Self.requestTime
        repeat {
            guard let request = requests.popFirst() else { break }
            activity.enter(.request, request.kind)
            guard request.body(router) else { return false }
        } while MediaTime.monotonic < end
        activity.enter(.flushing)
        router.flush(now: now)
        return true
    }

    private func ready(_ tag: UInt32, readable: Bool, writable: Bool, _ router: Router) {
        switch tag {
        case Self.wakeTag: inbox.drainWakeup()
        case Self.firstConnection...: serve(tag, readable: readable, writable: writable, router)
        case Self.listenerTag...: accept(Int(tag - Self.listenerTag))
        default: read(tag, router)
        }
    }

    // MARK: UDP

    /// Reads until the socket is empty, but at most eight bursts, so that other sockets get their turn. Stops earlier
    /// if the router has more work.
    private func read(_ index: UInt32, _ router: Router) {
        hasRead = true
        let socket = sockets[Int(index)]
        for _ in 0..<8 {
            let now = now
            let count = io.receive(socket) { datagram, source, arrivedAt in
                router.receive(datagram, on: Path(socket: index, remote: source), now: now, arrivedAt: arrivedAt)
            }
            router.flush(now: now)
            if count < io.burst || router.hasMore { break }
        }
        sendAll()
    }

    // MARK: TCP

    private func accept(_ index: Int) {
        var storage = sockaddr_storage()
        var length = socklen_t(MemoryLayout<sockaddr_storage>.size)
        let descriptor = withUnsafeMutablePointer(to: &storage) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                Foundation.accept(listeners[index], $0, &length)
            }
        }
        guard descriptor >= 0 else {
            // Pause the listener: the pending connection keeps it readable, so polling it again immediately would be
            // a busy loop.
            if [EMFILE, ENFILE, ENOBUFS, ENOMEM].contains(errno) { pauseListener(index) }
            return
        }
        guard let remote = TransportAddress(storage), connections.count < maxConnections, hasRoom(for: remote)
        else {
            close(descriptor)
            return
        }
        SocketOptions.configureStream(descriptor)
        let number = nextConnection
        // After 4 billion connections, start again with the first number.
        nextConnection = nextConnection < Self.wakeTag - 1 ? nextConnection + 1 : Self.firstConnection
        let path = Path(socket: number, isTCP: true, remote: remote)
        connections[number] = StreamConnection(descriptor: descriptor, path: path, now: now)
        poller.add(descriptor, tag: number)
    }

    private func pauseListener(_ index: Int) {
        poller.remove(listeners[index])
        pausedListeners.append(index)
    }

    private func resumeListeners() {
        for index in pausedListeners { poller.add(listeners[index], tag: Self.listenerTag + UInt32(index)) }
        pausedListeners.removeAll()
    }

    /// Returns whether one more unverified connection from this address is allowed.
    private func hasRoom(for remote: TransportAddress) -> Bool {
        var (ofAll, ofBlock, ofWideBlock, verified) = (0, 0, 0, 0)
        for connection in connections.values {
            let nearness = connection.path.remote.nearness(to: remote)
            if router?.knows(connection.path) != false {
                if nearness >= .wideBlock { verified += 1 }
                continue
            }
            ofAll += 1
            if nearness >= .wideBlock { ofWideBlock += 1 }
            if nearness >= .block { ofBlock += 1 }
        }
        return ofBlock < Self.maxUnverifiedPerAddress
            && ofWideBlock < IPAddress.wideFactor * Self.maxUnverifiedPerAddress
            && ofAll < min(Self.maxUnverified, maxConnections / 2) && verified + ofWideBlock < maxConnections / 2
    }

    private func serve(_ number: UInt32, readable: Bool, writable: Bool, _ router: Router) {
        guard let connection = connections[number] else { return }
        var isGood = true
        if readable {
            let (path, now) = (connection.path, now)
            isGood = connection.read {
                router.receive($0, on: path, now: now)
            } done: {
                router.flush(now: now)
            }
        }
        if isGood, writable { isGood = flush(connection, number) }
        if !isGood { drop(number, router) }
    }

    private func flush(_ connection: StreamConnection, _ number: UInt32) -> Bool {
        let isGood = connection.flush(now: now)
        poller.watch(connection.descriptor, tag: number, writing: connection.isWaiting)
        return isGood
    }

    private func drop(_ number: UInt32, _ router: Router) {
        guard let connection = connections.removeValue(forKey: number) else { return }
        dirty.remove(number)
        poller.remove(connection.descriptor)
        router.pathClosed(connection.path)
    }

    private func dropUnverified(_ router: Router) {
        for (number, connection) in connections
        where now - connection.openedAt > StreamConnection.handshakeTimeout && !router.knows(connection.path) {
            drop(number, router)
        }
    }

    // MARK: Sending (MediaSink)

    func prepare(_ capacity: Int) -> UnsafeMutableRawBufferPointer {
        if let memory = arena.prepare(capacity) { return memory }
        sendDatagrams()
        if let memory = arena.prepare(capacity) { return memory }
        // Packets this long do not occur. If one does, the data written to this memory is discarded.
        return scratch
    }

    func send(_ count: Int, on path: Path) {
        guard path.isTCP else { return arena.commit(count, on: path) }
        guard count <= arena.prepared, let connection = connections[path.socket], let memory = arena.prepare(count)
        else {
            lost &+= 1
            return
        }
        if !connection.send(UnsafeRawBufferPointer(memory), now: now) { lost &+= 1 }
        dirty.insert(path.socket)
    }

    func queuedTime(on path: Path) -> MediaInterval {
        guard path.isTCP, let since = connections[path.socket]?.waitingSince else { return .zero }
        return now - since
    }

    private func sendDatagrams() {
        guard !arena.isEmpty else { return }
        lost &+= UInt64(io.send(arena, on: sockets))
        arena.clear()
    }

    private func sendAll() {
        activity.enter(.sending)
        sendDatagrams()
        sendStreams()
        if let arrivedAt = router?.takeOldestArrival() { wait.record(.monotonic - arrivedAt) }
    }

    private func sendStreams() {
        guard !dirty.isEmpty, let router else { return }
        for number in dirty {
            guard let connection = connections[number] else { continue }
            if !flush(connection, number) { drop(number, router) }
        }
        dirty.removeAll(keepingCapacity: true)
    }
}

extension TransportAddress {
    /// The smallest block that contains two addresses. The cases are in order from no block to the smallest one.
    enum Nearness: Int, Comparable {
        case other
        /// Both are in the same IPv6 /56.
        case wideBlock
        /// Both are the same IPv4 address, or are in the same IPv6 /64.
        case block

        static func < (left: Nearness, right: Nearness) -> Bool { left.rawValue < right.rawValue }
    }

    /// Returns the smallest block that contains both addresses: `limitingBlock` or `wideBlock` of `IPAddress`, if any.
    func nearness(to other: TransportAddress) -> Nearness {
        guard isIPv4 == other.isIPv4 else { return .other }
        if isIPv4 { return high == other.high && low == other.low ? .block : .other }
        if high == other.high { return .block }
        return high >> 8 == other.high >> 8 ? .wideBlock : .other
    }
}
