import Logging
import Signaling
import Wire

extension ConfabConfiguration {
    /// Every key, in the order of the sample file.
    public static var keys: [ConfigurationKey] { Setting.all.map(\.key) }

    /// Every key with its default and its meaning, a line each, as `confab serve --help-config` prints them.
    public static var help: String {
        keys.map { "\($0.name) (\($0.defaultText.isEmpty ? "unset" : $0.defaultText)): \($0.meaning)\n" }.joined()
    }
}

extension Setting {
    static let all: [Setting] =
        server + operations + media + whip + limits + connection + socketIO + pairing + moderation
        + people + push

    private static let port = Format<Int>.integer(0...65535)
    /// Waits that tests set to nothing at all.
    private static let wait = Format<Duration>.duration(.zero ... .seconds(86400))
    /// Timers, which would spin at zero.
    private static let interval = Format<Duration>.duration(.milliseconds(10) ... .seconds(86400))
    private static let count = Format<Int>.integer(1...1_000_000)
    private static let rate = Format<Double>.whole(1...1_000_000)
    private static let size = Format<Int>.size(.kibibytes(1) ... .mebibytes(64))

    private static let server: [Setting] = [
        Setting(
            "host", \.host, .word("an address or host name"), "Address to listen on; 0.0.0.0 or :: is every address."),
        Setting("port", \.port, port, "TCP port of the page, the API and the WebSocket; 0 takes a free one."),
        Setting(
            "dataDirectory", \.dataDirectory, .path,
            "Where the project file and the database are kept, for the owner only."),
        Setting(
            "publicURL", \.publicURL, .optional(.webURL("a URL such as https://chat.example.org", allowsPath: true)),
            "The URL people use, when a proxy stands in front; links and the ready line show it."),
        Setting("lan", \.lan, .boolean, "Serve the local network: every address, own certificate authority, QR code."),
        Setting(
            "webDirectory", \.webDirectory, .optional(.path),
            "Serve the web files from here instead of the built-in ones."),
        Setting(
            "trustedProxies", \.trustedProxies.blocks,
            .list(
                of: .single("an address or block such as 10.0.0.0/8", parse: { CIDRBlock($0) }, write: \.description)),
            "Proxies whose X-Forwarded-For and Forwarded headers are believed; nobody else's are."),
        Setting(
            "allowedOrigins", \.allowedOrigins,
            .list(of: .webURL("an origin such as https://chat.example.org", allowsPath: false)),
            "Web origins that may connect; empty admits any, for there are no cookies to abuse."),
        Setting(
            "apiKey", \.apiKey, .optional(.word("8 to 20 digits", where: ProjectFile.isAPIKey)),
            "The project's API key, instead of the one in the project file."),
        Setting(
            "apiSecret", \.apiSecret,
            .optional(.secret(ProjectFile.acceptedSecret, where: ProjectFile.isAPISecret)),
            "The project's secret, instead of the one in the project file; it signs sessions and tokens.",
            isSecret: true),
        Setting(
            "tls.certificate", \.tls.certificate, .optional(.path),
            "PEM file with the certificate chain; HTTPS needs both files."),
        Setting("tls.privateKey", \.tls.privateKey, .optional(.path), "PEM file with the certificate's private key."),
    ]

    private static let operations: [Setting] = [
        Setting(
            "log.level", \.log.level,
            .single(
                Logger.Level.allCases.map(\.rawValue).joined(separator: " or "), parse: Logger.Level.init(rawValue:),
                write: \.rawValue),
            "The least important level that is written."),
        Setting("log.format", \.log.format, .choice, "Lines for people or one JSON object a line for programs."),
        Setting(
            "metrics.host", \.metrics.host, .word("an address or host name"),
            "Address of GET /metrics, which has no password."),
        Setting("metrics.port", \.metrics.port, port, "TCP port of GET /metrics, apart from the public one."),
        Setting(
            "metrics.enabled", \.metrics.enabled, .choice,
            "auto serves metrics only when metrics.host is a loopback address."),
        Setting(
            "storage.pollInterval", \.storage.pollInterval, interval,
            "How often the server looks for what commands changed in the database."),
        Setting("shutdown.grace", \.shutdown.grace, wait, "How long connections may finish after a request to stop."),
    ]

    private static let media: [Setting] = [
        Setting(
            "media.enabled", \.rules.routesMedia, .boolean,
            "Whether the server routes media; without it all media goes from browser to browser."),
        Setting("media.port", \.media.port, port, "First UDP and TCP port of routed media; 0 takes a free one."),
        Setting(
            "media.address", \.media.address,
            .optional(.single("an IPv4 or IPv6 address", parse: { IPAddress($0) }, write: \.description)),
            "The address browsers are told to send media to, when it is not one of this machine's (NAT)."),
        Setting(
            "media.relayedFallback", \.rules.relayedFallback, wait,
            "Peer-to-peer media not connected by then goes through the server."),
        Setting(
            "ice.stunServers", \.ice.stunServers,
            .list(
                of: .word(
                    "a URL such as stun:stun.example.org:3478", where: { iceURL($0, schemes: ["stun:", "stuns:"]) })),
            "STUN servers that browsers ask for their public address."),
        Setting(
            "ice.turnServers", \.ice.turnServers,
            .list(
                of: .word(
                    "a URL such as turn:turn.example.org:3478?transport=udp",
                    where: { iceURL($0, schemes: ["turn:", "turns:"]) })),
            "TURN servers that relay media where nothing else gets through."),
        Setting(
            "ice.turnSecret", \.ice.turnSecret,
            .optional(.secret("the TURN server's shared secret", where: { !$0.isEmpty })),
            "coturn's static-auth-secret: each client gets credentials of its own that expire.", isSecret: true),
        Setting(
            "ice.turnUsername", \.ice.turnUsername, .optional(.word("a user name")),
            "Fixed TURN user name, for servers without a shared secret; every client sees it."),
        Setting(
            "ice.turnPassword", \.ice.turnPassword, .optional(.secret("a password", where: { !$0.isEmpty })),
            "Fixed TURN password; every client sees it.", isSecret: true),
        Setting(
            "ice.credentialLifetime", \.ice.credentialLifetime, .duration(.seconds(10) ... .seconds(86400)),
            "How long TURN credentials can start a relay; a running call outlives them."),
    ]

    private static let whip: [Setting] = [
        Setting(
            "whip.resources", \.rules.resources, count,
            "Publishers and viewers by WHIP and WHEP (OBS and the like) at a time."),
        Setting(
            "whip.resourcesPerAddress", \.rules.resourcesPerAddress, count,
            "The same of one address (an IPv6 /64)."),
        Setting(
            "whip.resourcesPerToken", \.rules.resourcesPerToken, count,
            "The same with one token; a link to watch is one token."),
        Setting(
            "whip.answerTimeout", \.rules.resourceAnswer, interval, "How long such a request may wait for its answer."),
        Setting(
            "whip.connectTimeout", \.rules.resourceConnect, interval,
            "How long such a publisher or viewer may be without a path for its media."),
    ]

    private static let limits: [Setting] = [
        Setting(
            "limits.messageSize", \.rules.messageSize, size,
            "Largest WebSocket message and request body; larger closes with 4413."),
        Setting(
            "limits.descriptionSize", \.rules.descriptionSize, size,
            "Largest session description (SDP), which outgrows other messages."),
        Setting(
            "limits.socketsPerAddress", \.limits.socketsPerAddress, count,
            "Open connections of one address (an IPv6 /64); a school shares one."),
        Setting(
            "limits.handshakeTimeout", \.limits.handshakeTimeout, interval,
            "Time from connecting a WebSocket to saying hello."),
        Setting(
            "limits.requestHeaderTimeout", \.limits.requestHeaderTimeout, interval,
            "Time to send a request's head; holds off slow attackers."),
        Setting(
            "limits.verbsPerSecond", \.rules.verbs.perSecond, rate,
            "Messages a connection may send for ever, each second."),
        Setting(
            "limits.verbBurst", \.rules.verbs.burst, rate, "Messages a connection may send at once on top of that."),
        Setting(
            "limits.hellosPerSecond", \.limits.hellos.perSecond, rate,
            "New visits an address may make per second, sustained."),
        Setting(
            "limits.helloBurst", \.limits.hellos.burst, rate, "New visits an address may make at once on top of that."),
        Setting(
            "limits.sendQueue", \.limits.sendQueue, size, "Unsent bytes kept for a slow reader before it is dropped."),
    ]

    private static let connection: [Setting] = [
        Setting(
            "connection.pingInterval", \.rules.pingInterval, interval,
            "How often both ends show that they are alive."),
        Setting(
            "connection.missedPings", \.connection.missedPings, .integer(1...100),
            "Pings without an answer after which a connection counts as dropped."),
        Setting(
            "connection.resumeGrace", \.rules.resumeGrace, wait, "How long a dropped connection's place is kept."),
        Setting(
            "connection.replayMessages", \.rules.replay.messages, .integer(0...65536),
            "Messages kept for a dropped connection; past them it gets a snapshot."),
        Setting(
            "connection.replayBytes", \.rules.replay.bytes, .size(ByteCount(bytes: 0) ... .mebibytes(64)),
            "The same in bytes."),
    ]

    private static let socketIO: [Setting] = [
        Setting(
            "socketIO.heartbeatInterval", \.socketIO.heartbeatInterval, interval,
            "How often clients of Socket.IO 0.9 on a WebSocket get a heartbeat."),
        Setting(
            "socketIO.heartbeatTimeout", \.socketIO.heartbeatTimeout, interval,
            "Silence after which such a client is gone; any frame is a sign of life."),
        Setting(
            "socketIO.closeTimeout", \.socketIO.closeTimeout, interval,
            "How long a polling client may take from one poll to the next."),
        Setting(
            "socketIO.lostPollTimeout", \.socketIO.lostPollTimeout, interval,
            "The same when the poll before was cut off, as by a page that closed."),
        Setting(
            "socketIO.pollDuration", \.socketIO.pollDuration, interval,
            "How long a poll waits for something to say."),
        Setting(
            "socketIO.handshakeTimeout", \.socketIO.handshakeTimeout, interval,
            "How long a handshake may stay unused."),
    ]

    private static let pairing: [Setting] = [
        Setting(
            "roulette.interestWait", \.rules.interestWait, wait,
            "How long only people with a shared interest are paired, then anybody."),
        Setting(
            "roulette.rematchWait", \.rules.rematchWait, wait,
            "How long two who just left each other wait when nobody else is there."),
        Setting("roulette.skipWindow", \.rules.skipWindow, wait, "Ending a chat sooner than this counts as a skip."),
        Setting("roulette.skipPeriod", \.rules.skipPeriod, wait, "Skips are counted over this time."),
        Setting(
            "roulette.skipsBeforeWait", \.rules.skipsBeforeWait, .integer(1...1000),
            "From this skip on in that time, the next match is delayed."),
        Setting(
            "roulette.firstSkipWait", \.rules.firstSkipWait, wait,
            "The first delay; it doubles with each further skip."),
        Setting("roulette.longestSkipWait", \.rules.longestSkipWait, wait, "The longest delay."),
        Setting("roulette.maxInterests", \.rules.maxInterests, .integer(0...100), "Interests a person may name."),
        Setting("roulette.maxBlocks", \.rules.maxBlocks, .integer(0...100_000), "People an identity may block."),
        Setting(
            "roulette.entriesPerAddress", \.rules.entriesPerAddress, count,
            "People of one address who may wait at a time."),
        Setting(
            "roulette.candidatesPerAttempt", \.rules.candidatesPerAttempt, .integer(1...100_000),
            "Partners looked at in one attempt, so that a full queue stays cheap."),
        Setting(
            "roulette.retryInterval", \.rules.retryInterval, interval,
            "How soon somebody who found nobody is tried again."),
        Setting(
            "roulette.streamTimeout", \.rules.streamTimeout, wait,
            "A partner's video not there by then is said on the page."),
        Setting(
            "roulette.mediaMode", \.rules.rouletteMediaMode, .choice,
            "relayed is peer to peer; routed goes through the server and hides addresses."),
    ]

    private static let moderation: [Setting] = [
        Setting(
            "roulette.reportLines", \.rules.reportLines, .integer(0...1000),
            "Chat lines a report may carry; the reporter is told."),
        Setting(
            "roulette.reportRetention", \.retention.reports, .duration(.zero ... .seconds(3650 * 86400)),
            "Reports are deleted after this time."),
    ]

    /// `scheme:host[:port][?transport=udp|tcp]` of RFC 7064 and RFC 7065; browsers refuse the whole list otherwise.
    private static func iceURL(_ text: String, schemes: [String]) -> Bool {
        guard let scheme = schemes.first(where: text.hasPrefix) else { return false }
        var rest = text.dropFirst(scheme.count)
        if let query = rest.firstIndex(of: "?") {
            guard scheme.hasPrefix("turn"), ["?transport=udp", "?transport=tcp"].contains(rest[query...]) else {
                return false
            }
            rest = rest[..<query]
        }
        return !rest.contains("/") && WebURLText.normalized("http://" + rest, allowsPath: false) != nil
    }
}
