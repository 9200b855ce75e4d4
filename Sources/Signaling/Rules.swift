import Wire

/// Every number that the rules depend on, with the contract's defaults: the only place that has them. The server's
/// configuration holds one such value, and its keys write into it.
public struct Rules: Equatable, Sendable {
    // Client connections.
    public var resumeGrace: Duration = .seconds(30)
    public var pingInterval: Duration = .seconds(10)
    public var replay = Link.Bounds()
    /// A client's verbs: so many a second on average, so many at once. Negotiation trickles dozens of candidates at once
    /// and has a bucket of its own.
    public var verbs = Budget.Rate(perSecond: 20, burst: 100)
    public var negotiations = Budget.Rate(perSecond: 50, burst: 500)
    /// A negotiation costs one, and one more for each so many bytes: descriptions are large, and go to somebody's downlink.
    public var bytesPerNegotiation = 4096
    /// Messages refused for want of budget; a client that has used this up too is closed with 4429.
    public var refusals = Budget.Rate(perSecond: 20, burst: 200)
    /// Whatever a client sends, repetitions and acknowledgements included: what all other budgets allow, a replay, and some.
    public var messages: Budget.Rate {
        Budget.Rate(
            perSecond: verbs.perSecond + negotiations.perSecond + 50,
            burst: verbs.burst + negotiations.burst + Double(replay.messages) + 200
        )
    }
    /// Reports an identity may make: a burst, and then one every six minutes.
    public var reports = Budget.Rate(perSecond: 10.0 / 3600, burst: 10)
    /// What the gateway takes, told in the welcome.
    public var messageSize = Limits.message
    public var descriptionSize = Limits.description
    /// Malformed messages a minute before a client is closed with 4400.
    public var malformedPerMinute = 10
    /// Sessions one client connection may be in at once.
    public var sessionsPerClient = 16

    // Sessions.
    /// OpenTok's sessions take up to 15,000 clients.
    public var connectionsPerSession = 15_000
    public var streamsPerConnection = 8
    public var reportLines = 20
    /// How long after its end a match can still be reported.
    public var reportWindow: Duration = .seconds(60)

    // Media.
    /// Whether there is a media plane to route media through.
    public var routesMedia = false
    /// How long a relayed pair may take to connect before its whole session is routed.
    public var relayedFallback: Duration = .seconds(8)

    // Resources of WHIP and WHEP.
    public var resources = 2000
    public var resourcesPerAddress = 100
    /// A link to watch is one token, however many follow it.
    public var resourcesPerToken = 500
    /// How long a request may wait for the media plane.
    public var resourceAnswer: Duration = .seconds(5)
    /// How long a resource may be without a path for its media, at first and later.
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
    /// What the sessions of matches are: only a server that routes media makes routed ones.
    public var matchMediaMode: MediaMode { routesMedia ? rouletteMediaMode : .relayed }
    /// How long a match's tokens can be used to join; the match itself may last longer.
    public var matchTokenLifetime: Duration = .seconds(24 * 3600)
    /// How long an identity without a device is remembered in memory: past any skip penalty and report window.
    public var personIdle: Duration = .seconds(600)

    /// Identities without a device that are remembered; past that those who went first are forgotten, and with them what
    /// they skipped, how fast they moved and whom they called in vain. Most take some 2 KB, so it is 100 MB: everybody of a
    /// crowd that comes and goes at 80 a second.
    public var absentPeople = 50_000

    // People nearby.
    /// Devices of one person, and those it may stay in touch with.
    public var devicesPerPerson = 10
    public var maxContacts = 500
    public var linkCodeLifetime: Duration = .seconds(300)
    /// Codes that one person may ask for: a new one each time the page is opened, and no supply.
    public var linkCodes = Budget.Rate(perMinute: 10)
    /// Codes that one address may try.
    public var linkGuesses = Budget.Rate(perMinute: 10)
    /// Faster than this nobody travels; above it a position is refused.
    public var fastestKilometresPerHour = 1000
    /// How often a page of people nearby is told what changed.
    public var nearbyInterval: Duration = .seconds(1)
    /// Pages that one person may ask for, on all devices: 1500 people to leaf through, and then as fast as anybody reads. A
    /// page takes half a millisecond at worst: four thousand people who ask all the time would keep one core busy.
    public var nearbyPages = Budget.Rate(perSecond: 0.5, burst: 30)
    /// Pages that may be looked up anew in a second, all together: each takes a fraction of a millisecond.
    public var nearbyRefreshesPerSecond = 500

    // Calls.
    public var ringTimeout: Duration = .seconds(45)
    /// From accepting until both are in the session.
    public var joinTimeout: Duration = .seconds(30)
    public var callMediaMode = MediaMode.routed
    /// What the sessions of calls are: only a server that routes media makes routed ones.
    public var callSessionMode: MediaMode { routesMedia ? callMediaMode : .relayed }
    /// Calls one person may place, and rings one person may get.
    public var callsPlaced = Budget.Rate(perMinute: 6)
    public var ringsReceived = Budget.Rate(perMinute: 20)
    /// After so many calls in vain to one person within the period, the next waits as long.
    public var callsInVain = 3
    public var callsInVainPeriod: Duration = .seconds(600)

    public init() {}
}

/// A token bucket (as in traffic policing): `burst` at once, refilled at `perSecond`.
public struct Budget: Equatable, Sendable {
    public struct Rate: Equatable, Sendable {
        public var perSecond: Double
        public var burst: Double
        public init(perSecond: Double, burst: Double) { (self.perSecond, self.burst) = (perSecond, burst) }

        /// So many a minute, and as many at once.
        public init(perMinute count: Int) { self.init(perSecond: Double(count) / 60, burst: Double(count)) }

        /// Setting it sets the burst as well.
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

    /// Whether it holds what a new one would.
    public func isFull(_ rate: Rate, now: Timestamp) -> Bool { refilled(rate, now: now) >= rate.burst }

    /// Takes one, or as many as something costs, or says how long until there is enough.
    public mutating func take(_ rate: Rate, cost: Double = 1, now: Timestamp) -> Duration? {
        level = refilled(rate, now: now)
        at = max(at, now)
        // What costs more than a full bucket would never go through: it may when the bucket is full.
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
    /// The same of one that is full until something is taken from it.
    mutating func take(_ rate: Budget.Rate, now: Timestamp) -> Duration? {
        var budget = self ?? Budget(rate, now: now)
        defer { self = budget }
        return budget.take(rate, now: now)
    }
}
