import Datagrams
import Foundation
import NIOConcurrencyHelpers
import RTC
import SFU
import Synchronization

/// The thread-safe interface to a media loop. It accepts requests, and returns events and counters.
///
/// A lock is fast enough, because requests are rare compared with packets.
final class MediaInbox: Sendable {
    /// A request to the loop.
    struct Request: Sendable {
        let kind: MediaRequestKind
        let work: Work
    }

    /// What a request does.
    enum Work: Sendable {
        case run(@Sendable (Router) -> Void)
        /// Takes over a TCP connection that another loop accepted.
        case adopt(StreamHandover)
        /// Ends the loop.
        case finish
    }

    /// The state that the lock protects.
    private struct State {
        var requests: [Request] = []
        var isClosed = false
        var counters = MediaCounters()
    }

    /// What the loop is doing.
    let activity = MediaActivity()
    private let state = NIOLockedValueBox(State())
    private let heartbeat = Mutex(MediaHeartbeat())
    private let readEnd: Int32
    private let writeEnd: Int32
    private let onEvents: @Sendable ([RouterEvent]) -> Void
    private let onRelayEvents: @Sendable ([RelayEvent]) -> Void

    /// - Parameters:
    ///   - onEvents: Called on the loop's thread.
    ///   - onRelayEvents: Called on the loop's thread.
    init(
        onEvents: @escaping @Sendable ([RouterEvent]) -> Void,
        onRelayEvents: @escaping @Sendable ([RelayEvent]) -> Void = { _ in }
    ) throws {
        var ends: [Int32] = [0, 0]
        guard pipe(&ends) == 0 else {
            throw MediaPlaneError("Cannot create a pipe: \(String(cString: strerror(errno))). Allow more open files.")
        }
        (readEnd, writeEnd) = (ends[0], ends[1])
        for end in ends { SocketOptions.makeNonBlocking(end) }
        (self.onEvents, self.onRelayEvents) = (onEvents, onRelayEvents)
    }

    deinit {
        Foundation.close(readEnd)
        Foundation.close(writeEnd)
    }

    // MARK: Any thread

    /// Runs `body` on the loop's thread, after all earlier requests.
    func perform(_ kind: MediaRequestKind, _ body: @escaping @Sendable (Router) -> Void) {
        add(Request(kind: kind, work: .run(body)))
    }

    /// Hands over a TCP connection to the loop. If the loop has ended, the connection is closed.
    func adopt(_ stream: StreamHandover) { add(Request(kind: .adopt, work: .adopt(stream))) }

    /// Ends the loop after all earlier requests.
    func finish() { add(Request(kind: .finish, work: .finish)) }

    /// Wakes the loop from its wait.
    func wake() {
        var byte: UInt8 = 1
        // If the pipe is full, the loop has been woken already.
        _ = write(writeEnd, &byte, 1)
    }

    /// Sends the loop a heartbeat request, unless one is still unanswered. Call this regularly.
    func askForSignOfLife() {
        guard heartbeat.withLock({ $0.ask(at: .now) }) else { return }
        perform(.heartbeat) { [weak self] _ in self?.heartbeat.withLock { $0.answered() } }
    }

    /// False if the loop has not answered a heartbeat request for too long.
    var isResponsive: Bool { heartbeat.withLock { $0.isResponsive(at: .now) } }

    private func add(_ request: Request) {
        let isFirst = state.withLockedValue { state in
            // Drop requests after the end, since nobody would take them.
            guard !state.isClosed else { return false }
            state.requests.append(request)
            return state.requests.count == 1
        }
        if isFirst { wake() }
    }

    var counters: MediaCounters { state.withLockedValue { $0.counters } }

    // MARK: The loop

    var wakeDescriptor: Int32 { readEnd }

    func drainWakeup() {
        withUnsafeTemporaryAllocation(byteCount: 64, alignment: 1) { bytes in
            while read(readEnd, bytes.baseAddress, bytes.count) == bytes.count {}
        }
    }

    func take() -> [Request] {
        state.withLockedValue { state in
            defer { state.requests = [] }
            return state.requests
        }
    }

    /// Drops all requests that the loop has not taken, and all later ones. Called when the loop ends.
    func close() {
        // Take the requests out of the lock before they are released: the end of a connection takes another lock.
        _ = state.withLockedValue { state in
            state.isClosed = true
            defer { state.requests = [] }
            return state.requests
        }
    }

    func report(_ events: [RouterEvent], _ relayEvents: [RelayEvent], _ counters: MediaCounters) {
        state.withLockedValue { $0.counters = counters }
        if !events.isEmpty { onEvents(events) }
        if !relayEvents.isEmpty { onRelayEvents(relayEvents) }
    }
}

/// The counters of a media loop, or of all loops together.
struct MediaCounters: Sendable {
    var router = RouterCounters()
    /// The counters of the UDP sockets.
    var sockets = DatagramCounters()
    /// The number of datagrams that could not be sent.
    var lost: UInt64 = 0
    /// The number of times that the loop woke up.
    var wakeups: UInt64 = 0

    /// Adds the counters of another loop.
    static func += (left: inout MediaCounters, right: MediaCounters) {
        left.router += right.router
        left.sockets += right.sockets
        left.lost &+= right.lost
        left.wakeups &+= right.wakeups
    }
}

/// The reason why routed media cannot start, as a sentence for the operator.
struct MediaPlaneError: Error, CustomStringConvertible {
    var description: String
    init(_ description: String) { self.description = description }
}
