import RTC

/// The state machine of a relay's connection. Both ends run one. They agree on the number of the attempt: the higher one counts.
///
/// An attempt begins when an end makes new credentials and sends them to the other, which answers with its own. Either end may begin
/// one.
/// ```
///             credentials            connected         1.5 s silent
///  opening ───────────────▶ connecting ─────────▶ up ────────────────▶ resuming
///     ▲  └── 5 s: next attempt ┘                  ▲ ◀── a packet arrives ──┘ │
///     └──────────────────────────── 6 s silent: next attempt ────────────────┘
/// ```
struct RelayLink: Equatable {
    /// How far the connection to the other end is.
    enum State: Equatable {
        /// Waits for the other end's credentials of this attempt.
        case opening(since: MediaTime)
        /// Both ends have each other's credentials.
        case connecting(since: MediaTime)
        /// Media can flow.
        case up(heardAt: MediaTime)
        /// Nothing has arrived for a while. Only heartbeats are sent.
        case resuming(heardAt: MediaTime)
        case closed
    }

    /// What happens to a relay, apart from packets and time.
    enum Event: Equatable {
        /// The other end's credentials have arrived.
        case credentials(attempt: UInt32)
        /// The transport can carry media.
        case connected
        /// The relay is not needed any more, or the other node has died.
        case close
    }

    /// What the relay's owner does about an event.
    enum Effect: Equatable {
        /// Make a transport with new credentials, instead of the present one, and send these to the other end.
        case open(attempt: UInt32)
        /// Connect with the other end's credentials, which have arrived.
        case connect
        /// Media can flow.
        case started
        /// Stop sending media, and pause what was received.
        case paused
        /// Forget everything about the streams of the connection.
        case ended
        /// Close the transport.
        case closed
    }

    /// The time after which an attempt has failed: the handshake takes at most a few round trips.
    static let connectTimeout = MediaInterval.seconds(5)
    /// The time after which a silent relay is considered interrupted. Several heartbeats are lost by then.
    static let silence = MediaInterval.milliseconds(1500)
    /// The time after which a silent relay begins again.
    static let end = MediaInterval.seconds(6)
    static let heartbeat = MediaInterval.milliseconds(200)

    private(set) var state: State
    /// The number of the attempt, from 1.
    private(set) var attempt: UInt32 = 1

    /// Creates a link. Its owner must carry out `open(attempt: 1)`.
    init(now: MediaTime) { state = .opening(since: now) }

    /// Whether media may be sent.
    var isUp: Bool { if case .up = state { true } else { false } }

    /// Whether heartbeats are sent, and reports and media received.
    var hasConnection: Bool {
        switch state {
        case .up, .resuming: true
        case .opening, .connecting, .closed: false
        }
    }

    mutating func handle(_ event: Event, now: MediaTime) -> [Effect] {
        switch (event, state) {
        case (_, .closed): return []
        case (.close, _):
            let ended = hasConnection ? [Effect.ended] : []
            state = .closed
            return ended + [.closed]
        case (.credentials(let theirs), _) where theirs > attempt:
            // The other end has begun again.
            return begin(theirs, now: now) + connect(now: now)
        case (.credentials(let theirs), .opening) where theirs == attempt: return connect(now: now)
        case (.connected, .connecting):
            state = .up(heardAt: now)
            return [.started]
        case (.credentials, _), (.connected, _): return []
        }
    }

    private mutating func begin(_ attempt: UInt32, now: MediaTime) -> [Effect] {
        let ended = hasConnection ? [Effect.ended] : []
        self.attempt = attempt
        state = .opening(since: now)
        return ended + [.open(attempt: attempt)]
    }

    private mutating func connect(now: MediaTime) -> [Effect] {
        state = .connecting(since: now)
        return [.connect]
    }

    /// A datagram of the other end has arrived. Called for each one.
    /// - Returns: whether the relay was interrupted, so that it is resumed now.
    mutating func heard(now: MediaTime) -> Bool {
        switch state {
        case .up:
            state = .up(heardAt: now)
            return false
        case .resuming:
            state = .up(heardAt: now)
            return true
        case .opening, .connecting, .closed: return false
        }
    }

    mutating func handleTimeout(now: MediaTime) -> [Effect] {
        switch state {
        case .opening(let since) where now - since >= Self.connectTimeout,
            .connecting(let since) where now - since >= Self.connectTimeout:
            return begin(attempt &+ 1, now: now)
        case .up(let heardAt) where now - heardAt >= Self.silence:
            state = .resuming(heardAt: heardAt)
            return [.paused]
        case .resuming(let heardAt) where now - heardAt >= Self.end: return begin(attempt &+ 1, now: now)
        case .opening, .connecting, .up, .resuming, .closed: return []
        }
    }
}
