import Datagrams
import Foundation
import NIOConcurrencyHelpers
import RTC
import SFU

/// How other threads speak to a media loop, and what it says back.
///
/// Requests are seldom compared with packets: people coming, going and changing what they watch.
final class MediaInbox: Sendable {
    typealias Request = @Sendable (Router) -> Bool

    private struct State {
        var requests: [Request] = []
        var isClosed = false
        var counters = RouterCounters()
        var lost: UInt64 = 0
    }

    private let state = NIOLockedValueBox(State())
    private let readEnd: Int32
    private let writeEnd: Int32
    private let onEvents: @Sendable ([RouterEvent]) -> Void

    /// - Parameter onEvents: called on the loop's thread.
    init(onEvents: @escaping @Sendable ([RouterEvent]) -> Void) throws {
        var ends: [Int32] = [0, 0]
        guard pipe(&ends) == 0 else {
            throw MediaPlaneError("A pipe cannot be made: \(String(cString: strerror(errno))).")
        }
        (readEnd, writeEnd) = (ends[0], ends[1])
        for end in ends { SocketOptions.makeNonBlocking(end) }
        self.onEvents = onEvents
    }

    deinit {
        close(readEnd)
        close(writeEnd)
    }

    // MARK: Any thread

    /// Has it done on the loop, in the order of the calls.
    func perform(_ body: @escaping @Sendable (Router) -> Void) {
        add { router in
            body(router)
            return true
        }
    }

    /// Ends the loop after what was asked before.
    func finish() { add { _ in false } }

    private func add(_ request: @escaping Request) {
        let isFirst = state.withLockedValue { state in
            state.requests.append(request)
            return state.requests.count == 1
        }
        guard isFirst else { return }
        var byte: UInt8 = 1
        _ = write(writeEnd, &byte, 1)
    }

    var counters: (router: RouterCounters, lost: UInt64) {
        state.withLockedValue { ($0.counters, $0.lost) }
    }

    // MARK: The loop

    var wakeDescriptor: Int32 { readEnd }

    func heard() {
        var bytes = [UInt8](repeating: 0, count: 64)
        while read(readEnd, &bytes, bytes.count) > 0 {}
    }

    func take() -> [Request] {
        state.withLockedValue { state in
            defer { state.requests = [] }
            return state.requests
        }
    }

    func report(_ events: [RouterEvent], _ counters: RouterCounters, lost: UInt64) {
        state.withLockedValue { ($0.counters, $0.lost) = (counters, lost) }
        if !events.isEmpty { onEvents(events) }
    }
}

/// Why routed media cannot work here, in a sentence for whoever starts the server.
struct MediaPlaneError: Error, CustomStringConvertible {
    var description: String
    init(_ description: String) { self.description = description }
}
