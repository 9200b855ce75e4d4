import Foundation

extension ConfabClient {
    /// The state of the connection to the server.
    ///
    /// Legal transitions: `idle` → `connecting`; `connecting` → `online`, `offline`; `online` → `reconnecting`, `offline`,
    /// `connecting`; `reconnecting` → `online`, `offline`, `connecting`; `offline` → `connecting`; any state → `closed`.
    /// `connecting` and `reconnecting` are also repeated with the number of the next attempt.
    public enum State: Hashable, Sendable {
        /// ``ConfabClient/connect()`` was not called yet.
        case idle
        /// Connecting to the server. The attempts are counted from 1.
        case connecting(attempt: Int)
        /// Connected.
        case online
        /// The connection dropped, and the server still keeps it. Everything can be used; requests wait. `nextTry` is nil while
        /// an attempt is in progress.
        case reconnecting(since: Date, attempt: Int, nextTry: Date?)
        /// There is no connection, and none to resume. After an outage the client still tries: each attempt is `connecting`, and
        /// ``ConfabClient/connect()`` begins the next one at once.
        case offline(OfflineReason)
        /// Closed for good, by ``ConfabClient/leave()`` (nil) or by the server.
        case closed(ConfabError?)
    }

    /// Why there is no connection.
    public enum OfflineReason: Hashable, Sendable {
        /// The device has no network.
        case noNetwork
        /// The server does not answer.
        case serverUnreachable
        /// The server answered that it does not accept this client. Call ``ConfabClient/connect()`` to try again.
        case refused(ConfabError)
        /// This client is too old or too new for the server.
        case tooOld
    }

    /// News about the connection that are no state.
    public enum Notice: Hashable, Sendable {
        /// The connection continues on a new socket. Nothing was lost or delivered twice.
        case resumed
        /// The old connection could not be resumed, so the server has forgotten it, with its sessions, searches and calls.
        case restarted(lost: [SessionID])
        /// The server is shutting down or restarting. The client connects again by itself.
        case draining
        /// The server created a new anonymous identity, because there was none, or it did not know the old one.
        case identityChanged
    }

    /// Who the client is.
    public enum Credential: Sendable {
        /// An anonymous identity, whose secret is kept in a store. The server creates it with the first connection.
        case anonymous(any IdentityStore)
        /// A user token of the application. The closure is called before each connection, so it can return a new token every
        /// time.
        case userToken(@Sendable () async throws -> String)
    }

    /// Settings of a client.
    public struct Options: Sendable {
        /// How long ``ConfabClient/connect()`` may take, with all its attempts.
        public var connectTimeout: Duration = .seconds(20)
        /// The name and version of the application for the server's log, at most 256 bytes; nil for the SDK's own.
        public var clientName: String?
        /// Called with each log entry, on any thread. It must return quickly. Nil for no log.
        public var log: (@Sendable (LogEntry) -> Void)?
        /// Creates the default settings.
        public init() {}
    }
}

/// A line for the application's log. It contains no secrets.
public struct LogEntry: Hashable, Sendable {
    /// How important an entry is.
    public enum Level: Int, Hashable, Sendable, Comparable {
        /// For finding faults.
        case debug
        /// Changes of state.
        case info
        /// Something went wrong that the SDK handles.
        case warning
        /// Something went wrong that the application or a person must handle.
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
