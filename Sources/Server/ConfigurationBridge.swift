import Signaling
import Wire

/// From the configuration's words to those of the rules and the gateway: the only place that knows both.
extension Rules {
    init(_ configuration: ConfabConfiguration) {
        self.init()
        let (connection, limits, roulette) = (configuration.connection, configuration.limits, configuration.roulette)
        resumeGrace = connection.resumeGrace
        pingInterval = connection.pingInterval
        replay = Link.Bounds(messages: connection.replayMessages, bytes: connection.replayBytes.bytes)
        verbs = Budget.Rate(perSecond: Double(limits.verbsPerSecond), burst: Double(limits.verbBurst))
        messageSize = limits.messageSize.bytes
        descriptionSize = limits.descriptionSize.bytes
        reportLines = roulette.reportLines
        interestWait = roulette.interestWait
        rematchWait = roulette.rematchWait
        skipWindow = roulette.skipWindow
        skipPeriod = roulette.skipPeriod
        skipsBeforeWait = roulette.skipsBeforeWait
        firstSkipWait = roulette.firstSkipWait
        longestSkipWait = roulette.longestSkipWait
        maxInterests = roulette.maxInterests
        maxBlocks = roulette.maxBlocks
        entriesPerAddress = roulette.entriesPerAddress
        candidatesPerAttempt = roulette.candidatesPerAttempt
        retryInterval = roulette.retryInterval
        streamTimeout = roulette.streamTimeout
        rouletteMediaMode = roulette.mediaMode == .routed ? .routed : .relayed
        routesMedia = configuration.media.isEnabled
        relayedFallback = configuration.media.relayedFallback
        resources = configuration.whip.resources
        resourcesPerAddress = configuration.whip.resourcesPerAddress
        resourcesPerToken = configuration.whip.resourcesPerToken
        resourceAnswer = configuration.whip.answerTimeout
        resourceConnect = configuration.whip.connectTimeout
        set(configuration.presence, configuration.nearby)
        set(configuration.call)
    }

    private mutating func set(_ presence: ConfabConfiguration.Presence, _ nearby: ConfabConfiguration.Nearby) {
        devicesPerPerson = presence.devices
        maxContacts = presence.maxContacts
        linkCodeLifetime = presence.linkLifetime
        linkGuesses = .perMinute(presence.linkGuessesPerMinute)
        fastestKilometresPerHour = nearby.topSpeed
        nearbyInterval = nearby.updateInterval
        nearbyRefreshesPerSecond = nearby.refreshesPerSecond
    }

    private mutating func set(_ call: ConfabConfiguration.Call) {
        ringTimeout = call.ringTimeout
        joinTimeout = call.joinTimeout
        callsPlaced = .perMinute(call.placedPerMinute)
        ringsReceived = .perMinute(call.ringsPerMinute)
        callsInVain = call.inVain
        callsInVainPeriod = call.inVainPeriod
        callMediaMode = call.mediaMode == .routed ? .routed : .relayed
    }
}

extension Budget.Rate {
    /// So many a minute, and as many at once.
    fileprivate static func perMinute(_ count: Int) -> Self {
        Self(perSecond: Double(count) / 60, burst: Double(count))
    }
}

extension ICEProvision {
    init(_ configuration: ConfabConfiguration.ICE) {
        var credentials: TURNCredentials?
        if let secret = configuration.turnSecret {
            credentials = .timeLimited(secret: secret.revealed, lifetime: configuration.credentialLifetime)
        } else if let username = configuration.turnUsername, let password = configuration.turnPassword {
            credentials = .fixed(username: username, password: password.revealed)
        }
        self.init(
            stunServers: configuration.stunServers, turnServers: configuration.turnServers, credentials: credentials
        )
    }
}

extension Gateway.Settings {
    init(_ configuration: ConfabConfiguration) {
        self.init()
        messageSize = configuration.limits.messageSize.bytes
        descriptionSize = configuration.limits.descriptionSize.bytes
        socketsPerAddress = configuration.limits.socketsPerAddress
        hellos = Budget.Rate(
            perSecond: Double(configuration.limits.hellosPerSecond), burst: Double(configuration.limits.helloBurst)
        )
        helloTimeout = configuration.limits.handshakeTimeout
        pingInterval = configuration.connection.pingInterval
        missedPings = configuration.connection.missedPings
        sendQueue = configuration.limits.sendQueue.bytes
        trustedProxies = configuration.trustedProxies
        allowedOrigins = configuration.allowedOrigins
        publicURL = configuration.publicURL
        socketIO = SocketIOConnection.Settings(configuration)
    }
}

extension SocketIOConnection.Settings {
    init(_ configuration: ConfabConfiguration) {
        self.init()
        heartbeatInterval = configuration.socketIO.heartbeatInterval
        heartbeatTimeout = configuration.socketIO.heartbeatTimeout
        closeTimeout = configuration.socketIO.closeTimeout
        lostPollTimeout = configuration.socketIO.lostPollTimeout
        pollDuration = configuration.socketIO.pollDuration
        handshakeTimeout = configuration.socketIO.handshakeTimeout
        packets = Budget.Rate(
            perSecond: Double(configuration.limits.verbsPerSecond), burst: Double(configuration.limits.verbBurst)
        )
        queuedPackets = max(1, configuration.connection.replayMessages)
        queuedBytes = max(4096, configuration.connection.replayBytes.bytes)
    }
}
