import Dispatch

/// The error for a condition that a test waited for without success.
public struct NotYet: Error, CustomStringConvertible {
    public let description: String
}

/// The maximum wait. It is shorter than the time limits of tests, which are minutes, because the failure message for
/// an exceeded time limit does not name the condition.
private let longestWait = Duration.seconds(100)

/// The time between two checks of a condition.
///
/// Most conditions are true soon, so the first checks follow each other at once. Later ones leave the processor to the code that the
/// test waits for: otherwise a few waiting tests would use all cores of a small machine.
public struct PollingPause {
    private static let checksAtOnce = 100
    private static let milliseconds = 5
    /// A queue of its own, because tests may block all threads of the global ones.
    private static let queue = DispatchQueue(label: "pauses of tests")
    private var checks = 0

    public init() {}

    /// Waits until the next check.
    public mutating func wait(isolation: isolated (any Actor)? = #isolation) async {
        checks += 1
        guard checks > Self.checksAtOnce else { return await Task.yield() }
        await withCheckedContinuation { next in
            Self.queue.asyncAfter(deadline: .now() + .milliseconds(Self.milliseconds)) { next.resume() }
        }
    }
}

/// Checks a condition repeatedly until it is true (``PollingPause``). For conditions whose change causes no event to wait for.
///
/// - Parameter what: what must happen, such as "the camera is off".
/// - Throws: ``NotYet`` after 100 seconds or when the task is canceled. Also throws the errors of `holds`.
public func until(
    _ what: String, isolation: isolated (any Actor)? = #isolation, _ holds: () async throws -> Bool
) async throws {
    let end = ContinuousClock.now + longestWait
    var pause = PollingPause()
    while try await !holds() {
        guard !Task.isCancelled, ContinuousClock.now < end else { throw NotYet(description: "not yet: \(what)") }
        await pause.wait()
    }
}
