import Foundation
import Testing

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#elseif canImport(Darwin)
import Darwin
#endif

/// Attacks on separate server processes. They run one after another, because simultaneous attacks would affect each
/// other's measurements. `scripts/test` splits them into two halves and runs both in parallel, each with its own
/// servers.
@Suite("Hostile clients", .serialized, .timeLimit(.minutes(5)))
struct Hostile {}

/// The error of a wait that took too long.
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
        // Poll every few milliseconds, because the state belongs to another process, which sends no notifications.
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
