import Logging

/// Everything an operator can decide, as one value: read once in the executable, handed down, never global.
///
/// The initial values below are the defaults, and the only place where they are written in code;
/// `deploy/confab.sample.yaml` repeats them for people and a test compares the two. What each key means stands beside
/// its name in ``keys``. Printing this value redacts its secrets.
///
/// ```swift
/// var configuration = ConfabConfiguration()
/// configuration.port = 0
/// configuration.roulette.interestWait = .milliseconds(50)
/// ```
public struct ConfabConfiguration: Sendable, Equatable {
    public var host = "127.0.0.1"
    public var port = 8080
    public var dataDirectory = "./confab-data"
    /// Without a slash at its end.
    public var publicURL: String?
    public var lan = false
    public var webDirectory: String?
    public var trustedProxies = TrustedProxies()
    /// In lower case, as browsers send them; empty admits any.
    public var allowedOrigins: [String] = []
    public var apiKey: String?
    public var apiSecret: SecretText?
    public var tls = TLS()
    public var log = Log()
    public var metrics = Metrics()
    public var media = Media()
    public var ice = ICE()
    public var whip = WHIP()
    public var limits = Limits()
    public var connection = Connection()
    public var socketIO = SocketIO()
    public var roulette = Roulette()
    public var presence = Presence()
    public var nearby = Nearby()
    public var call = Call()
    public var push = Push()
    public var storage = Storage()
    public var shutdown = Shutdown()

    /// The defaults.
    public init() {}

    /// Paths of PEM files; both or neither.
    public struct TLS: Sendable, Equatable {
        public var certificate: String?
        public var privateKey: String?
        public init() {}
    }

    public struct Log: Sendable, Equatable {
        public var level: Logger.Level = .info
        public var format: LogFormat = .text
        public init() {}
    }

    public struct Metrics: Sendable, Equatable {
        public var host = "127.0.0.1"
        public var port = 9464
        public var enabled: Enablement = .auto
        public init() {}

        /// `auto` serves them only where nobody else can read them.
        public enum Enablement: String, Sendable, Equatable, CaseIterable {
            case auto
            case always = "true"
            case never = "false"
        }

        /// Whether `GET /metrics` is served at ``host`` and ``port``.
        public var isEnabled: Bool {
            switch enabled {
            case .always: true
            case .never: false
            case .auto: host == "localhost" || IPAddress(host)?.isLoopback == true
            }
        }
    }

    public struct Media: Sendable, Equatable {
        /// Without it there is neither routed media nor a port for it.
        public var isEnabled = true
        public var port = 40000
        public var address: IPAddress?
        public var relayedFallback: Duration = .seconds(8)
        public init() {}
    }

    public struct ICE: Sendable, Equatable {
        public var stunServers: [String] = []
        public var turnServers: [String] = []
        public var turnSecret: SecretText?
        public var turnUsername: String?
        public var turnPassword: SecretText?
        public var credentialLifetime: Duration = .seconds(300)
        public init() {}

        /// With neither, only peers of one network reach each other directly.
        public var isEmpty: Bool { stunServers.isEmpty && turnServers.isEmpty }
    }

    /// Publishing and watching without an SDK (RFC 9725).
    public struct WHIP: Sendable, Equatable {
        public var resources = 2000
        public var resourcesPerAddress = 100
        public var resourcesPerToken = 500
        public var answerTimeout: Duration = .seconds(5)
        public var connectTimeout: Duration = .seconds(30)
        public init() {}
    }

    public struct Limits: Sendable, Equatable {
        public var messageSize: ByteCount = .kibibytes(64)
        public var descriptionSize: ByteCount = .kibibytes(256)
        public var socketsPerAddress = 400
        public var handshakeTimeout: Duration = .seconds(10)
        public var requestHeaderTimeout: Duration = .seconds(10)
        public var verbsPerSecond = 20
        public var verbBurst = 100
        public var hellosPerSecond = 20
        public var helloBurst = 800
        public var sendQueue: ByteCount = .mebibytes(1)
        public init() {}
    }

    public struct Connection: Sendable, Equatable {
        public var pingInterval: Duration = .seconds(10)
        public var missedPings = 3
        public var resumeGrace: Duration = .seconds(30)
        public var replayMessages = 256
        public var replayBytes: ByteCount = .kibibytes(64)
        public init() {}
    }

    public struct SocketIO: Sendable, Equatable {
        public var heartbeatInterval: Duration = .seconds(25)
        public var heartbeatTimeout: Duration = .seconds(60)
        public var closeTimeout: Duration = .seconds(60)
        public var lostPollTimeout: Duration = .seconds(15)
        public var pollDuration: Duration = .seconds(20)
        public var handshakeTimeout: Duration = .seconds(30)
        public init() {}
    }

    public struct Roulette: Sendable, Equatable {
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
        public var reportLines = 20
        public var reportRetention: Duration = .seconds(30 * 86400)
        public var mediaMode: MediaMode = .routed
        public init() {}

        /// How the media of two strangers travels: peer to peer, or through this server.
        public enum MediaMode: String, Sendable, Equatable, CaseIterable { case relayed, routed }
    }

    public struct Storage: Sendable, Equatable {
        public var pollInterval: Duration = .seconds(1)
        public init() {}
    }

    public struct Shutdown: Sendable, Equatable {
        public var grace: Duration = .seconds(5)
        public init() {}
    }
}

/// How log lines are written to standard error.
public enum LogFormat: String, Sendable, Equatable, CaseIterable { case text, json }

extension ConfabConfiguration: CustomStringConvertible {
    /// One `key: value` a line, secrets redacted, keys without a value left out.
    public var description: String {
        Setting.all.compactMap { setting in
            let text = setting.text(self)
            if text.isEmpty { return nil }
            return "\(setting.key.name): \(setting.key.isSecret ? "[redacted]" : text)"
        }
        .joined(separator: "\n")
    }
}
