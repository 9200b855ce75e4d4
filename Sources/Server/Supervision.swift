// Import `CSockets` for the flags of `sendto`. The system's header that defines them is not part of a module, and in a
// release build it is visible only through the first module that includes it, which is `CSockets`.
import CSockets
import Foundation

/// Notifies the supervisor, such as systemd, that the server is ready, running or stopping, with the protocol of
/// sd_notify(3).
///
/// A message that cannot be sent is dropped silently, because a missing supervisor must never stop the server.
public final class Supervisor: Sendable {
    /// The messages to the supervisor.
    enum Message: String, Sendable {
        case ready = "READY=1"
        /// The event loop is running. If this message does not arrive for ``watchdogTimeout``, the supervisor
        /// restarts the server.
        case watchdog = "WATCHDOG=1"
        case stopping = "STOPPING=1"
    }

    /// How long the supervisor waits for a `watchdog` message; nil if it does not use a watchdog.
    let watchdogTimeout: Duration?
    private let path: [UInt8]
    private let descriptor: Int32

    /// Returns nil if `NOTIFY_SOCKET` is missing or invalid, if no socket can be created, and on systems other than
    /// Linux.
    ///
    /// - Parameter environment: the environment variables. `NOTIFY_SOCKET` is the path of a socket, or an abstract
    ///   name that begins with `@`. `WATCHDOG_USEC` is the timeout in microseconds, ignored if `WATCHDOG_PID` is
    ///   another process.
    public init?(environment: [String: String]) {
        #if os(Linux)
        guard let path = environment["NOTIFY_SOCKET"].map({ Array($0.utf8) }), path.count > 1,
            path.count < MemoryLayout.size(ofValue: sockaddr_un().sun_path),
            [UInt8(ascii: "/"), UInt8(ascii: "@")].contains(path[0])
        else { return nil }
        self.path = path[0] == UInt8(ascii: "@") ? [0] + path.dropFirst() : path
        // Child processes inherit the variables, so systemd sets `WATCHDOG_PID` to the process that should send the
        // messages.
        let isForUs = environment["WATCHDOG_PID"].map { Int32($0) == getpid() } ?? true
        let microseconds = environment["WATCHDOG_USEC"].flatMap { Int64($0) } ?? 0
        watchdogTimeout = isForUs && microseconds > 0 ? .microseconds(microseconds) : nil
        descriptor = socket(AF_UNIX, Int32(SOCK_DGRAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
        if descriptor < 0 { return nil }
        #else
        return nil
        #endif
    }

    deinit { close(descriptor) }

    func tell(_ message: Message) {
        #if os(Linux)
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path) }
        // Pass the exact length: an abstract name has no terminator and ends where the address ends.
        let length = socklen_t(MemoryLayout<sa_family_t>.size + path.count)
        let text = Array(message.rawValue.utf8)
        _ = withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                // Never wait: this runs on the gateway's event loop.
                sendto(descriptor, text, text.count, Int32(MSG_DONTWAIT) | Int32(MSG_NOSIGNAL), $0, length)
            }
        }
        #endif
    }
}
