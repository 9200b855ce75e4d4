import Signaling
import Wire

extension Setting {
    static let people: [Setting] = presence + nearby + call

    /// Timers, which would spin at zero.
    private static let interval = Format<Duration>.duration(.milliseconds(10) ... .seconds(86400))
    private static let count = Format<Int>.integer(1...1_000_000)

    private static let presence: [Setting] = [
        Setting(
            "presence.devices", \.rules.devicesPerPerson, .integer(1...1000), "Devices a person may link together."),
        Setting(
            "presence.maxContacts", \.rules.maxContacts, .integer(0...100_000),
            "People somebody may keep in touch with."),
        Setting(
            "presence.linkLifetime", \.rules.linkCodeLifetime, interval,
            "How long a code that links another device can be used."),
        Setting(
            "presence.linkGuessesPerMinute", \.rules.linkGuesses.perMinute, count,
            "Such codes that one address may try in a minute."),
    ]

    private static let nearby: [Setting] = [
        Setting(
            "nearby.topSpeed", \.rules.fastestKilometresPerHour, .integer(1...1_000_000),
            "Positions further apart than somebody travels at this speed, in km/h, are refused."),
        Setting(
            "nearby.updateInterval", \.rules.nearbyInterval, interval,
            "How often a list of people nearby is told what changed."),
        Setting(
            "nearby.refreshesPerSecond", \.rules.nearbyRefreshesPerSecond, count,
            "Lists that are looked up anew in a second, of all who look at one."),
    ]

    private static let call: [Setting] = [
        Setting("call.ringTimeout", \.rules.ringTimeout, interval, "How long a call rings before it is missed."),
        Setting(
            "call.joinTimeout", \.rules.joinTimeout, interval,
            "An accepted call that the two have not joined by then has failed."),
        Setting(
            "call.placedPerMinute", \.rules.callsPlaced.perMinute, count,
            "Calls a person may place in a minute; as many at once."),
        Setting(
            "call.ringsPerMinute", \.rules.ringsReceived.perMinute, count,
            "Times a person is rung in a minute; callers beyond that hear \"busy\"."),
        Setting(
            "call.inVain", \.rules.callsInVain, count,
            "Calls in vain to one person after which the caller must wait."),
        Setting(
            "call.inVainPeriod", \.rules.callsInVainPeriod, interval,
            "Such calls are counted over this time, and the wait is as long."),
        Setting(
            "call.logRetention", \.retention.calls, .duration(.zero ... .seconds(3650 * 86400)),
            "Calls are deleted from their people's logs after this time."),
        Setting(
            "call.mediaMode", \.rules.callMediaMode, .choice,
            "relayed is peer to peer; routed goes through the server and hides addresses."),
    ]
}
