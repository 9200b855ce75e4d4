import Wire

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Opens WebSockets and sends HTTP requests. The implementations use `URLSession` on Apple platforms, NIO on Linux, and
/// simulations in tests.
protocol Transport: Sendable {
    /// Opens a WebSocket with the subprotocol `confab.v1`. Returns immediately.
    ///
    /// - Parameters:
    ///   - url: the URL of the socket, with the scheme `ws` or `wss`.
    ///   - report: called in order, from one thread at a time. The last event is `closed`.
    func open(_ url: URL, _ report: @escaping @Sendable (SocketEvent) -> Void) -> any TransportSocket

    /// Sends an HTTP request. Returns immediately.
    ///
    /// - Parameter done: called exactly once, with the response or an error. It is an error if, for example, the
    ///   connection fails, there is no progress for ``HTTPResponse/timeout``, or the request is canceled. Once it is
    ///   called, the file of the transfer is no longer used.
    /// - Returns: a closure that cancels the request.
    func run(
        _ transfer: HTTPTransfer, _ done: @escaping @Sendable (Result<HTTPResponse, any Error>) -> Void
    ) -> @Sendable () -> Void
}

/// A WebSocket. It closes when it is released.
protocol TransportSocket: Sendable {
    /// Sends a text message. Messages are sent in the order of the calls.
    func send(_ text: [UInt8])
    /// Closes the socket. No event follows, except perhaps `closed`.
    func close(_ code: CloseCode)
}

/// An event of a WebSocket.
package enum SocketEvent: Sendable {
    /// The handshake is complete.
    case opened
    /// A text message arrived.
    case received([UInt8])
    /// Something other than a complete text message arrived. It shows that the connection is alive.
    case heard
    /// The socket ended or could not be opened. The code is 1006 without a close frame, and 1005 for a close frame
    /// without a code.
    case closed(CloseCode)
}

/// Returns the current time, and schedules callbacks.
package protocol SignalClock: Sendable {
    /// The current time.
    var now: Timestamp { get }
    /// Calls `body` once, at the given time or later, and never synchronously within this method.
    ///
    /// - Returns: a function that cancels the call.
    func schedule(at time: Timestamp, _ body: @escaping @Sendable () -> Void) -> @Sendable () -> Void
}

/// The time since 1970, which never goes backward: the wall clock is read once, and a monotonic clock measures the
/// time since then.
package struct SystemClock: SignalClock {
    private let start = ContinuousClock.now
    private let epoch = Timestamp(milliseconds: Int64(Date().timeIntervalSince1970 * 1000))

    package init() {}

    /// The current time.
    package var now: Timestamp { epoch + (ContinuousClock.now - start) }

    /// Calls `body` once, at the given time or later.
    package func schedule(at time: Timestamp, _ body: @escaping @Sendable () -> Void) -> @Sendable () -> Void {
        // A time in the past is due immediately.
        let instant = start.advanced(by: time - epoch)
        let task = Task {
            do { try await Task.sleep(until: instant, tolerance: .milliseconds(1), clock: .continuous) } catch {
                return
            }
            body()
        }
        return { task.cancel() }
    }
}

/// The external services that a client uses.
struct Dependencies: Sendable {
    var transport: any Transport
    var clock: any SignalClock
    var random: any RandomNumberGenerator & Sendable

    static var system: Dependencies {
        Dependencies(transport: systemTransport(), clock: SystemClock(), random: SystemRandomNumberGenerator())
    }
}
