import Foundation
import Testing

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#elseif canImport(Darwin)
import Darwin
#endif

/// Attacks on a server of its own process, one after another: two at a time on one server would be measured as one.
/// `scripts/test` runs two halves of them at once, each with servers of its own.
@Suite("Hostile clients", .serialized, .timeLimit(.minutes(5)))
struct Hostile {}

/// What did not come in time.
struct TimedOut: Error, CustomStringConvertible {
    let description: String
    init(_ description: String) { self.description = description }
}

/// Waits until the condition holds.
///
/// - Parameter whyNotYet: what the failure says, such as "the server still holds 300 sockets".
func eventually(
    _ whyNotYet: @autoclosure () -> String, within limit: Duration = .seconds(20), condition: () throws -> Bool
) throws {
    let deadline = ContinuousClock.now + limit
    while try !condition() {
        guard ContinuousClock.now < deadline else { throw TimedOut("after \(limit): \(whyNotYet())") }
        // What happens in another process tells nobody: it is looked at again and again, a few milliseconds apart.
        _ = poll(nil, 0, 5)
    }
}

extension Duration {
    var inSeconds: Double {
        let (seconds, attoseconds) = components
        return Double(seconds) + Double(attoseconds) / 1e18
    }

    /// For people, in milliseconds.
    var text: String { String(format: "%.1f ms", inSeconds * 1000) }
}

/// For people, in mebibytes.
func mebibytes(_ bytes: Int) -> String { String(format: "%.1f MiB", Double(bytes) / 1_048_576) }
