extension ConfabConfiguration {
    /// People, their devices and their contacts.
    public struct Presence: Sendable, Equatable {
        public var devices = 10
        public var maxContacts = 500
        public var linkLifetime: Duration = .seconds(300)
        public var linkGuessesPerMinute = 10
        public init() {}
    }

    /// Who is within reach.
    public struct Nearby: Sendable, Equatable {
        public var topSpeed = 1000
        public var updateInterval: Duration = .seconds(1)
        public var refreshesPerSecond = 500
        public init() {}
    }

    public struct Call: Sendable, Equatable {
        public var ringTimeout: Duration = .seconds(45)
        public var joinTimeout: Duration = .seconds(30)
        public var placedPerMinute = 6
        public var ringsPerMinute = 20
        public var inVain = 3
        public var inVainPeriod: Duration = .seconds(600)
        public var logRetention: Duration = .seconds(365 * 86400)
        public var mediaMode: Roulette.MediaMode = .routed
        public init() {}
    }
}

extension Setting {
    static let people: [Setting] = presence + nearby + call

    /// Timers, which would spin at zero.
    private static let interval = Format<Duration>.duration(.milliseconds(10) ... .seconds(86400))
    private static let count = Format<Int>.integer(1...1_000_000)

    private static let presence: [Setting] = [
        Setting("presence.devices", \.presence.devices, .integer(1...1000), "Devices a person may link together."),
        Setting(
            "presence.maxContacts", \.presence.maxContacts, .integer(0...100_000),
            "People somebody may keep in touch with."),
        Setting(
            "presence.linkLifetime", \.presence.linkLifetime, interval,
            "How long a code that links another device can be used."),
        Setting(
            "presence.linkGuessesPerMinute", \.presence.linkGuessesPerMinute, count,
            "Such codes that one address may try in a minute."),
    ]

    private static let nearby: [Setting] = [
        Setting(
            "nearby.topSpeed", \.nearby.topSpeed, .integer(1...1_000_000),
            "Positions further apart than somebody travels at this speed, in km/h, are refused."),
        Setting(
            "nearby.updateInterval", \.nearby.updateInterval, interval,
            "How often a list of people nearby is told what changed."),
        Setting(
            "nearby.refreshesPerSecond", \.nearby.refreshesPerSecond, count,
            "Lists that are looked up anew in a second, of all who look at one."),
    ]

    private static let call: [Setting] = [
        Setting("call.ringTimeout", \.call.ringTimeout, interval, "How long a call rings before it is missed."),
        Setting(
            "call.joinTimeout", \.call.joinTimeout, interval,
            "An accepted call that the two have not joined by then has failed."),
        Setting(
            "call.placedPerMinute", \.call.placedPerMinute, count,
            "Calls a person may place in a minute; as many at once."),
        Setting(
            "call.ringsPerMinute", \.call.ringsPerMinute, count,
            "Times a person is rung in a minute; callers beyond that hear \"busy\"."),
        Setting(
            "call.inVain", \.call.inVain, count,
            "Calls in vain to one person after which the caller must wait."),
        Setting(
            "call.inVainPeriod", \.call.inVainPeriod, interval,
            "Such calls are counted over this time, and the wait is as long."),
        Setting(
            "call.logRetention", \.call.logRetention, .duration(.zero ... .seconds(3650 * 86400)),
            "Calls are deleted from their people's logs after this time."),
        Setting(
            "call.mediaMode", \.call.mediaMode, .choice,
            "relayed is peer to peer; routed goes through the server and hides addresses."),
    ]
}
