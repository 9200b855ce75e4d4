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
    static let all: [Setting] = sections.flatMap(\.settings)

    /// All settings, with the titles of their sections in `deploy/confab.sample.yaml`.
    static let sections: [(title: String, settings: [Setting])] = [
        ("Server and HTTPS", server + acme), ("The web app", web), ("Operations", operations), ("Traces", tracing),
        ("Media", media + whip),
        ("Limits per client", limits), ("Connections", connection), ("RouletteTok clients (Socket.IO)", socketIO),
        ("Roulette", pairing + moderation + samples), ("People and calls", people), ("Rooms", rooms),
        ("PerchRTC clients", perch),
        ("Push notifications", push), ("Webhooks", webhooks), ("Recording", recording + archives),
        ("Broadcasts", broadcasts + broadcastOutput),
        ("Several nodes", cluster),
    ]

    private static let port = Format<Int>.integer(0...65535)
    /// The format of durations that may be zero. Tests use zero.
    private static let wait = Format<Duration>.duration(.zero ... .seconds(86400))
    /// The format of timer intervals. The minimum prevents a busy loop.
    static let interval = Format<Duration>.duration(.milliseconds(10) ... .seconds(86400))
    static let count = Format<Int>.integer(1...1_000_000)
    static let rate = Format<Double>.whole(1...1_000_000)
    private static let size = Format<Int>.size(.kibibytes(1) ... .mebibytes(64))

    /// The format of limits on total sizes, such as the send queues of all connections.
    private static let largeSize = Format<Int>.size(.kibibytes(1) ... .mebibytes(1 << 20))

    private static let server: [Setting] = [
        Setting(
            "host", \.host, .host, "Address to listen on. 0.0.0.0 or :: listens on all interfaces.",
            "The default suits local testing, or a reverse proxy on the same machine."),
        Setting("port", \.port, port, "TCP port for the web app, the API and the WebSocket. 0 picks a free port."),
        Setting(
            "dataDirectory", \.dataDirectory, .path,
            "Directory for the project file, the server key and the database, readable by its owner only.",
            "Back it up: without the project file and the server key, all tokens and session links stop working."),
        Setting(
            "publicURL", \.publicURL,
            .optional(
                .webURL(
                    "an http:// or https:// URL without user name, query or fragment, such as "
                        + "https://chat.example.org. It may have a path: https://example.org/video (letters, digits "
                        + "and -._~)", allowsPath: true),
                empty: "the address that the server listens on"),
            "Public URL of this server, if it is behind a reverse proxy. Shown in links and at startup.",
            "See docs/operations.md."),
        Setting(
            "lan", \.lan, .boolean,
            "Make the server available on the local network: use all interfaces and a local CA, and show a QR code.",
            "Browsers allow the camera only over HTTPS, so phones must first trust this certificate authority."),
        Setting(
            "webDirectory", \.webDirectory, .optional(.path),
            "Serve the web files from this directory instead of the built-in ones.",
            "Use it to work on the web app without rebuilding the server."),
        Setting(
            "trustedProxies", \.trustedProxies.blocks,
            .list(
                of: .single("an address or block such as 10.0.0.0/8", parse: { CIDRBlock($0) }, write: \.description)),
            "Proxies whose X-Forwarded-For and Forwarded headers are trusted.",
            "Leave this empty unless you use a proxy: any client can send these headers and claim another address.",
            applies: .atReload),
        Setting(
            "allowedOrigins", \.allowedOrigins,
            .list(of: .webURL("an http:// or https:// origin, such as https://chat.example.org", allowsPath: false)),
            "Web origins that may connect. Empty allows all, which is safe because no cookies are used.",
            applies: .atReload),
        Setting(
            "apiKey", \.apiKey,
            .optional(.word("8 to 20 digits", where: ProjectFile.isAPIKey), empty: "the one in the project file"),
            "API key of the project. Overrides the one in the project file."),
        Setting(
            "apiSecret", \.apiSecret,
            .optional(
                .secret(ProjectFile.acceptedSecret, where: ProjectFile.isAPISecret),
                empty: "the one in the project file"),
            "Secret that signs tokens. Overrides the one in the project file.",
            "Prefer the environment variable CONFAB_API_SECRET or the project file to a value here.",
            isSecret: true, applies: .atReload),
        Setting(
            "tls.certificate", \.tls.certificate, .optional(.path),
            "PEM file with the certificate chain. HTTPS needs this and tls.privateKey.",
            "Leave it empty behind a proxy that terminates HTTPS."),
        Setting(
            "tls.privateKey", \.tls.privateKey, .optional(.path), "PEM file with the private key of the certificate."),
        Setting(
            "tls.checkInterval", \.tls.checkInterval, interval,
            "How often to check whether the certificate or its key has changed. New connections get the new "
                + "certificate.",
            "Existing ones continue. Files that cannot be used, such as the key of another certificate, are logged "
                + "and change nothing."),
        Setting(
            "tls.hsts", \.tls.hsts, .boolean,
            "Whether to make browsers use only HTTPS for this host for a year (HSTS), if Confab handles HTTPS.",
            "Turn it off if the host has other services without HTTPS. Has no effect with lan or behind a proxy, "
                + "which sets the header itself."),
    ]

    private static let operations: [Setting] = [
        Setting(
            "log.level", \.log.level,
            .single(
                "one of " + Logger.Level.allCases.map(\.rawValue).joined(separator: ", "),
                parse: Logger.Level.init(rawValue:), write: \.rawValue),
            "Minimum level of log messages.",
            "debug explains why a match or a connection failed, with several lines per event.", applies: .atReload),
        Setting(
            "log.format", \.log.format, .choice,
            "Log format: text for people, json for programs (one JSON object per line)."),
        Setting(
            "metrics.host", \.metrics.host, .host, "Address for GET /metrics, which has no authentication.",
            "Make sure that only your monitoring can reach it. The URL must contain an IP address, localhost or the "
                + "name set here."),
        Setting("metrics.port", \.metrics.port, port, "TCP port for GET /metrics. Must differ from the public port."),
        Setting(
            "metrics.enabled", \.metrics.enabled, .choice,
            "Whether to serve metrics. auto serves them only if metrics.host is a loopback address and the port is "
                + "free.",
            "With true, the server does not start if it cannot serve them."),
        Setting(
            "admin.port", \.admin.port, .optional(port, empty: "no operator's page"),
            "TCP port for the operator's page, GET /admin. Must differ from the public port.",
            "The page shows what the server does, reports and bans, and requires a token. See "
                + "docs/operations.md#the-operators-page."),
        Setting(
            "admin.host", \.admin.host, .host, "Address for the operator's page.",
            "The page has no HTTPS of its own. On any other address than a loopback one, the token is sent unencrypted, "
                + "unless a proxy adds HTTPS."),
        Setting(
            "admin.token", \.admin.token,
            .optional(
                .secret("32 to 256 characters without spaces", where: AdminTokenFile.isToken),
                empty: "the one in the file admin-token in the data directory"),
            "Token that the operator's page requires. Without it, the server creates the file admin-token.",
            "Prefer the file or the environment variable CONFAB_ADMIN_TOKEN to a value here.", isSecret: true),
        Setting(
            "storage.url", \.storage.url,
            .optional(
                .secret(
                    "a URL such as postgresql://confab@db.example.org/confab?sslmode=verify-full, with a user if it has "
                        + "a port or a password, and special characters of the password as %XX",
                    where: PostgresURL.isValid),
                empty: "SQLite in the data directory"),
            "URL of a PostgreSQL database (version 15 or later) that stores the data instead of SQLite.",
            "Needs the library libpq (Debian: libpq5). The project file, the server key and files of rooms stay in the "
                + "data directory. See docs/operations.md.", isSecret: true),
        Setting(
            "storage.busyTimeout", \.storage.busyTimeout, interval,
            "How long a change waits for a locked database, or for PostgreSQL to come back, before it fails. Requests "
                + "that store nothing do not wait.",
            "A backup or a shell may hold the lock."),
        Setting(
            "storage.faultTimeout", \.storage.faultTimeout, interval,
            "How long the server keeps retrying when the disk is full or an I/O error occurs, before it shuts down.",
            "Meanwhile, GET /ready reports that the server is not ready. Long enough that a short fault does not "
                + "stop the server."),
        Setting(
            "storage.minFreeSpace", \.storage.minFreeSpace, .size(.mebibytes(0) ... .mebibytes(1 << 20)),
            "Minimum free space on the disk of the data directory.",
            "With less, GET /ready reports that the server is not ready and names the disk; the server keeps "
                + "running. SQLite needs the space to finish its transactions. 0B turns this off."),
        Setting(
            "storage.lowSpace", \.storage.lowSpace, .size(.mebibytes(0) ... .mebibytes(1 << 20)),
            "Free space below which nothing optional is stored: no new profiles, contacts or push endpoints.",
            "Webhooks get no reports of what begins then. Blocks, calls and reports are still stored, the reports without their chat messages. Keep it above "
                + "minFreeSpace. 0B turns this off."),
        Setting(
            "storage.pollInterval", \.storage.pollInterval, interval,
            "How often to check the database for changes made by commands.",
            "A ban added by `confab ban add` takes effect within this time.", applies: .atReload),
        Setting(
            "storage.lockTimeout", \.storage.lockTimeout, wait,
            "How long a starting server waits for another server to release the data directory.",
            "It lets a restart wait for the old process to exit. 0s does not wait."),
        Setting(
            "shutdown.grace", \.shutdown.grace, wait,
            "How long shutdown waits for changes to be stored and connections to close.", applies: .atReload),
        Setting(
            "shutdown.closeTimeout", \.shutdown.closeTimeout, wait,
            "How long shutdown waits for clients to acknowledge the closing.",
            "It does not wait for slower clients, so that one silent client does not delay the shutdown. Until then, "
                + "the port is still in use, so a new server cannot start on it.", applies: .atReload),
    ]

    private static let media: [Setting] = [
        Setting(
            "media.enabled", \.rules.routesMedia, .boolean,
            "Whether the server can route media. If false, all media is peer to peer.",
            "Peers can then see each other's IP address, unless a TURN server is configured."),
        Setting(
            "media.port", \.media.port, port, "UDP and TCP port for routed media. 0 picks a free port.",
            "Each further media loop uses the next UDP port; see media.loops. Open all of them in the firewall: TCP is "
                + "for networks that block UDP. If 40000 or one of the others is taken, the server uses other ports and "
                + "logs them."),
        Setting(
            "media.loops", \.media.loops,
            .optional(
                .integer(1...ConfabConfiguration.Media.maxLoops), empty: "one for every two processor cores"),
            "Number of threads that route media. Each has its own UDP port, from media.port on.",
            "A thread uses at most one core. The default leaves cores for the rest of the server and for the system's "
                + "network code."),
        Setting(
            "media.address", \.media.address,
            .optional(
                .single("an IPv4 or IPv6 address", parse: { IPAddress($0) }, write: \.description),
                empty: "the machine's own address"),
            "Address announced to browsers for media, if it differs from this machine's own (NAT).",
            "Behind a router or in a container, set the public address."),
        Setting(
            "media.relayAddress", \.media.relayAddress,
            .optional(
                .single("an IPv4 or IPv6 address", parse: { IPAddress($0) }, write: \.description),
                empty: "the address announced to browsers"),
            "Address at which other nodes of a cluster reach this machine's media.",
            "Set one in a private network, if the nodes have one. See cluster.relays."),
        Setting(
            "media.congestionControl", \.media.congestionControl, .boolean,
            "Whether subscribers on slow networks get smaller layers, or audio only.",
            "The server estimates the bitrate that each connection carries. On a machine that is always busy, the "
                + "server's own delays can look like a slow network."),
        Setting(
            "media.loudestStreams", \.media.loudestStreams, .integer(1...10_000),
            "Maximum publishers per session whose audio is forwarded. In a larger session, only the loudest are heard.",
            "A person who starts to talk is heard within a tenth of a second."),
        Setting(
            "media.sessionBitrate", \.media.sessionBitrate, .optional(.bitrate, empty: "no limit"),
            "Maximum total bitrate sent to the subscribers of one session. At the limit, new video is refused.",
            "Audio alone is still accepted, and existing media continues, so a session can slightly exceed the limit."),
        Setting(
            "media.totalBitrate", \.media.totalBitrate, .optional(.bitrate, empty: "no limit"),
            "Maximum total bitrate sent to all subscribers. At the limit, new video and new connections are refused."),
        Setting(
            "media.relayedFallback", \.rules.relayedFallback, wait,
            "Peer-to-peer media that is not connected after this time is routed through the server.",
            "If it is too short, slow networks fail to connect directly; if too long, people look at black video."),
        Setting(
            "ice.stunServers", \.ice.stunServers,
            .list(
                of: .word(
                    "a URL such as stun:stun.example.org:3478", where: { iceURL($0, schemes: ["stun:", "stuns:"]) })),
            "STUN servers, from which browsers get their public address.",
            "There are none by default, so that no third party learns who uses this server. Without one, "
                + "peer-to-peer media connects only within the same network.", applies: .atReload),
        Setting(
            "ice.turnServers", \.ice.turnServers,
            .list(
                of: .word(
                    "a URL such as turn:turn.example.org:3478?transport=udp",
                    where: { iceURL($0, schemes: ["turn:", "turns:"]) })),
            "TURN servers that relay media when peers cannot connect directly.",
            "With TURN, strangers do not see each other's IP address.", applies: .atReload),
        Setting(
            "ice.turnSecret", \.ice.turnSecret,
            .optional(.secret("any text", where: { !$0.isEmpty }), empty: "not used"),
            "Shared secret of the TURN server (coturn: static-auth-secret). Each client gets its own temporary "
                + "credentials.",
            isSecret: true, applies: .atReload),
        Setting(
            "ice.turnUsername", \.ice.turnUsername, .optional(.word("text without spaces"), empty: "not used"),
            "Fixed TURN user name, for servers without a shared secret. Every client can see it.", applies: .atReload),
        Setting(
            "ice.turnPassword", \.ice.turnPassword,
            .optional(.secret("any text", where: { !$0.isEmpty }), empty: "not used"),
            "Fixed TURN password. Every client can see it.", isSecret: true, applies: .atReload),
        Setting(
            "ice.credentialLifetime", \.ice.credentialLifetime, .duration(.seconds(10) ... .seconds(86400)),
            "How long TURN credentials can be used to start a relay. Calls in progress are not affected.",
            applies: .atReload),
    ]

    private static let whip: [Setting] = [
        Setting(
            "whip.resources", \.rules.resources, count,
            "Maximum simultaneous WHIP publishers (OBS, for example) and WHEP viewers.",
            "Each uses one peer connection, which takes time on a media thread.", applies: .atReload),
        Setting(
            "whip.resourcesPerAddress", \.rules.resourcesPerAddress, count,
            "Maximum WHIP and WHEP clients per IP address (per /64 for IPv6).",
            "A school may share one address.", applies: .atReload),
        Setting(
            "whip.resourcesPerToken", \.rules.resourcesPerToken, count, "Maximum WHIP and WHEP clients per token.",
            "A shared viewer link is one token, so this also limits its viewers.", applies: .atReload),
        Setting(
            "whip.answerTimeout", \.rules.resourceAnswer, interval,
            "How long a WHIP or WHEP request may wait for its answer.", "Until then, it holds a connection."),
        Setting(
            "whip.connectTimeout", \.rules.resourceConnect, interval,
            "How long a WHIP or WHEP client may be without a media connection.", "It is removed after this time."),
    ]

    private static let limits: [Setting] = [
        Setting(
            "limits.messageSize", \.rules.messageSize, size,
            "Maximum size of a WebSocket message or request body. A larger message closes the connection (code 4413).",
            "Also limits the body of a Socket.IO request and of WHIP's PATCH."),
        Setting(
            "limits.descriptionSize", \.rules.descriptionSize, size,
            "Maximum size of a session description (SDP), which may be larger than other messages.",
            "Also limits the body of WHIP's and WHEP's POST."),
        Setting(
            "limits.socketsPerAddress", \.limits.socketsPerAddress, count,
            "Maximum open connections per IP address (per /64 for IPv6).",
            "Counts WebSockets, Socket.IO clients, WHIP and WHEP resources. A school may share one address. The "
                + "default is twice roulette.entriesPerAddress, because many people keep two tabs open.",
            applies: .atReload),
        Setting(
            "limits.connectionsPerAddress", \.limits.connectionsPerAddress, count,
            "Maximum TCP connections per IP address (per /64 for IPv6), counted before TLS and before any request.",
            "Connections from trustedProxies do not count. Every connection, even an idle one, uses a file "
                + "descriptor, so one address never gets more than half of all connections. The default fits 400 "
                + "pages with six connections each.", applies: .atReload),
        Setting(
            "limits.newConnectionsPerSecond", \.limits.newConnections.perSecond, rate,
            "Sustained rate: new TCP connections per second per IP address (per /64 for IPv6), counted before TLS.",
            "A TLS handshake costs the server more than the client: about 1 ms (ECDSA) to 2 ms (RSA) of the event "
                + "loop. Connections from trustedProxies do not count."),
        Setting(
            "limits.newConnectionBurst", \.limits.newConnections.burst, rate,
            "Burst: new TCP connections that an IP address may make at once, above the sustained rate.",
            "It lets everyone behind a school's address open the page together."),
        Setting(
            "limits.handshakeTimeout", \.limits.handshakeTimeout, interval,
            "How long a new WebSocket may take to send hello.", applies: .atReload),
        Setting(
            "limits.requestHeaderTimeout", \.limits.requestHeaderTimeout, interval,
            "How long a client may take to send the request headers. Protects against attacks that send them slowly.",
            "Also limits a TLS handshake. Each later request, and the pause before it, may take six times as long.",
            applies: .atReload),
        Setting(
            "limits.requestsPerSecond", \.rules.verbs.perSecond, rate,
            "Sustained rate: requests per second per connection.",
            "People stay far below this; flooding scripts do not.", applies: .atReload),
        Setting(
            "limits.requestBurst", \.rules.verbs.burst, rate,
            "Burst: requests that a connection may send at once, above the sustained rate.",
            "Joining a full session is one burst.", applies: .atReload),
        Setting(
            "limits.connectionsPerPerson", \.rules.connectionsPerPerson, count,
            "Maximum connections per person. Opening another one closes the oldest.",
            "Tabs and devices count alike. Each change of a person is sent to all of them.", applies: .atReload),
        Setting(
            "limits.personRequestsPerSecond", \.rules.personVerbs.perSecond, rate,
            "Sustained rate: requests per second per person, over all connections.",
            "Enough for three devices at their own limit.", applies: .atReload),
        Setting(
            "limits.personRequestBurst", \.rules.personVerbs.burst, rate,
            "Burst: requests that a person may send at once over all connections, above the sustained rate.",
            applies: .atReload),
        Setting(
            "limits.handshakesPerSecond", \.limits.hellos.perSecond, rate,
            "Sustained rate: new connections per second per IP address.",
            "A school may share one address.", applies: .atReload),
        Setting(
            "limits.handshakeBurst", \.limits.hellos.burst, rate,
            "Burst: new connections that an IP address may open at once, above the sustained rate.",
            "Everyone behind an address may reconnect at once after an outage.", applies: .atReload),
        Setting(
            "limits.filesPerSecond", \.limits.files.perSecond, rate,
            "Sustained rate: uploads and downloads of files in rooms per second per IP address.",
            "Not counted as new connections, so that everyone can still connect.", applies: .atReload),
        Setting(
            "limits.fileBurst", \.limits.files.burst, rate,
            "Burst: uploads and downloads that an IP address may begin at once, above the sustained rate.",
            "Everyone behind an address may open the same file at once.", applies: .atReload),
        Setting(
            "limits.transfersPerAddress", \.limits.transfersPerAddress, count,
            "Maximum concurrent uploads and downloads of files in rooms per IP address (per /64 for IPv6).",
            "One address never gets more than half of the server's transfers. The default lets everyone with a "
                + "socket open the same file at once.", applies: .atReload),
        Setting(
            "limits.viewsPerSecond", \.limits.views.perSecond, rate,
            "Sustained rate: requests of viewers of broadcasts per second per IP address.",
            "A player sends about one in two seconds, and four per second with low latency. Put a cache in front of "
                + "this server for more viewers (docs/operations.md).", applies: .atReload),
        Setting(
            "limits.viewBurst", \.limits.views.burst, rate,
            "Burst: requests of viewers that an IP address may send at once, above the sustained rate.",
            "A player that starts loads several segments.", applies: .atReload),
        Setting(
            "limits.addressMessagesPerSecond", \.limits.addressMessages.perSecond, rate,
            "Sustained rate: messages and requests per second per IP address (per /64 for IPv6), over all connections.",
            "Each WebSocket frame and each Socket.IO, WHIP or WHEP request counts as one, plus one for every 4 KiB "
                + "and for each additional packet in a Socket.IO payload. Beyond the limit, the sockets of the "
                + "address are read more slowly. 400 people in the roulette send about half of the default. The "
                + "event loop can handle more than ten times the default."),
        Setting(
            "limits.addressMessageBurst", \.limits.addressMessages.burst, rate,
            "Burst: messages and requests that an IP address may send at once, above the sustained rate."),
        Setting(
            "limits.projectRequestsPerSecond", \.limits.projectRequests.perSecond, rate,
            "Sustained rate: HTTP requests to OpenTok's interface per second per project.",
            "Each project has its own budget, so that none can exhaust what another needs.", applies: .atReload),
        Setting(
            "limits.projectRequestBurst", \.limits.projectRequests.burst, rate,
            "Burst: HTTP requests that a project may send at once, above the sustained rate.", applies: .atReload),
        Setting(
            "limits.connectionsPerProject", \.rules.connectionsPerProject, count,
            "Maximum number of connections in all sessions of one project.",
            "A project can have a lower maximum: confab project set --connections.", applies: .atReload),
        Setting(
            "limits.storedPerAddressAndDay", \.limits.storedPerAddressAndDay, largeSize,
            "Maximum data stored per day for the clients of one IP address.",
            "Beyond it, nothing optional is stored. Beyond twice as much, nothing at all is stored. 400 people need "
                + "about a quarter of the default, with which one address can fill at most 12 GB a year."),
        Setting(
            "limits.sendQueue", \.limits.sendQueue, size,
            "Maximum unsent data per connection. A client that reads too slowly is disconnected.",
            "The client can then resume. Includes data that is held until a change is stored."),
        Setting(
            "limits.sendQueuesPerAddress", \.limits.sendQueuesPerAddress, largeSize,
            "Maximum unsent data per IP address. Beyond it, the connection with the most unsent data is closed.",
            "Includes data that is held until a change is stored, or until a Socket.IO client polls. Without this "
                + "limit, 400 connections could hold 400 MiB."),
        Setting(
            "limits.sendQueuesOfAll", \.limits.sendQueuesOfAll, largeSize,
            "Maximum unsent data of all connections. Beyond it, the IP address with the most unsent data loses a "
                + "connection.",
            "Set it to what fits into the server's memory."),
    ]

    private static let connection: [Setting] = [
        Setting(
            "connection.pingInterval", \.rules.pingInterval, interval,
            "How often the client and the server send a ping.",
            "Proxies close connections that are idle for about a minute."),
        Setting(
            "connection.missedPings", \.connection.missedPings, .integer(1...100),
            "Missed pings after which a connection counts as lost."),
        Setting(
            "connection.resumeGrace", \.rules.resumeGrace, wait, "How long a lost connection can be resumed.",
            "Long enough to switch from Wi-Fi to mobile data, and short enough not to keep a partner waiting."),
        Setting(
            "connection.replayMessages", \.rules.replay.messages, .integer(0...65536),
            "Maximum messages kept for a lost connection. If there are more, the client gets a snapshot instead.",
            "Also limits the packets queued for a Socket.IO client's next poll. A client with more is disconnected."),
        Setting(
            "connection.replayBytes", \.rules.replay.bytes, .size(ByteCount(bytes: 0) ... .mebibytes(64)),
            "Maximum total size of the messages kept for a lost connection.",
            "Whichever limit is reached first applies. This one bounds the memory of a lost connection."),
    ]

    private static let socketIO: [Setting] = [
        Setting(
            "socketIO.enabled", \.socketIO.isEnabled, .boolean,
            "Whether RouletteTok's clients can connect over Socket.IO, in any version. Like guests, they need no account.",
            applies: .atReload),
        Setting(
            "socketIO.heartbeatInterval", \.socketIO.heartbeatInterval, interval,
            "How often Socket.IO clients get a heartbeat: those of 0.9 on a WebSocket, and later ones on any transport.",
            "Keep it below heartbeatTimeout, after which clients disconnect."),
        Setting(
            "socketIO.heartbeatTimeout", \.socketIO.heartbeatTimeout, interval,
            "How long a Socket.IO client may be silent before it is disconnected.",
            "Any frame counts as a sign of life. For polling clients of Socket.IO 0.9, closeTimeout applies instead."),
        Setting(
            "socketIO.closeTimeout", \.socketIO.closeTimeout, interval,
            "How long a polling client may take between two polls.",
            "The partner of a client that disappears waits this long. Announced to clients in whole seconds."),
        Setting(
            "socketIO.lostPollTimeout", \.socketIO.lostPollTimeout, interval,
            "How long a polling client may take to poll again after a poll was cut off, for example by closing the page.",
            "A client whose poll failed retries immediately."),
        Setting(
            "socketIO.pollDuration", \.socketIO.pollDuration, interval,
            "How long a poll stays open when there is nothing to send.",
            "Must be shorter than the timeouts of proxies."),
        Setting(
            "socketIO.handshakeTimeout", \.socketIO.handshakeTimeout, interval,
            "How long a completed handshake may stay unused, and an upgrade unfinished."),
    ]

    private static let pairing: [Setting] = [
        Setting(
            "roulette.interestWait", \.rules.interestWait, wait,
            "How long to look for a partner with a shared interest before matching with anyone.",
            "A longer wait finds better matches on a busy server, and only delays them on a quiet one."),
        Setting(
            "roulette.rematchWait", \.rules.rematchWait, wait,
            "How long to wait before rematching two previous partners when no one else is available."),
        Setting(
            "roulette.localWait", \.rules.localWait, wait,
            "In a cluster, how long a stranger looks for a partner on their own node.",
            "Then they are redirected to the node where strangers of all nodes wait. With cluster.relays, they look for "
                + "at most 25 ms, and wait there without a redirect.",
            applies: .atReload),
        Setting(
            "roulette.skipWindow", \.rules.skipWindow, wait, "Ending a chat within this time counts as a skip.",
            "It counts only for the person who ended it.", applies: .atReload),
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
            "Maximum people per IP address who can wait for a match at the same time.",
            "Keeps one machine from being matched with most of the people in the queue."),
        Setting(
            "roulette.candidatesPerAttempt", \.rules.candidatesPerAttempt, .integer(1...100_000),
            "Maximum partners considered per attempt, which keeps matching fast in a long queue."),
        Setting(
            "roulette.retryInterval", \.rules.retryInterval, interval,
            "How often to retry matching people who are still waiting."),
        Setting(
            "roulette.streamTimeout", \.rules.streamTimeout, wait,
            "How long to wait for the partner's video before the page shows a notice.",
            "The Next button works at any time."),
        Setting(
            "roulette.mediaMode", \.rules.rouletteMediaMode, .choice,
            "routed: media goes through the server, which hides IP addresses. relayed: media is peer to peer.",
            "With relayed and no TURN server, the page warns that the partner can see the user's IP address."),
    ]

    private static let moderation: [Setting] = [
        Setting(
            "roulette.reportLines", \.rules.reportLines, .integer(0...1000),
            "Maximum chat messages included in a report. The page informs the reporter about this."),
        Setting(
            "roulette.reportRetention", \.retention.reports, .duration(.zero ... .seconds(3650 * 86400)),
            "How long reports are kept.",
            "They contain private messages. Keep them no longer than you need to act on them.", applies: .atReload),
        Setting(
            "moderation.auditRetention", \.retention.audit, .duration(.zero ... .seconds(3650 * 86400)),
            "How long the audit log keeps what operators and moderators did.",
            "confab audit shows it. Complaints about bans can come late.", applies: .atReload),
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
