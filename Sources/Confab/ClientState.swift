import Foundation

extension ConfabClient {
    /// The state of the connection to the server.
    ///
    /// Legal transitions: `idle` → `connecting`; `connecting` → `online`, `offline`; `online` → `reconnecting`,
    /// `offline`, `connecting`; `reconnecting` → `online`, `offline`, `connecting`; `offline` → `connecting`; any
    /// state → `closed`. `connecting` and `reconnecting` are also repeated when an associated value changes, such as
    /// the number of the attempt, and `offline` when its reason changes.
    public enum State: Hashable, Sendable {
        /// ``ConfabClient/connect()`` has not been called yet.
        case idle
        /// Connecting to the server. Attempts are counted from 1.
        case connecting(attempt: Int)
        /// Connected.
        case online
        /// The connection dropped, and the client is trying to resume it while the server still keeps it. All features
        /// can still be used: requests are queued. `since` is when it dropped, `attempt` is the number of attempts so
        /// far, and `nextTry` is when the next one begins; nil while one is in progress.
        case reconnecting(since: Date, attempt: Int, nextTry: Date?)
        /// There is no connection, and none to resume. After an outage the client keeps trying: each attempt enters
        /// `connecting`, and ``ConfabClient/connect()`` starts the next attempt immediately.
        case offline(OfflineReason)
        /// Closed permanently: by ``ConfabClient/leave()`` (nil) or by the server.
        case closed(ConfabError?)
    }

    /// Why the client is offline.
    public enum OfflineReason: Hashable, Sendable {
        /// The device has no network.
        case noNetwork
        /// The server does not answer.
        case serverUnreachable
        /// The server rejected this client. Call ``ConfabClient/connect()`` to try again.
        case refused(ConfabError)
        /// This client is too old or too new for the server.
        case tooOld
    }

    /// An event of the connection that is not part of its ``State``.
    public enum Notice: Hashable, Sendable {
        /// The connection continues on a new socket. Nothing was lost or delivered twice.
        case resumed
        /// The old connection could not be resumed, and a new one replaced it. The server no longer has the old
        /// connection's sessions, which are listed in `lost`.
        case restarted(lost: [SessionID])
        /// The server is shutting down or restarting. The client reconnects automatically.
        case draining
        /// The server created a new anonymous identity, because the client had none or the server did not recognize it.
        case identityChanged
    }

    /// How the client identifies itself.
    public enum Credential: Sendable {
        /// An anonymous identity, whose secret is kept in a store. The server creates the identity on the first
        /// connection.
        case anonymous(any IdentityStore)
        /// A user token from the application. The closure is called before each connection attempt, so it can return a
        /// new token every time.
        case userToken(@Sendable () async throws -> String)
    }

    /// Settings of a client.
    public struct Options: Sendable {
        /// How long ``ConfabClient/connect()`` may take, including all attempts.
        public var connectTimeout: Duration = .seconds(20)
        /// The name and version of the application for the server's log, at most 256 bytes. If it is nil, the log
        /// shows the SDK's name, `confab-swift`.
        public var clientName: String?
        /// Whether the application shows ``RouletteWarning``s to the person. Operators learn from it whether a warning is seen, so set
        /// it only if the application handles ``Roulette/Event/warned(_:)``.
        public var showsWarnings = false
        /// Called with each log entry, on any thread. It must return quickly. If it is nil, nothing is logged.
        public var log: (@Sendable (LogEntry) -> Void)?
        /// Creates the default settings.
        public init() {}
    }
}

/// An entry for the application's log. It contains no secrets.
public struct LogEntry: Hashable, Sendable {
    /// How important an entry is.
    public enum Level: Int, Hashable, Sendable, Comparable {
        /// Details for debugging.
        case debug
        /// State changes.
        case info
        /// A problem that the SDK handles.
        case warning
        /// A problem that the application or a person must handle.
        case error
        public static func < (left: Level, right: Level) -> Bool { left.rawValue < right.rawValue }
    }
    /// How important the entry is.
    public var level: Level
    /// What happened, in one sentence.
    public var message: String
    /// Creates an entry.
    public init(_ level: Level, _ message: String) { (self.level, self.message) = (level, message) }
}
