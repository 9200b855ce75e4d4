import Foundation
import Testing

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#elseif canImport(Darwin)
import Darwin
#endif

/// Attacks on separate server processes, one after another, because two at the same time would affect each other's
/// measurements. `scripts/test` runs two halves of them in parallel, each with its own servers.
@Suite("Hostile clients", .serialized, .timeLimit(.minutes(5)))
struct Hostile {}

/// A timeout.
struct TimedOut: Error, CustomStringConvertible {
    let description: String
    init(_ description: String) { self.description = description }
}

/// Waits until the condition holds.
///
/// - Parameter whyNotYet: the message of the failure, such as "the server still holds 300 sockets".
func eventually(
    _ whyNotYet: @autoclosure () -> String, within limit: Duration = .seconds(20), condition: () throws -> Bool
) throws {
    let deadline = ContinuousClock.now + limit
    while try !condition() {
        guard ContinuousClock.now < deadline else { throw TimedOut("after \(limit): \(whyNotYet())") }
        // Polled every few milliseconds, because another process sends no notifications.
        _ = poll(nil, 0, 5)
    }
}

extension Duration {
    var inSeconds: Double {
        let (seconds, attoseconds) = components
        return Double(seconds) + Double(attoseconds) / 1e18
    }

    /// In milliseconds, for display.
    var text: String { String(format: "%.1f ms", inSeconds * 1000) }
}

/// In mebibytes, for display.
func mebibytes(_ bytes: Int) -> String { String(format: "%.1f MiB", Double(bytes) / 1_048_576) }
