/// Detects another flow that keeps the path's queue full, such as a TCP download.
///
/// Alone, a queue that congestion control has caused is empty again soon after the estimate has fallen. If it hardly ever is,
/// another flow fills it whatever this one does. Reacting to the delay would then leave everything to the other flow, so only
/// losses count until the queue is empty again. (Copa, Arun and Balakrishnan 2018, switches its mode in a similar way.)
struct Competition: Sendable {
    /// A queue of this length is not empty.
    private static let queue = MediaInterval.milliseconds(15)
    /// The part of the time in which the queue must not be empty for a competitor to be assumed, and to be assumed gone; and
    /// the time over which that is averaged, in seconds.
    private static let (present, absent, time) = (0.75, 0.35, 2.0)
    /// Even next to a competitor, a longer queue than this is not tolerated.
    static let longestQueue = MediaInterval.milliseconds(400)
    /// The part of the estimate that is left after losses; TCP's CUBIC keeps 0.7 (RFC 9438 §4.6).
    static let decrease = 0.83
    /// The part of the packets whose loss counts.
    private static let loss = 0.01
    private static let shortestInterval = MediaInterval.milliseconds(700)

    private var filled = 0.0
    private var updatedAt: MediaTime?
    private var decreasedAt: MediaTime?
    private var (arrived, lost) = (0, 0)

    /// Whether another flow fills the queue.
    private(set) var isPresent = false

    /// - Parameter isDraining: whether this flow empties a queue of its own, which says nothing about others.
    mutating func update(queue: MediaInterval, isDraining: Bool, now: MediaTime) {
        defer { updatedAt = now }
        guard let updatedAt, !isDraining || isPresent else { return }
        let weight = min(1, Double((now - updatedAt).nanoseconds) / 1e9 / Self.time)
        filled += ((queue >= Self.queue ? 1 : 0) - filled) * weight
        let wasPresent = isPresent
        isPresent = filled > (wasPresent ? Self.absent : Self.present)
        if isPresent != wasPresent { (arrived, lost) = (0, 0) }
    }

    /// Must be called when the queue stays although this flow has sent little for seconds.
    mutating func assume() {
        (filled, isPresent) = (1, true)
        (arrived, lost) = (0, 0)
    }

    /// Counts packets while another flow is present.
    /// - Returns: true if the estimate must fall.
    mutating func add(arrived: Int, lost: Int, queue: MediaInterval, now: MediaTime) -> Bool {
        self.arrived += arrived
        self.lost += lost
        if let decreasedAt, now - decreasedAt < Self.shortestInterval { return false }
        let all = self.arrived + max(0, self.lost)
        guard all >= 20 else { return false }
        let share = Double(self.lost) / Double(all)
        (self.arrived, self.lost) = (0, 0)
        guard share > Self.loss || queue > Self.longestQueue else { return false }
        decreasedAt = now
        return true
    }
}
