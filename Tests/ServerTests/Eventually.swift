import TestSupport
import Testing

/// Calls `whyNotYet` until it returns nil (``PollingPause``). The timeout is long, for slow machines.
func eventually(_ whyNotYet: () async throws -> String?) async throws {
    var pause = PollingPause()
    let end = ContinuousClock.now + .seconds(150)
    while let reason = try await whyNotYet() {
        try #require(ContinuousClock.now < end, "\(reason)")
        await pause.wait()
    }
}
