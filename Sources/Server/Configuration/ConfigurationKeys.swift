import Logging
import Signaling
import Wire

extension ConfabConfiguration {
    /// All keys, grouped by topic.
    public static var keys: [ConfigurationKey] { Setting.all.map(\.key) }

    /// The output of `confab serve --help-config`: one line per key, with its default and meaning, and whether a reload applies
    /// it.
    public static var help: String {
        keys.map { key in
            let text = key.defaultText.isEmpty ? "unset" : key.defaultText
            return "\(key.name) (\(text)): \(key.meaning)\(key.isLive ? " [reload]" : "")\n"
        }.joined()
    }
}

extension Setting {
    static let all: [Setting] =
        server + web + operations + media + whip + limits + connection + socketIO + pairing + moderation
        + people + rooms + perch + push

    private static let port = Format<Int>.integer(0...65535)
    /// The format of durations that may be zero. Tests use zero.
    private static let wait = Format<Duration>.duration(.zero ... .seconds(86400))
    /// The format of timer intervals. The minimum prevents a busy loop.
    private static let interval = Format<Duration>.duration(.milliseconds(10) ... .seconds(86400))
    private static let count = Format<Int>.integer(1...1_000_000)
    private static let rate = Format<Double>.whole(1...1_000_000)
    private static let size = Format<Int>.size(.kibibytes(1) ... .mebibytes(64))

    /// The format of limits on total sizes, such as the send queues of all connections.
    private static let largeSize = Format<Int>.size(.kibibytes(1) ... .mebibytes(1 << 20))

    private static let server: [Setting] = [
        Setting(
            "host", \.host, .host,
            "Address to listen on. 0.0.0.0 or :: listens on all interfaces."),
        Setting("port", \.port, port, "TCP port for the web app, the API and the WebSocket. 0 picks a free port."),
        Setting(
            "dataDirectory", \.dataDirectory, .path,
            "Directory for the project file, the server key and the database, readable by its owner only."),
        Setting(
            "publicURL", \.publicURL,
            .optional(
                .webURL(
                    "a URL such as https://chat.example.org, or, below a path of another site, "
                        + "https://example.org/video (letters, digits and -._~)", allowsPath: true)),
            "Public URL of this server, if it is behind a reverse proxy. May have a path. Shown in links and at startup."
        ),
        Setting(
            "lan", \.lan, .boolean,
            "Make the server available on the local network: use all interfaces and a local CA, and show a QR code."),
        Setting(
            "webDirectory", \.webDirectory, .optional(.path),
            "Serve the web files from this directory instead of the built-in ones."),
        Setting(
            "trustedProxies", \.trustedProxies.blocks,
            .list(
                of: .single("an address or block such as 10.0.0.0/8", parse: { CIDRBlock($0) }, write: \.description)),
            "Proxies whose X-Forwarded-For and Forwarded headers are trusted.", applies: .atReload),
        Setting(
            "allowedOrigins", \.allowedOrigins,
            .list(of: .webURL("an origin such as https://chat.example.org", allowsPath: false)),
            "Web origins that may connect. Empty allows all, which is safe because no cookies are used.",
            applies: .atReload),
        Setting(
            "apiKey", \.apiKey, .optional(.word("8 to 20 digits", where: ProjectFile.isAPIKey)),
            "API key of the project. Overrides the one in the project file."),
        Setting(
            "apiSecret", \.apiSecret,
            .optional(.secret(ProjectFile.acceptedSecret, where: ProjectFile.isAPISecret)),
            "Secret that signs tokens. Overrides the one in the project file.",
            isSecret: true, applies: .atReload),
        Setting(
            "tls.certificate", \.tls.certificate, .optional(.path),
            "PEM file with the certificate chain. HTTPS needs this and tls.privateKey."),
        Setting(
            "tls.privateKey", \.tls.privateKey, .optional(.path), "PEM file with the private key of the certificate."),
        Setting(
            "tls.checkInterval", \.tls.checkInterval, interval,
            "How often to check whether the certificate or its key has changed. New connections get the new "
                + "certificate."),
        Setting(
            "tls.hsts", \.tls.hsts, .boolean,
            "Whether to make browsers use only HTTPS for this host for a year (HSTS), if Confab handles HTTPS."),
    ]

    private static let operations: [Setting] = [
        Setting(
            "log.level", \.log.level,
            .single(
                "one of " + Logger.Level.allCases.map(\.rawValue).joined(separator: ", "),
                parse: Logger.Level.init(rawValue:), write: \.rawValue),
            "Minimum level of log messages.", applies: .atReload),
        Setting(
            "log.format", \.log.format, .choice,
            "Log format: text for people, json for programs (one JSON object per line)."),
        Setting(
            "metrics.host", \.metrics.host, .host,
            "Address for GET /metrics, which has no authentication."),
        Setting("metrics.port", \.metrics.port, port, "TCP port for GET /metrics. Must differ from the public port."),
        Setting(
            "metrics.enabled", \.metrics.enabled, .choice,
            "Whether to serve metrics. auto serves them only if metrics.host is a loopback address."),
        Setting(
            "storage.busyTimeout", \.storage.busyTimeout, interval,
            "How long a change waits for a locked database before it fails. Requests that store nothing do not wait."),
        Setting(
            "storage.faultTimeout", \.storage.faultTimeout, interval,
            "How long the server keeps retrying when the disk is full or an I/O error occurs, before it shuts down."),
        Setting(
            "storage.minFreeSpace", \.storage.minFreeSpace, .size(.mebibytes(0) ... .mebibytes(1 << 20)),
            "Minimum free space on the disk of the data directory. With less, the server is not ready (GET /ready)."),
        Setting(
            "storage.lowSpace", \.storage.lowSpace, .size(.mebibytes(0) ... .mebibytes(1 << 20)),
            "Free space below which nothing optional is stored: no new profiles, contacts or push endpoints."),
        Setting(
            "storage.pollInterval", \.storage.pollInterval, interval,
            "How often to check the database for changes made by commands.", applies: .atReload),
        Setting(
            "storage.lockTimeout", \.storage.lockTimeout, wait,
            "How long a starting server waits for another server to release the data directory."),
        Setting(
            "shutdown.grace", \.shutdown.grace, wait,
            "How long shutdown waits for changes to be stored and connections to close.", applies: .atReload),
        Setting(
            "shutdown.closeTimeout", \.shutdown.closeTimeout, wait,
            "How long shutdown waits for clients to acknowledge the closing.", applies: .atReload),
    ]

    private static let media: [Setting] = [
        Setting(
            "media.enabled", \.rules.routesMedia, .boolean,
            "Whether the server can route media. If false, all media is peer to peer."),
        Setting("media.port", \.media.port, port, "UDP and TCP port for routed media. 0 picks a free port."),
        Setting(
            "media.address", \.media.address,
            .optional(.single("an IPv4 or IPv6 address", parse: { IPAddress($0) }, write: \.description)),
            "Address announced to browsers for media, if it differs from this machine's own (NAT)."),
        Setting(
            "media.congestionControl", \.media.congestionControl, .boolean,
            "Whether subscribers on slow networks get smaller layers, or audio only."),
        Setting(
            "media.loudestStreams", \.media.loudestStreams, .integer(1...10_000),
            "Maximum publishers per session whose audio is forwarded. In a larger session, only the loudest are heard."),
        Setting(
            "media.sessionBitrate", \.media.sessionBitrate, .optional(.bitrate),
            "Maximum total bitrate sent to the subscribers of one session. At the limit, new video is refused."),
        Setting(
            "media.totalBitrate", \.media.totalBitrate, .optional(.bitrate),
            "Maximum total bitrate sent to all subscribers. At the limit, new video and new connections are refused."),
        Setting(
            "media.relayedFallback", \.rules.relayedFallback, wait,
            "Peer-to-peer media that is not connected after this time is routed through the server."),
        Setting(
            "ice.stunServers", \.ice.stunServers,
            .list(
                of: .word(
                    "a URL such as stun:stun.example.org:3478", where: { iceURL($0, schemes: ["stun:", "stuns:"]) })),
            "STUN servers, from which browsers get their public address.", applies: .atReload),
        Setting(
            "ice.turnServers", \.ice.turnServers,
            .list(
                of: .word(
                    "a URL such as turn:turn.example.org:3478?transport=udp",
                    where: { iceURL($0, schemes: ["turn:", "turns:"]) })),
            "TURN servers that relay media when peers cannot connect directly.", applies: .atReload),
        Setting(
            "ice.turnSecret", \.ice.turnSecret,
            .optional(.secret("the TURN server's shared secret", where: { !$0.isEmpty })),
            "Shared secret of the TURN server (coturn: static-auth-secret). Each client gets its own temporary "
                + "credentials.",
            isSecret: true, applies: .atReload),
        Setting(
            "ice.turnUsername", \.ice.turnUsername, .optional(.word("a user name")),
            "Fixed TURN user name, for servers without a shared secret. Every client can see it.", applies: .atReload),
        Setting(
            "ice.turnPassword", \.ice.turnPassword, .optional(.secret("a password", where: { !$0.isEmpty })),
            "Fixed TURN password. Every client can see it.", isSecret: true, applies: .atReload),
        Setting(
            "ice.credentialLifetime", \.ice.credentialLifetime, .duration(.seconds(10) ... .seconds(86400)),
            "How long TURN credentials can be used to start a relay. Calls in progress are not affected.",
            applies: .atReload),
    ]

    private static let whip: [Setting] = [
        Setting(
            "whip.resources", \.rules.resources, count,
            "Maximum simultaneous WHIP publishers (OBS, for example) and WHEP viewers.", applies: .atReload),
        Setting(
            "whip.resourcesPerAddress", \.rules.resourcesPerAddress, count,
            "Maximum WHIP and WHEP clients per IP address (per /64 for IPv6).", applies: .atReload),
        Setting(
            "whip.resourcesPerToken", \.rules.resourcesPerToken, count,
            "Maximum WHIP and WHEP clients per token.", applies: .atReload),
        Setting(
            "whip.answerTimeout", \.rules.resourceAnswer, interval,
            "How long a WHIP or WHEP request may wait for its answer."),
        Setting(
            "whip.connectTimeout", \.rules.resourceConnect, interval,
            "How long a WHIP or WHEP client may be without a media connection."),
    ]

    private static let limits: [Setting] = [
        Setting(
            "limits.messageSize", \.rules.messageSize, size,
            "Maximum size of a WebSocket message or request body. A larger message closes the connection (code 4413)."),
        Setting(
            "limits.descriptionSize", \.rules.descriptionSize, size,
            "Maximum size of a session description (SDP), which may be larger than other messages."),
        Setting(
            "limits.socketsPerAddress", \.limits.socketsPerAddress, count,
            "Maximum open connections per IP address (per /64 for IPv6).", applies: .atReload),
        Setting(
            "limits.connectionsPerAddress", \.limits.connectionsPerAddress, count,
            "Maximum TCP connections per IP address (per /64 for IPv6), counted before TLS and before any request.",
            applies: .atReload),
        Setting(
            "limits.newConnectionsPerSecond", \.limits.newConnections.perSecond, rate,
            "Sustained rate: new TCP connections per second per IP address, counted before TLS."),
        Setting(
            "limits.newConnectionBurst", \.limits.newConnections.burst, rate,
            "Burst: new TCP connections that an IP address may make at once, above the sustained rate."),
        Setting(
            "limits.handshakeTimeout", \.limits.handshakeTimeout, interval,
            "How long a new WebSocket may take to send hello.", applies: .atReload),
        Setting(
            "limits.requestHeaderTimeout", \.limits.requestHeaderTimeout, interval,
            "How long a client may take to send the request headers. Protects against attacks that send them slowly.",
            applies: .atReload),
        Setting(
            "limits.requestsPerSecond", \.rules.verbs.perSecond, rate,
            "Sustained rate: requests per second per connection.", applies: .atReload),
        Setting(
            "limits.requestBurst", \.rules.verbs.burst, rate,
            "Burst: requests that a connection may send at once, above the sustained rate.", applies: .atReload),
        Setting(
            "limits.connectionsPerPerson", \.rules.connectionsPerPerson, count,
            "Maximum connections per person. Opening another one closes the oldest.", applies: .atReload),
        Setting(
            "limits.personRequestsPerSecond", \.rules.personVerbs.perSecond, rate,
            "Sustained rate: requests per second per person, over all connections.", applies: .atReload),
        Setting(
            "limits.personRequestBurst", \.rules.personVerbs.burst, rate,
            "Burst: requests that a person may send at once over all connections, above the sustained rate.",
            applies: .atReload),
        Setting(
            "limits.handshakesPerSecond", \.limits.hellos.perSecond, rate,
            "Sustained rate: new connections per second per IP address.", applies: .atReload),
        Setting(
            "limits.handshakeBurst", \.limits.hellos.burst, rate,
            "Burst: new connections that an IP address may open at once, above the sustained rate.", applies: .atReload),
        Setting(
            "limits.filesPerSecond", \.limits.files.perSecond, rate,
            "Sustained rate: uploads and downloads of files in rooms per second per IP address.", applies: .atReload),
        Setting(
            "limits.fileBurst", \.limits.files.burst, rate,
            "Burst: uploads and downloads that an IP address may begin at once, above the sustained rate.",
            applies: .atReload),
        Setting(
            "limits.transfersPerAddress", \.limits.transfersPerAddress, count,
            "Maximum concurrent uploads and downloads of files in rooms per IP address (per /64 for IPv6).",
            applies: .atReload),
        Setting(
            "limits.addressMessagesPerSecond", \.limits.addressMessages.perSecond, rate,
            "Sustained rate: messages and requests per second per IP address (per /64 for IPv6), over all connections."),
        Setting(
            "limits.addressMessageBurst", \.limits.addressMessages.burst, rate,
            "Burst: messages and requests that an IP address may send at once, above the sustained rate."),
        Setting(
            "limits.storedPerAddressAndDay", \.limits.storedPerAddressAndDay, largeSize,
            "Maximum data stored per day for the clients of one IP address."),
        Setting(
            "limits.sendQueue", \.limits.sendQueue, size,
            "Maximum unsent data per connection. A client that reads too slowly is disconnected."),
        Setting(
            "limits.sendQueuesPerAddress", \.limits.sendQueuesPerAddress, largeSize,
            "Maximum unsent data per IP address. Beyond it, the connection with the most unsent data is closed."),
        Setting(
            "limits.sendQueuesOfAll", \.limits.sendQueuesOfAll, largeSize,
            "Maximum unsent data of all connections. Beyond it, the IP address with the most unsent data loses a "
                + "connection."),
    ]

    private static let connection: [Setting] = [
        Setting(
            "connection.pingInterval", \.rules.pingInterval, interval,
            "How often the client and the server send a ping."),
        Setting(
            "connection.missedPings", \.connection.missedPings, .integer(1...100),
            "Missed pings after which a connection counts as lost."),
        Setting(
            "connection.resumeGrace", \.rules.resumeGrace, wait, "How long a lost connection can be resumed."),
        Setting(
            "connection.replayMessages", \.rules.replay.messages, .integer(0...65536),
            "Maximum messages kept for a lost connection. If there are more, the client gets a snapshot instead."),
        Setting(
            "connection.replayBytes", \.rules.replay.bytes, .size(ByteCount(bytes: 0) ... .mebibytes(64)),
            "Maximum total size of the messages kept for a lost connection."),
    ]

    private static let socketIO: [Setting] = [
        Setting(
            "socketIO.enabled", \.socketIO.isEnabled, .boolean,
            "Whether RouletteTok's original clients can connect over Socket.IO 0.9. Like guests, they need no account.",
            applies: .atReload),
        Setting(
            "socketIO.heartbeatInterval", \.socketIO.heartbeatInterval, interval,
            "How often Socket.IO 0.9 clients on a WebSocket get a heartbeat."),
        Setting(
            "socketIO.heartbeatTimeout", \.socketIO.heartbeatTimeout, interval,
            "How long a Socket.IO client on a WebSocket may be silent before it is disconnected."),
        Setting(
            "socketIO.closeTimeout", \.socketIO.closeTimeout, interval,
            "How long a polling client may take between two polls."),
        Setting(
            "socketIO.lostPollTimeout", \.socketIO.lostPollTimeout, interval,
            "How long a polling client may take to poll again after a poll was cut off, for example by closing the page."
        ),
        Setting(
            "socketIO.pollDuration", \.socketIO.pollDuration, interval,
            "How long a poll stays open when there is nothing to send."),
        Setting(
            "socketIO.handshakeTimeout", \.socketIO.handshakeTimeout, interval,
            "How long a completed handshake may stay unused."),
    ]

    private static let pairing: [Setting] = [
        Setting(
            "roulette.interestWait", \.rules.interestWait, wait,
            "How long to look for a partner with a shared interest before matching with anyone."),
        Setting(
            "roulette.rematchWait", \.rules.rematchWait, wait,
            "How long to wait before rematching two previous partners when no one else is available."),
        Setting(
            "roulette.skipWindow", \.rules.skipWindow, wait, "Ending a chat within this time counts as a skip.",
            applies: .atReload),
        Setting(
            "roulette.skipPeriod", \.rules.skipPeriod, wait, "Period over which skips are counted.", applies: .atReload),
        Setting(
            "roulette.skipsBeforeWait", \.rules.skipsBeforeWait, .integer(1...1000),
            "Number of skips within skipPeriod after which the next match is delayed.", applies: .atReload),
        Setting(
            "roulette.firstSkipWait", \.rules.firstSkipWait, wait,
            "First delay after too many skips. It doubles with each further skip.", applies: .atReload),
        Setting(
            "roulette.longestSkipWait", \.rules.longestSkipWait, wait, "Maximum delay after skips.", applies: .atReload),
        Setting("roulette.maxInterests", \.rules.maxInterests, .integer(0...100), "Maximum interests per person."),
        Setting(
            "roulette.maxBlocks", \.rules.maxBlocks, .integer(0...100_000),
            "Maximum people that one person can block."),
        Setting(
            "roulette.entriesPerAddress", \.rules.entriesPerAddress, count,
            "Maximum people per IP address who can wait for a match at the same time."),
        Setting(
            "roulette.candidatesPerAttempt", \.rules.candidatesPerAttempt, .integer(1...100_000),
            "Maximum partners considered per attempt, which keeps matching fast in a long queue."),
        Setting(
            "roulette.retryInterval", \.rules.retryInterval, interval,
            "How often to retry matching people who are still waiting."),
        Setting(
            "roulette.streamTimeout", \.rules.streamTimeout, wait,
            "How long to wait for the partner's video before the page shows a notice."),
        Setting(
            "roulette.mediaMode", \.rules.rouletteMediaMode, .choice,
            "routed: media goes through the server, which hides IP addresses. relayed: media is peer to peer."),
    ]

    private static let moderation: [Setting] = [
        Setting(
            "roulette.reportLines", \.rules.reportLines, .integer(0...1000),
            "Maximum chat messages included in a report. The page informs the reporter about this."),
        Setting(
            "roulette.reportRetention", \.retention.reports, .duration(.zero ... .seconds(3650 * 86400)),
            "How long reports are kept.", applies: .atReload),
        Setting(
            "moderation.auditRetention", \.retention.audit, .duration(.zero ... .seconds(3650 * 86400)),
            "How long the audit log keeps what operators and moderators did.", applies: .atReload),
    ]

    /// True for a `scheme:host[:port][?transport=udp|tcp]` URL (RFC 7064, RFC 7065). Browsers reject the whole list of
    /// servers if one URL is malformed.
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
