/// Decides which effects on the audio session run on a thread of their own. The system can take seconds to activate or deactivate
/// the session, for example while another app gives it up, and the screen must not stand still for that time. What follows waits
/// behind it, because it needs the same lock and comes after it.
///
/// Invariant: effects run in the order in which they were given.
public struct AudioLane: Equatable, Sendable {
    private var waiting = 0

    public init() {}

    /// - Returns: whether the effect runs on the other thread. Call ``finished()`` when it has.
    public mutating func takes(_ effect: AudioEffect) -> Bool {
        if case .setActive = effect {} else if waiting == 0 { return false }
        waiting += 1
        return true
    }

    public mutating func finished() { waiting -= 1 }
}
