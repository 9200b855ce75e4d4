import Wire

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Opens WebSockets, and sends requests over HTTP: with `URLSession` on Apple platforms, with NIO on Linux, and with simulations in
/// tests.
protocol Transport: Sendable {
    /// Opens a WebSocket with the subprotocol `confab.v1`. Does not wait.
    ///
    /// - Parameters:
    ///   - url: the address of the socket, with the scheme `ws` or `wss`.
    ///   - report: called in order, from one thread at a time. The last event is `closed`.
    func open(_ url: URL, _ report: @escaping @Sendable (SocketEvent) -> Void) -> any TransportSocket

    /// Sends a request over HTTP. Does not wait.
    ///
    /// - Parameter done: called once, at the latest when there was no progress for ``HTTPAnswer/timeout``, or soon after the
    ///   request was ended. The file is not used afterwards.
    /// - Returns: ends the request.
    func run(
        _ transfer: HTTPTransfer, _ done: @escaping @Sendable (Result<HTTPAnswer, any Error>) -> Void
    ) -> @Sendable () -> Void
}

/// A WebSocket. It closes when it is released.
protocol TransportSocket: Sendable {
    /// Sends a text message. Messages arrive in the order of the calls.
    func send(_ text: [UInt8])
    /// Closes the socket. There are no more events afterwards, or only `closed`.
    func close(_ code: CloseCode)
}

/// What happens on a WebSocket.
enum SocketEvent: Sendable {
    /// The handshake is complete.
    case opened
    /// A text message arrived.
    case received([UInt8])
    /// Something else arrived.
    case heard
    /// The socket ended or could not be opened. 1006 without a close frame, 1005 for one without a code.
    case closed(CloseCode)
}

/// Tells the time, and calls back at a time.
protocol LineClock: Sendable {
    var now: Timestamp { get }
    /// Calls `body` at a time or later, once, and never before this method has returned.
    ///
    /// - Returns: a function that cancels the call.
    func schedule(at time: Timestamp, _ body: @escaping @Sendable () -> Void) -> @Sendable () -> Void
}

/// Wall-clock time that never goes back.
struct SystemClock: LineClock {
    private let start = ContinuousClock.now
    private let epoch = Timestamp(milliseconds: Int64(Date().timeIntervalSince1970 * 1000))

    var now: Timestamp { epoch + (ContinuousClock.now - start) }

    func schedule(at time: Timestamp, _ body: @escaping @Sendable () -> Void) -> @Sendable () -> Void {
        // Not below zero: a time that has passed is due at once.
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

/// What a client needs from outside.
struct Surroundings: Sendable {
    var transport: any Transport
    var clock: any LineClock
    var random: any RandomNumberGenerator & Sendable

    static var system: Surroundings {
        Surroundings(transport: systemTransport(), clock: SystemClock(), random: SystemRandomNumberGenerator())
    }
}
