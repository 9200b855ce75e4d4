import Testing

/// Polls without sleeping until `whyNotYet` returns nil. The timeout is long, for slow machines.
func eventually(_ whyNotYet: () async throws -> String?) async throws {
    let end = ContinuousClock.now + .seconds(60)
    while let reason = try await whyNotYet() {
        try #require(ContinuousClock.now < end, "\(reason)")
        await Task.yield()
    }
}
