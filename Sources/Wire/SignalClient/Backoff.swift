/// The delays between attempts: exponential backoff with jitter.
///
/// The ceiling doubles from 250 ms to the longest delay. Each delay is random between half of the ceiling and all of it, so that
/// the clients of a restarted server do not all return at the same moment.
package struct Backoff: Equatable, Sendable {
    private static let shortest = Duration.milliseconds(250)
    /// The longest delay between attempts to connect, well below the 30 s for which a connection can be resumed.
    package static let longest = Duration.seconds(3)

    private let longest: Duration
    private var ceiling = Self.shortest

    package init(longest: Duration = Self.longest) { self.longest = longest }

    package mutating func next(using random: inout some RandomNumberGenerator) -> Duration {
        let milliseconds = ceiling.wholeMilliseconds
        ceiling = min(ceiling * 2, longest)
        return .milliseconds(Int64.random(in: milliseconds / 2...milliseconds, using: &random))
    }

    /// Resets the delay to the shortest.
    mutating func reset() { ceiling = Self.shortest }
}
