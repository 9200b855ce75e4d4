import Wire

/// All limits and timeouts, with the defaults from the protocol. This is the only place that defines them; the server's
/// configuration holds one such value and its keys write into it.
public struct Rules: Equatable, Sendable {
    // Client connections.
    public var resumeGrace: Duration = .seconds(30)
    public var pingInterval: Duration = .seconds(10)
    public var replay = Link.Bounds()
    /// A client's requests. Negotiation has a separate budget, because it trickles dozens of candidates at once.
    public var verbs = Budget.Rate(perSecond: 20, burst: 100)
    /// The requests of one person, over all devices: three devices at their limit.
    public var personVerbs = Budget.Rate(perSecond: 60, burst: 300)
    /// Client connections that one identity may have at once. One more closes the oldest with 4409.
    public var connectionsPerPerson = 16
    /// How often a change of a person is sent to the person's other devices.
    public var ownPresenceInterval: Duration = .milliseconds(200)
    public var negotiations = Budget.Rate(perSecond: 50, burst: 500)
    /// A negotiation message costs one, plus one for each such number of bytes: descriptions are large and use the receiver's
    /// downlink.
    public var bytesPerNegotiation = 4096
    /// Rejected messages that a client may cause by exceeding a budget. Beyond that it is closed with 4429.
    public var refusals = Budget.Rate(perSecond: 20, burst: 200)
    /// All messages of a client, including duplicates and acknowledgements: the sum of the other budgets, one replay, and some
    /// slack.
    public var messages: Budget.Rate {
        Budget.Rate(
            perSecond: verbs.perSecond + negotiations.perSecond + 50,
            burst: verbs.burst + negotiations.burst + Double(replay.messages) + 200
        )
    }
    /// Reports per identity: 10 at once, then one every six minutes.
    public var reports = Budget.Rate(perSecond: 10.0 / 3600, burst: 10)
    /// The size limits that the gateway enforces and `welcome` announces.
    public var messageSize = Limits.message
    public var descriptionSize = Limits.description
    /// Malformed messages per minute before a client is closed with 4400.
    public var malformedPerMinute = 10
    /// Sessions that one client connection may join at once.
    public var sessionsPerClient = 16

    // Sessions.
    /// OpenTok sessions allow up to 15,000 connections.
    public var connectionsPerSession = 15_000
    public var streamsPerConnection = 8
    public var reportLines = 20
    /// How long after its end a match can be reported.
    public var reportWindow: Duration = .seconds(60)

    // Media.
    /// Whether a media plane is available for routed sessions.
    public var routesMedia = false
    /// How long a relayed pair may take to connect before the session switches to routed media.
    public var relayedFallback: Duration = .seconds(8)

    // WHIP and WHEP resources.
    public var resources = 2000
    public var resourcesPerAddress = 100
    /// A shared viewer link is one token, so this also limits its viewers.
    public var resourcesPerToken = 500
    /// How long a request may wait for the media plane's answer.
    public var resourceAnswer: Duration = .seconds(5)
    /// How long a resource may be without a connected media path, initially or later.
    public var resourceConnect: Duration = .seconds(30)

    // Roulette.
    public var interestWait: Duration = .seconds(5)
    public var rematchWait: Duration = .seconds(10)
    public var skipWindow: Duration = .seconds(5)
    public var skipPeriod: Duration = .seconds(60)
    public var skipsBeforeWait = 3
    public var firstSkipWait: Duration = .seconds(2)
    public var longestSkipWait: Duration = .seconds(60)
    public var maxInterests = 10
    public var maxBlocks = 1000
    public var entriesPerAddress = 200
    public var candidatesPerAttempt = 32
    public var retryInterval: Duration = .seconds(1)
    public var streamTimeout: Duration = .seconds(10)
    public var rouletteMediaMode = MediaMode.routed
    /// The media mode of match sessions: relayed if this server does not route media.
    public var matchMediaMode: MediaMode { routesMedia ? rouletteMediaMode : .relayed }
    /// How long a match's tokens can be used to join. The match itself may last longer.
    public var matchTokenLifetime: Duration = .seconds(24 * 3600)
    /// How long an identity without a connected device stays in memory. Longer than any skip penalty or report window.
    public var personIdle: Duration = .seconds(600)

    /// Maximum identities without a connected device in memory. Beyond that, those that left first are evicted, with their
    /// skips, movement and unanswered calls. Most take about 2 KB, so the limit is about 100 MB, enough for 80 people per
    /// second coming and going.
    public var absentPeople = 50_000

    // People nearby.
    /// Devices and contacts per person.
    public var devicesPerPerson = 10
    public var maxContacts = 500
    public var linkCodeLifetime: Duration = .seconds(300)
    /// Pairing codes per person: enough for one each time the page is opened.
    public var linkCodes = Budget.Rate(perMinute: 10)
    /// Pairing codes that one address may try.
    public var linkGuesses = Budget.Rate(perMinute: 10)
    /// Maximum plausible travel speed. A location that implies a higher speed is rejected.
    public var fastestKilometersPerHour = 1000
    /// How often changes are sent to a watched page of people nearby.
    public var nearbyInterval: Duration = .seconds(1)
    /// Pages that one person may request, across all devices: 30 at once, then one every two seconds. A page takes at most half
    /// a millisecond, so four thousand people who request pages constantly keep one core busy.
    public var nearbyPages = Budget.Rate(perSecond: 0.5, burst: 30)
    /// Page refreshes per second for all people together. Each takes a fraction of a millisecond.
    public var nearbyRefreshesPerSecond = 500

    // Calls.
    public var ringTimeout: Duration = .seconds(45)
    /// From accepting a call until both people have joined the session.
    public var joinTimeout: Duration = .seconds(30)
    public var callMediaMode = MediaMode.routed
    /// The media mode of call sessions: relayed if this server does not route media.
    public var callSessionMode: MediaMode { routesMedia ? callMediaMode : .relayed }
    /// Calls that one person may place, and incoming calls that one person may receive.
    public var callsPlaced = Budget.Rate(perMinute: 6)
    public var ringsReceived = Budget.Rate(perMinute: 20)
    /// After this many unanswered calls to one person within the period, the caller must wait for the period to pass.
    public var callsInVain = 3
    public var callsInVainPeriod: Duration = .seconds(600)

    public init() {}
}

/// A token bucket: `burst` tokens at once, refilled at `perSecond`.
public struct Budget: Equatable, Sendable {
    public struct Rate: Equatable, Sendable {
        public var perSecond: Double
        public var burst: Double
        public init(perSecond: Double, burst: Double) { (self.perSecond, self.burst) = (perSecond, burst) }

        /// `count` per minute, with a burst of the same size.
        public init(perMinute count: Int) { self.init(perSecond: Double(count) / 60, burst: Double(count)) }

        /// Setting this also sets the burst.
        public var perMinute: Int {
            get { Int((perSecond * 60).rounded()) }
            set { self = Self(perMinute: newValue) }
        }
    }

    private var level: Double
    private var at: Timestamp

    public init(_ rate: Rate, now: Timestamp) {
        level = rate.burst
        at = now
    }

    private func refilled(_ rate: Rate, now: Timestamp) -> Double {
        let elapsed = Double(max(0, (now - at).wholeMilliseconds)) / 1000
        return min(rate.burst, level + elapsed * rate.perSecond)
    }

    /// Whether the bucket is full, as a new one would be.
    public func isFull(_ rate: Rate, now: Timestamp) -> Bool { refilled(rate, now: now) >= rate.burst }

    /// Takes `cost` tokens and returns nil, or returns how long to wait until there are enough.
    public mutating func take(_ rate: Rate, cost: Double = 1, now: Timestamp) -> Duration? {
        level = refilled(rate, now: now)
        at = max(at, now)
        // A cost above the burst would never be allowed; charge a full bucket instead.
        let cost = min(cost, rate.burst)
        if level >= cost {
            level -= cost
            return nil
        }
        let seconds = (cost - level) / max(rate.perSecond, 0.001)
        return .milliseconds(Int64((seconds * 1000).rounded(.up)))
    }
}

extension Budget? {
    /// `take` for an optional budget; nil means full.
    mutating func take(_ rate: Budget.Rate, now: Timestamp) -> Duration? {
        var budget = self ?? Budget(rate, now: now)
        defer { self = budget }
        return budget.take(rate, now: now)
    }
}
