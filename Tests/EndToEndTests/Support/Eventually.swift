import TestSupport
import Testing

/// Checks a condition until it is true (``PollingPause``). The timeout is long, for slow machines.
///
/// - Parameter reason: why it is not true yet, for the failure.
func eventually(_ reason: @autoclosure () -> String, _ condition: () async throws -> Bool) async throws {
    var pause = PollingPause()
    let end = ContinuousClock.now + .seconds(60)
    while !(try await condition()) {
        try #require(ContinuousClock.now < end, "\(reason())")
        await pause.wait()
    }
}
