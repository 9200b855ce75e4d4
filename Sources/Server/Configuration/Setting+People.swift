import Signaling
import Wire

extension Setting {
    static let people: [Setting] = presence + nearby + call

    private static let presence: [Setting] = [
        Setting(
            "presence.devices", \.rules.devicesPerPerson, .integer(1...1000), "Maximum linked devices per person.",
            "A call rings on all of them.", applies: .atReload),
        Setting(
            "presence.maxContacts", \.rules.maxContacts, .integer(0...100_000), "Maximum contacts per person.",
            "A person is notified whenever one of their contacts comes online or goes offline."),
        Setting(
            "presence.profileRetention", \.retention.profiles, .duration(.zero ... .seconds(3650 * 86400)),
            "How long the profile of an inactive person is kept.",
            "It is kept longer if the person has contacts, linked devices or push endpoints.", applies: .atReload),
        Setting(
            "presence.linkLifetime", \.rules.linkCodeLifetime, interval,
            "How long a pairing code for linking a device is valid.", "A code can be used once."),
        Setting(
            "presence.linkGuessesPerMinute", \.rules.linkGuesses.perMinute, count,
            "Pairing codes that one IP address may try per minute.",
            "Keep it low, because codes are short enough to type.", applies: .atReload),
    ]

    private static let nearby: [Setting] = [
        Setting(
            "nearby.topSpeed", \.rules.fastestKilometersPerHour, .integer(1...1_000_000),
            "Maximum plausible travel speed in km/h. A location change that implies a higher speed is rejected.",
            "A lower value makes it harder to track down people by faking locations, but rejects people on airplanes."),
        Setting(
            "nearby.updateInterval", \.rules.nearbyInterval, interval,
            "How often changes are sent to an open list of people nearby."),
        Setting(
            "nearby.refreshesPerSecond", \.rules.nearbyRefreshesPerSecond, count,
            "Maximum refreshes of nearby lists per second, across all people.",
            "Each takes a fraction of a millisecond. Beyond this limit, updates are delayed."),
    ]

    private static let call: [Setting] = [
        Setting("call.ringTimeout", \.rules.ringTimeout, interval, "How long a call rings before it counts as missed."),
        Setting(
            "call.joinTimeout", \.rules.joinTimeout, interval,
            "How long both people may take to join an accepted call before it fails."),
        Setting(
            "call.placedPerMinute", \.rules.callsPlaced.perMinute, count,
            "Maximum calls that a person may place per minute. All of them may be placed at once.", applies: .atReload),
        Setting(
            "call.ringsPerMinute", \.rules.ringsReceived.perMinute, count,
            "Maximum incoming calls per person per minute. Additional callers get \"busy\".",
            "Otherwise a person could be called nonstop.", applies: .atReload),
        Setting(
            "call.unsuccessfulLimit", \.rules.unsuccessfulCallLimit, count,
            "Number of unsuccessful calls to the same person after which the caller must wait.",
            "Declined, canceled and unanswered calls count.", applies: .atReload),
        Setting(
            "call.unsuccessfulPeriod", \.rules.unsuccessfulCallPeriod, interval,
            "Period over which unsuccessful calls are counted, and how long the caller must wait.", applies: .atReload),
        Setting(
            "call.logRetention", \.retention.calls, .duration(.zero ... .seconds(3650 * 86400)),
            "How long calls stay in the call history.",
            "People can delete their own entries earlier.", applies: .atReload),
        Setting(
            "call.mediaMode", \.rules.callMediaMode, .choice,
            "routed: media goes through the server, which hides IP addresses. relayed: media is peer to peer.",
            "With relayed and no TURN server, the two people can see each other's IP address."),
    ]
}
