import Wire

/// Takes a server out of service at an operator's request, and says when to disconnect those who are still there.
///
/// A draining server is not ready, so a load balancer sends nobody else. Everyone who is there stays for the grace period. The
/// shutdown of the process (``Drain``) is another matter: it disconnects everyone at once.
struct NodeDrain: Equatable, Sendable {
    /// Legal next states: `serving` → `draining`; `draining` → `drained`, `serving`; `drained` → `serving`.
    enum State: Equatable, Sendable {
        case serving
        /// Everyone may stay until then.
        case draining(until: Timestamp)
        /// Everyone was disconnected, once. People who come back anyway may stay, because there may be no other server.
        case drained
    }

    private(set) var state = State.serving

    var isServing: Bool { state == .serving }

    /// Starts to drain. Has no effect on a server that drains already, so that a repeated command does not prolong it.
    mutating func begin(grace: Duration, now: Timestamp) {
        if isServing { state = .draining(until: now + grace) }
    }

    /// Puts the server into service again.
    mutating func end() { state = .serving }

    /// When to call `handleTimeout`; nil for never.
    var nextTimeout: Timestamp? { if case .draining(let until) = state { until } else { nil } }

    /// - Returns: whether everyone must be disconnected now.
    mutating func handleTimeout(now: Timestamp) -> Bool {
        guard let due = nextTimeout, due <= now else { return false }
        state = .drained
        return true
    }
}
