import Logging
import Signaling

/// Everything an operator can decide, as one value: read once in the executable, handed down, never global.
///
/// The initial values below and those of `Rules` are the defaults. No other place in the code has them: whatever needs
/// a setting is given this value or a part of it. `deploy/confab.sample.yaml` repeats the defaults for people and a test
/// compares the two. What each key means stands beside its name in ``keys``. Printing this value redacts its secrets.
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
    /// Without a slash at its end.
    public var publicURL: String?
    public var lan = false
    public var webDirectory: String?
    public var trustedProxies = TrustedProxies()
    /// In lower case, as browsers send them; empty admits any.
    public var allowedOrigins: [String] = []
    public var apiKey: String?
    public var apiSecret: SecretText?
    /// What people may do and how long things take. ``init()`` turns on routed media.
    public var rules = Rules()
    public var tls = TLS()
    public var log = Log()
    public var metrics = Metrics()
    public var media = Media()
    public var ice = ICE()
    public var limits = Limits()
    public var connection = Connection()
    public var socketIO = SocketIO()
    public var retention = Retention()
    public var push = Push()
    public var storage = Storage()
    public var shutdown = Shutdown()

    /// The defaults. The rules alone route no media; a server does.
    public init() { rules.routesMedia = true }

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
        public var port = 40000
        public var address: IPAddress?
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

    /// What one address or connection may do before the rules hear of it.
    public struct Limits: Sendable, Equatable {
        public var socketsPerAddress = 400
        public var handshakeTimeout: Duration = .seconds(10)
        public var requestHeaderTimeout: Duration = .seconds(10)
        /// New connections of one address: a page that reconnects, times the people behind one address.
        public var hellos = Budget.Rate(perSecond: 20, burst: 800)
        /// In bytes.
        public var sendQueue = 1 << 20
        public init() {}
    }

    public struct Connection: Sendable, Equatable {
        public var missedPings = 3
        public init() {}
    }

    /// The times of Socket.IO 0.9.
    public struct SocketIO: Sendable, Equatable {
        public var heartbeatInterval: Duration = .seconds(25)
        public var heartbeatTimeout: Duration = .seconds(60)
        public var closeTimeout: Duration = .seconds(60)
        public var lostPollTimeout: Duration = .seconds(15)
        public var pollDuration: Duration = .seconds(20)
        public var handshakeTimeout: Duration = .seconds(30)
        public init() {}
    }

    /// How long what happened is stored.
    public struct Retention: Sendable, Equatable {
        /// Long enough for an operator's holiday; a chat between strangers should not lie around for longer.
        public var reports: Duration = .seconds(30 * 86400)
        /// People search the log for a call of long ago; few look further back.
        public var calls: Duration = .seconds(365 * 86400)
        public init() {}
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
