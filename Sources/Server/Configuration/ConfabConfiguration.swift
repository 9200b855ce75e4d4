import Logging
import Signaling

/// All settings of the server as one value. The executable loads it at startup and for each reload, and passes it on;
/// it is never global.
///
/// The initial values here and in `Rules` are the only place that defines the defaults. Code that needs a setting gets this
/// value or a part of it. ``keys`` describes each setting, with the reasons for its default. Printing this value redacts
/// its secrets.
///
/// ```swift
/// var configuration = ConfabConfiguration()
/// configuration.port = 0
/// configuration.rules.interestWait = .milliseconds(50)
/// ```
public struct ConfabConfiguration: Sendable, Equatable {
    public var host = "127.0.0.1"
    public var port = 8080
    public var dataDirectory = "./confab-data"
    /// The server's public URL, without a trailing slash; nil if none is set.
    public var publicURL: String?
    public var lan = false
    public var webDirectory: String?
    public var web = Web()
    public var trustedProxies = TrustedProxies()
    /// The origins whose pages may connect, in lower case as browsers send them. An empty list allows all origins.
    public var allowedOrigins: [String] = []
    public var apiKey: String?
    public var apiSecret: SecretText?
    /// Limits and timeouts of the signaling state machines. The configuration's ``init()`` enables routed media, which
    /// `Rules()` leaves disabled.
    public var rules = Rules()
    public var tls = TLS()
    public var acme = ACME()
    public var log = Log()
    public var metrics = Metrics()
    public var admin = Admin()
    public var tracing = Tracing()
    public var moderation = Moderation()
    public var media = Media()
    public var ice = ICE()
    public var limits = Limits()
    public var connection = Connection()
    public var socketIO = SocketIO()
    public var perch = Perch()
    public var retention = Retention()
    /// Settings for archives that have ended.
    public var archives = Archives()
    public var push = Push()
    public var webhooks = Webhooks()
    public var recording = Recording()
    public var broadcasts = Broadcasts()
    public var storage = Storage()
    public var cluster = Cluster()
    public var shutdown = Shutdown()

    /// Creates the default configuration. Unlike plain `Rules`, it routes media.
    public init() { rules.routesMedia = true }

    /// The features that the web app offers.
    public struct Web: Sendable, Equatable {
        /// The features for meeting people, in display order. Never empty.
        public var features = Feature.allCases
        public init() {}
    }

    /// Settings for TLS. The paths of the PEM files must both be set, or neither.
    public struct TLS: Sendable, Equatable {
        public var certificate: String?
        public var privateKey: String?
        /// How often to check whether the files have changed.
        public var checkInterval: Duration = .seconds(10)
        /// Whether to tell browsers to use only HTTPS for this host (HSTS).
        public var hsts = true
        public init() {}
    }

    /// What the server logs, and in which format.
    public struct Log: Sendable, Equatable {
        public var level: Logger.Level = .info
        public var format: LogFormat = .text
        public init() {}
    }

    /// Whether and where metrics are served.
    public struct Metrics: Sendable, Equatable {
        public var host = "127.0.0.1"
        public var port = 9464
        public var enabled: Enablement = .auto
        public init() {}

        /// Whether to serve metrics. `auto` serves them only on a loopback address, and only if the port is free.
        public enum Enablement: String, Sendable, Equatable, CaseIterable {
            case auto
            case always = "true"
            case never = "false"
        }

        /// Whether to serve `GET /metrics` at ``host`` and ``port``.
        public var isEnabled: Bool {
            switch enabled {
            case .always: true
            case .never: false
            case .auto: host == "localhost" || IPAddress(host)?.isLoopback == true
            }
        }
    }

    /// Whether and where the operator's page is served.
    public struct Admin: Sendable, Equatable {
        public var host = "127.0.0.1"
        /// The TCP port; nil for no operator's page.
        public var port: Int?
        /// The token that the page requires; nil for the one in the data directory.
        public var token: SecretText?
        public init() {}
    }

    /// What judges samples of the cameras in the roulette. Neither a program nor a URL: nothing is sampled.
    public struct Moderation: Sendable, Equatable {
        /// The path of the program, and its arguments; empty for none.
        public var program: [String] = []
        /// The URL of the endpoint; nil for none.
        public var url: String?
        /// The bearer token for the endpoint; nil for none.
        public var token: SecretText?
        /// How long to wait for a verdict.
        public var timeout: Duration = .seconds(2)
        /// Maximum number of samples that wait. At 32 KiB each, they use at most 2 MB.
        public var maxWaitingSamples = 64
        public init() {}
    }

    /// Settings for archives that have ended.
    public struct Archives: Sendable, Equatable {
        /// How long an archive can be downloaded; zero means no limit.
        public var retention: Duration = .seconds(30 * 86400)
        /// How long the URL of a download is valid.
        public var downloadLifetime: Duration = .seconds(600)
        /// The path of ffmpeg, which composes archives, or the name of a command in `PATH`.
        public var ffmpeg = "ffmpeg"
        /// Where complete archives are moved.
        public var bucket = ArchiveBucket()
        public init() {}
    }

    /// The bucket of an S3-compatible service to which archives are moved.
    public struct ArchiveBucket: Sendable, Equatable {
        /// The name of the bucket; nil to keep archives on this machine.
        public var name: String?
        /// The URL of the service.
        public var endpoint: String?
        /// The region of the bucket, which signatures name.
        public var region = "us-east-1"
        /// What the keys of objects begin with; nil for nothing.
        public var prefix: String?
        /// The ID of the access key; nil without a bucket.
        public var accessKey: String?
        /// The secret of the access key; nil without a bucket.
        public var secretKey: SecretText?
        /// Whether the bucket's name is in the path of URLs instead of the host.
        public var pathStyle = true
        /// Whether the service may be on this machine or a private network.
        public var allowPrivateAddresses = false
        /// A PEM file of CA certificates to trust in addition to the system's; nil for none.
        public var authorities: String?
        /// Settings without a bucket.
        public init() {}

        /// Whether a name of a bucket or a region is possible.
        static func isName(_ text: String) -> Bool {
            (1...63).contains(text.utf8.count)
                && text.utf8.allSatisfy { byte in
                    switch byte {
                    case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "0")...UInt8(ascii: "9"),
                        UInt8(ascii: "-"), UInt8(ascii: "."):
                        true
                    default: false
                    }
                }
        }

        /// Whether keys may begin with this text.
        static func isPrefix(_ text: String) -> Bool {
            text.utf8.count <= 200 && !text.hasPrefix("/") && !text.hasSuffix("/")
                && text.utf8.allSatisfy { byte in
                    switch byte {
                    case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                        UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "."),
                        UInt8(ascii: "_"), UInt8(ascii: "/"):
                        true
                    default: false
                    }
                }
        }
    }

    /// Settings for routed media.
    public struct Media: Sendable, Equatable {
        public var port = 40000
        /// The number of media loops; nil for one for every two processors.
        public var loops: Int?
        public var address: IPAddress?
        /// The address at which other nodes of the cluster reach this machine's media; nil for those that are announced to clients.
        public var relayAddress: IPAddress?
        /// Whether to choose the layers for subscribers according to the available bandwidth of their connections.
        public var congestionControl = true
        /// Maximum number of publishers per session whose audio is forwarded. In few conversations, more people talk
        /// at the same time.
        public var loudestStreams = 20
        /// The maximum total bitrate sent to the subscribers of one session, and that sent to the subscribers of all
        /// sessions together; nil for no limit.
        public var sessionBitrate: Bitrate?
        public var totalBitrate: Bitrate?
        public init() {}
    }

    /// Settings for recording sessions.
    public struct Recording: Sendable, Equatable {
        public var enabled = true
        /// The folder of the recordings; nil for `recordings` in the data directory.
        public var folder: String?
        /// The largest layer of a video that is recorded, by its height in pixels.
        public var maxHeight = 1080
        /// No recording and no broadcast with DVR starts with less free space. With less than half of it, all of them end.
        public var minFreeSpace = 2 << 30
        /// The time between two syncs of the files to the disk. A loss of power loses what was written since.
        public var syncInterval: Duration = .seconds(5)
        public init() {}
    }

    /// Settings for broadcasts over HLS and RTMP.
    public struct Broadcasts: Sendable, Equatable {
        /// The path of confab-compositor, or the name of a command in `PATH`; nil to look beside this program, then in `PATH`.
        public var compositor: String?
        /// The folder of broadcasts whose viewers can go back; nil for `broadcasts` in the data directory.
        public var folder: String?
        /// The bitrate of the video, if a request has none.
        public var bitrate = Bitrate(bitsPerSecond: 2_000_000)
        /// How far viewers can go back at most, if the broadcast lets them.
        public var dvrWindow: Duration = .seconds(4 * 3_600)
        /// How long viewers can load a broadcast after its end.
        public var linger: Duration = .seconds(600)
        /// The same for a broadcast whose viewers can go back.
        public var keep: Duration = .seconds(86_400)
        /// How long a server that stops waits at most for viewers to load the end of broadcasts.
        public var stopTimeout: Duration = .seconds(6)
        /// Whether RTMP targets may be on this machine or a private network.
        public var allowPrivateAddresses = false
        public init() {}
    }

    /// The STUN and TURN servers that clients use, and their credentials.
    public struct ICE: Sendable, Equatable {
        public var stunServers: [String] = []
        public var turnServers: [String] = []
        public var turnSecret: SecretText?
        public var turnUsername: String?
        public var turnPassword: SecretText?
        public var credentialLifetime: Duration = .seconds(300)
        public init() {}

        /// True if there are no STUN or TURN servers. Peers then connect directly only within the same network.
        public var isEmpty: Bool { stunServers.isEmpty && turnServers.isEmpty }
    }

    /// Limits that the gateway enforces per address or connection.
    public struct Limits: Sendable, Equatable {
        /// Maximum number of WebSockets, Socket.IO clients, and WHIP and WHEP resources per address.
        public var socketsPerAddress = 400
        /// Maximum number of TCP connections per address, whether or not they have sent a request.
        public var connectionsPerAddress = 3000
        /// Rate limit for new TCP connections per address, whether or not they send a request.
        public var newConnections = Budget.Rate(perSecond: 50, burst: 2000)
        public var handshakeTimeout: Duration = .seconds(10)
        public var requestHeaderTimeout: Duration = .seconds(10)
        /// Rate limit for new clients (hellos and handshakes) per address.
        public var hellos = Budget.Rate(perSecond: 20, burst: 800)
        /// Rate limit for uploads and downloads of files in rooms, per address.
        public var files = Budget.Rate(perSecond: 20, burst: 800)
        /// Rate limit for requests of viewers of broadcasts, per address.
        public var views = Budget.Rate(perSecond: 100, burst: 1000)
        /// Maximum number of concurrent uploads and downloads per address.
        public var transfersPerAddress = 400
        /// The budget that all clients at one address share for their messages and requests.
        public var addressMessages = Budget.Rate(perSecond: 2000, burst: 5000)
        /// The budget for HTTP requests with the credentials of one project.
        public var projectRequests = Budget.Rate(perSecond: 500, burst: 2000)
        /// Maximum number of bytes that all clients at one address together may cause to be stored per day.
        public var storedPerAddressAndDay = 16 << 20
        /// Maximum size of a connection's send queue, in bytes.
        public var sendQueue = 1 << 20
        /// Maximum total size of the send queues of all connections from one address, in bytes.
        public var sendQueuesPerAddress = 32 << 20
        /// Maximum total size of the send queues of all connections, in bytes.
        public var sendQueuesOfAll = 256 << 20
        public init() {}
    }

    /// Settings that determine when a connection counts as lost.
    public struct Connection: Sendable, Equatable {
        public var missedPings = 3
        public init() {}
    }

    /// Settings for Socket.IO.
    public struct SocketIO: Sendable, Equatable {
        /// Whether RouletteTok's clients can connect.
        public var isEnabled = true
        public var heartbeatInterval: Duration = .seconds(25)
        public var heartbeatTimeout: Duration = .seconds(60)
        public var closeTimeout: Duration = .seconds(60)
        public var lostPollTimeout: Duration = .seconds(15)
        public var pollDuration: Duration = .seconds(20)
        public var handshakeTimeout: Duration = .seconds(30)
        public init() {}
    }

    /// Settings for PerchRTC's clients. The credential (`ident` and `secret`) is embedded in their applications.
    public struct Perch: Sendable, Equatable {
        public var ident: String?
        public var secret: SecretText?
        /// How long a token is valid. A short time is enough, because clients use the token immediately.
        public var tokenLifetime: Duration = .seconds(60)
        public init() {}

        /// Whether PerchRTC's clients can connect.
        public var isEnabled: Bool { ident != nil && secret != nil }
    }

    /// How long records are stored.
    public struct Retention: Sendable, Equatable {
        /// How long to keep reports. The default is long enough to cover an operator's vacation.
        public var reports: Duration = .seconds(30 * 86400)
        /// How long to keep call logs. Few people look for calls older than a year.
        public var calls: Duration = .seconds(365 * 86400)
        /// How long to keep entries in the audit log. The default is long enough to explain a ban after a complaint.
        public var audit: Duration = .seconds(365 * 86400)
        /// How long to keep push endpoints that are not registered again.
        public var pushEndpoints: Duration = .seconds(180 * 86400)
        /// How long to keep profiles of people who do not go online again and who have no contacts, linked devices or
        /// push endpoints.
        public var profiles: Duration = .seconds(365 * 86400)
        public init() {}
    }

    /// Timeouts for the database, and limits on the free disk space that it needs.
    public struct Storage: Sendable, Equatable {
        public var pollInterval: Duration = .seconds(1)
        /// The URL of a PostgreSQL database. Nil for SQLite in the data directory.
        public var url: SecretText?
        /// How long a change waits while another process has locked the database. After that, the change fails.
        public var busyTimeout: Duration = .seconds(60)
        /// How long the server keeps running with a full disk or an I/O error before it stops.
        public var faultTimeout: Duration = .seconds(10)
        /// The minimum free space, in bytes, on the disk that contains the data directory. With less, the server is not
        /// ready.
        public var minFreeSpace = 64 << 20
        /// How long a starting server waits for the lock on the data directory. The default is longer than another
        /// server takes to stop.
        public var lockTimeout: Duration = .seconds(10)
        /// The free space in bytes below which only essential data is stored, so that the remaining space lasts longer.
        public var lowSpace = 256 << 20
        public init() {}
    }

    /// How long each step of the shutdown may take.
    public struct Shutdown: Sendable, Equatable {
        public var grace: Duration = .seconds(5)
        /// How long to wait for clients to answer the close frame. Slower clients still receive the frame, because the
        /// kernel delivers it.
        public var closeTimeout: Duration = .milliseconds(300)
        public init() {}
    }
}

/// The format of log messages on standard error.
public enum LogFormat: String, Sendable, Equatable, CaseIterable { case text, json }

extension ConfabConfiguration: CustomStringConvertible {
    /// One `key: value` per line. Secrets are redacted, and keys without a value are omitted.
    public var description: String {
        Setting.all.compactMap { setting in
            let text = setting.text(self)
            if text.isEmpty { return nil }
            return "\(setting.key.name): \(setting.key.isSecret ? "[redacted]" : text)"
        }
        .joined(separator: "\n")
    }
}

extension ConfabConfiguration {
    /// The value of `Strict-Transport-Security` (RFC 6797), which makes browsers use HTTPS for this host. Nil, which
    /// means no header, if this server does not handle HTTPS, if `tls.hsts` is off, or with `--lan`. Browsers ignore it on a
    /// connection whose certificate they do not trust.
    ///
    /// With `--lan`, only phones that were set up trust the certificate, and other devices must still be able to reach
    /// the machine. Subdomains are not included, because they may belong to other servers.
    public var strictTransport: String? {
        guard handlesHTTPS, tls.hsts, !lan else { return nil }
        // One year, as RFC 6797 §11.2 and browsers' preload lists suggest.
        return "max-age=31536000"
    }
}

extension ConfabConfiguration {
    /// True if the `Host` of a request to the operator's page is an IP address, `localhost`, `admin.host` or the host of
    /// `publicURL`. The parameter is as in ``Metrics/allows(host:)``.
    func allowsAdmin(host authority: String?) -> Bool {
        Self.isOwn(authority, names: [admin.host] + (publicURL.map { [WebURLText.host($0)] } ?? []))
    }

    /// True if the host of an authority is an IP address, `localhost` or one of the names.
    fileprivate static func isOwn(_ authority: String?, names: [String]) -> Bool {
        guard let authority else { return true }
        let name: Substring
        if authority.hasPrefix("[") {
            guard let end = authority.firstIndex(of: "]") else { return false }
            name = authority[..<end].dropFirst()
            return IPAddress(name) != nil
        }
        name = authority.prefix { $0 != ":" }
        let found = name.lowercased()
        return IPAddress(name) != nil || found == "localhost" || names.contains { $0.lowercased() == found }
    }
}

extension ConfabConfiguration.Metrics {
    /// True if the request's `Host` is an IP address, `localhost` or ``host``.
    ///
    /// The owner of a web page can make the page's host name resolve to 127.0.0.1. The page can then read the responses
    /// from a server there (DNS rebinding), but its requests contain that host name.
    ///
    /// - Parameter authority: host and port. Nil if there is none, as in HTTP/1.0. Such a request is allowed, because
    ///   browsers always send the header.
    public func allows(host authority: String?) -> Bool { ConfabConfiguration.isOwn(authority, names: [host]) }
}
