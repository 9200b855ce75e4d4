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

    /// What a loop shares with the others of its media plane.
    struct Group: Sendable {
        /// The inboxes of all loops; empty if there is only one loop.
        var inboxes: [MediaInbox] = []
        /// The index of this loop.
        var index = 0
        var places = StreamPlaces()
    }

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
    private let group: Group
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
        inbox: MediaInbox, sockets: Sockets, portable: Bool, wait: MediaWait, group: Group = Group()
    ) {
        (self.inbox, self.wait, self.group) = (inbox, wait, group)
        activity = inbox.activity
        self.sockets = sockets.datagram.map { DatagramSocket(descriptor: $0.descriptor, isIPv6: $0.isIPv6) }
        listeners = sockets.listeners
        #if os(Linux)
        let takesPieces =
            !portable && sockets.datagram.reduce(false) { SocketOptions.joinSegments($1.descriptor) || $0 }
        let batched =
            portable
            ? nil
            : sockets.datagram.first.flatMap { BatchedDatagrams(probing: $0.descriptor, takesPieces: takesPieces) }
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
            waitForWork(router)
            if hasRead || router.hasPiped { slots.woke(at: now) }
            wakeups &+= 1
            now = .monotonic
            guard work(router) else { break }
            tick(router)
            // If datagrams were read, this iteration has already flushed. Read again before the next flush, because other
            // rooms' packets may wait behind a large keyframe.
            if router.hasMore || router.hasPiped, !hasRead {
                activity.enter(.flushing)
                router.flush(now: now)
            }
            hasRead = false
            sendAll()
            activity.enter(.reporting)
            inbox.report(router.takeEvents(), router.takeRelayEvents(), counters(of: router))
        }
        self.router = nil
        inbox.close()
        activity.enter(.ended)
    }

    /// Waits until sockets are ready or there is other work, and serves the sockets that are ready.
    private func waitForWork(_ router: Router) {
        var limit = timeout(router)
        // Another loop wakes this one only while it waits. What it sent before that needs no wake-up.
        let isWaiting = limit != 0
        if isWaiting, !router.beginWait() { limit = 0 }
        poller.wait(limit) { tag, readable, writable in
            now = .monotonic
            activity.enter(.reading)
            ready(tag, readable: readable, writable: writable, router)
        }
        if isWaiting { router.endWait() }
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
        router.advance(to: now)
        repeat {
            guard let request = requests.popFirst() else { break }
            activity.enter(.request, request.kind)
            switch request.work {
            case .run(let body): body(router)
            case .adopt(let stream): adopt(stream, router)
            case .finish: return false
            }
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

    /// Reads until the socket is empty or its turn is over. Stops earlier if the router has more work.
    private func read(_ index: UInt32, _ router: Router) {
        hasRead = true
        let socket = sockets[Int(index)]
        var turn = ReadTurn()
        while true {
            let now = now
            let count = io.receive(socket) { datagram, source, arrivedAt in
                router.receive(datagram, on: Path(socket: index, remote: source), now: now, arrivedAt: arrivedAt)
                if turn.passed() { router.flush(now: now) }
            }
            router.flush(now: now)
            if !turn.continues(after: count, of: io.burst) || router.hasMore { break }
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
        guard let remote = TransportAddress(storage) else {
            close(descriptor)
            return
        }
        guard let socket = StreamSocket(accepted: descriptor, from: remote, in: group.places) else { return }
        SocketOptions.configureStream(descriptor)
        let path = newPath(to: remote)
        connections[path.socket] = StreamConnection(socket, path: path, now: now)
        poller.add(descriptor, tag: path.socket)
    }

    private func newPath(to remote: TransportAddress) -> Path {
        defer {
            // After 4 billion connections, start again with the first number.
            nextConnection = nextConnection < Self.wakeTag - 1 ? nextConnection + 1 : Self.firstConnection
        }
        return Path(socket: nextConnection, isTCP: true, remote: remote)
    }

    /// Takes over a connection whose first check names this loop. Closes it if the check is not one of a peer connection
    /// of this loop, for example because that connection has just been closed.
    private func adopt(_ stream: StreamHandover, _ router: Router) {
        let path = newPath(to: stream.socket.remote)
        let connection = StreamConnection(stream, path: path)
        connections[path.socket] = connection
        poller.add(connection.descriptor, tag: path.socket)
        let isGood = connection.deliver { frame in
            router.receive(frame, on: path, now: now)
            return true
        } done: {
            router.flush(now: now)
        }
        connection.isVerified = router.knows(path)
        if !isGood || !connection.isVerified { drop(path.socket, router) }
    }

    /// Whether this loop accepts connections for others too.
    private var isAcceptor: Bool { !listeners.isEmpty && group.inboxes.count > 1 }

    /// Returns the loop that must take over a connection, because this frame is a check for one of its peer connections.
    private func owner(of frame: UnsafeMutableRawBufferPointer) -> MediaInbox? {
        guard let username = STUN.username(of: UnsafeRawBufferPointer(frame)),
            let owner = ICECredentials.owner(ofUfrag: username.local), owner != group.index,
            group.inboxes.indices.contains(owner)
        else { return nil }
        return group.inboxes[owner]
    }

    private func pauseListener(_ index: Int) {
        poller.remove(listeners[index])
        pausedListeners.append(index)
    }

    private func resumeListeners() {
        for index in pausedListeners { poller.add(listeners[index], tag: Self.listenerTag + UInt32(index)) }
        pausedListeners.removeAll()
    }

    private func serve(_ number: UInt32, readable: Bool, writable: Bool, _ router: Router) {
        guard let connection = connections[number] else { return }
        var isGood = true
        if readable {
            let (path, now) = (connection.path, now)
            // Only the loop that accepts connections hands them over, and so no connection is handed over twice.
            let mayHandOver = isAcceptor && !connection.isVerified && !connection.isWaiting
            var owner: MediaInbox?
            isGood = connection.read { frame in
                if mayHandOver { owner = self.owner(of: frame) }
                guard owner == nil else { return false }
                router.receive(frame, on: path, now: now)
                return true
            } done: {
                router.flush(now: now)
            }
            if isGood, let owner { return handOver(connection, to: owner, router) }
            if !connection.isVerified { connection.isVerified = router.knows(path) }
        }
        if isGood, writable { isGood = flush(connection, number) }
        if !isGood { drop(number, router) }
    }

    private func handOver(_ connection: StreamConnection, to owner: MediaInbox, _ router: Router) {
        let stream = connection.handover
        // Stop polling first, because only the other loop may read from the connection after this.
        drop(connection.path.socket, router)
        owner.adopt(stream)
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
        for (number, connection) in connections {
            connection.isVerified = router.knows(connection.path)
            let isLate = now - connection.openedAt > StreamConnection.handshakeTimeout
            if isLate, !connection.isVerified { drop(number, router) }
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
