import Testing

/// Polls without sleeping until the condition is true.
func eventually(_ reason: @autoclosure () -> String, _ condition: () async throws -> Bool) async throws {
    let end = ContinuousClock.now + .seconds(60)
    while !(try await condition()) {
        try #require(ContinuousClock.now < end, "\(reason())")
        await Task.yield()
    }
}
