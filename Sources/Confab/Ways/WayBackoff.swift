/// The pauses between attempts of a part of the client. Each is random between half of a ceiling and all of it, and the ceiling
/// doubles, so that the clients of a restarted server do not all return at the same moment.
struct WayBackoff: Equatable, Sendable {
    private let longest: Duration
    private var ceiling = Duration.milliseconds(250)

    init(longest: Duration) { self.longest = longest }

    mutating func next(using random: inout any RandomNumberGenerator & Sendable) -> Duration {
        defer { ceiling = min(ceiling * 2, longest) }
        return ceiling * Double.random(in: 0.5...1, using: &random)
    }
}
