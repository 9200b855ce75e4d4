/// Decides which effects on the audio session run on a separate thread. The system can take seconds to activate or
/// deactivate the session, for example while another app gives it up, and the user interface must not freeze during
/// that time. Effects that follow wait on the same thread, because they need the same lock and must keep their order.
///
/// Invariant: effects run in the order in which they were given.
public struct AudioLane: Equatable, Sendable {
    private var waiting = 0

    public init() {}

    /// Decides where to run the next effect.
    ///
    /// - Returns: whether to run the effect on the separate thread. If so, call ``finished()`` when the effect is
    /// done.
    public mutating func takes(_ effect: AudioEffect) -> Bool {
        if case .setActive = effect {} else if waiting == 0 { return false }
        waiting += 1
        return true
    }

    public mutating func finished() { waiting -= 1 }
}
