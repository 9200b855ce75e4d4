/// The pauses between a feature's attempts. Each is random between half of a ceiling and the whole ceiling, and the
/// ceiling doubles each time. This prevents the clients of a restarted server from all returning at the same moment.
struct FeatureBackoff: Equatable, Sendable {
    private let longest: Duration
    private var ceiling = Duration.milliseconds(250)

    init(longest: Duration) { self.longest = longest }

    mutating func next(using random: inout any RandomNumberGenerator & Sendable) -> Duration {
        defer { ceiling = min(ceiling * 2, longest) }
        return ceiling * Double.random(in: 0.5...1, using: &random)
    }
}
