/// The error for a condition that a test waited for without success.
public struct NotYet: Error, CustomStringConvertible {
    public let description: String
}

/// The maximum wait. It is shorter than the time limits of tests, which are minutes, because the failure message for
/// an exceeded time limit does not name the condition.
private let longestWait = Duration.seconds(50)

/// Checks a condition repeatedly until it is true, and yields between the checks. For conditions whose change causes
/// no event to wait for.
///
/// - Parameter what: what must happen, such as "the camera is off".
/// - Throws: ``NotYet`` after 50 seconds or when the task is cancelled. Also throws the errors of `holds`.
public func until(
    _ what: String, isolation: isolated (any Actor)? = #isolation, _ holds: () async throws -> Bool
) async throws {
    let end = ContinuousClock.now + longestWait
    while try await !holds() {
        guard !Task.isCancelled, ContinuousClock.now < end else { throw NotYet(description: "not yet: \(what)") }
        await Task.yield()
    }
}
