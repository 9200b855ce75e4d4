import Wire

/// An error of the SDK or of the server: a stable code, a message that says what went wrong and what to do, and
/// whether a retry can succeed.
///
/// ```swift
/// do {
///     try await session.signal("chat", "Hello")
/// } catch where error.code == .rateLimited {
///     try await Task.sleep(for: error.retryAfter ?? .seconds(1))
/// }
/// ```
public struct ConfabError: Error, Hashable, Sendable {
    /// A stable error code. This is not an enum, because a newer server may send codes that this version does not know.
    public struct Code: Hashable, Sendable, RawRepresentable, ExpressibleByStringLiteral {
        /// The code as it appears in the protocol, such as `not_permitted`.
        public let rawValue: String
        /// Creates a code from a string such as `not_permitted`.
        public init(rawValue: String) { self.rawValue = rawValue }
        /// Creates a code from a literal.
        public init(stringLiteral value: String) { rawValue = value }
        init(_ code: WireError.Code) { rawValue = code.rawValue }
    }

    /// What went wrong, as a code for programs.
    public let code: Code
    /// What went wrong and what to do, in one sentence that can be shown to the user.
    public let message: String
    /// Whether the same request may succeed later.
    public let isRetryable: Bool
    /// How long to wait before a retry; nil if no time is known.
    public let retryAfter: Duration?
    /// The error that caused this one, as text for a log; nil if there is none.
    public let cause: String?
    /// The name of the cluster's node that does what was requested, such as `n2`; nil if there is none. The client moves to this
    /// node itself, and reports the error only if that does not help.
    public let node: String?

    /// Creates an error. Media engines and credential callbacks use this initializer.
    ///
    /// - Parameters:
    ///   - code: the error code.
    ///   - message: what went wrong and what to do, in one sentence that can be shown to the user.
    ///   - isRetryable: whether the same request may succeed later.
    ///   - cause: the error that caused this one, if any.
    public init(_ code: Code, _ message: String, isRetryable: Bool = false, cause: (any Error)? = nil) {
        (self.code, self.message, self.isRetryable) = (code, message, isRetryable)
        (retryAfter, node, self.cause) = (nil, nil, cause.map { "\($0)" })
    }

    /// Creates an error from a protocol error.
    init(_ error: WireError) {
        (code, message) = (Code(error.code), error.message)
        (isRetryable, retryAfter, cause, node) = (error.retryable, error.retryAfter, nil, error.at)
    }
}

extension ConfabError: CustomStringConvertible {
    /// The message, followed by the code in parentheses.
    public var description: String { "\(message) (\(code.rawValue))" }
}

extension ConfabError.Code {
    /// A request was made before ``ConfabClient/connect()``, or after the client was closed.
    public static let notConnected = Self(.notConnected)
    /// The client has left the server, so its pending requests will not be answered. Joining a room also fails with
    /// this error if the person leaves, or the room ends, before joining is complete.
    public static let left = Self(.left)
    /// The server could not be reached in time.
    public static let connectFailed = Self(.connectFailed)
    /// The connection to the server was lost and will not be resumed.
    public static let connectionLost = Self(.connectionLost)
    /// The connection could not be resumed, and a new one replaced it. The server may have received the request.
    public static let connectionRestarted = Self(.connectionRestarted)
    /// Too many requests are waiting for an answer. Wait for some of them, then try again.
    public static let tooManyRequests = Self(.tooManyRequests)
    /// Too many messages are waiting to be sent when the connection is restored. Try again when the client is online.
    public static let offlineQueueFull = Self(.offlineQueueFull)
    /// This client is too old or too new for the server.
    public static let versionUnsupported = Self(.versionUnsupported)
    /// The token has expired.
    public static let tokenExpired = Self(.tokenExpired)
    /// This identity or address is banned.
    public static let banned = Self(.banned)
    /// The server closed this connection: another client resumed it, the person has too many connections, or the
    /// device now belongs to another person or to none.
    public static let replaced = Self(.replaced)
    /// Too many requests in a short time. Wait for ``ConfabError/retryAfter``.
    public static let rateLimited = Self(.rateLimited)
    /// The client is not in this session, or for a request about a room, not in the room.
    public static let notJoined = Self(.notJoined)
    /// The client is already in this session, or already in a room or waiting to be admitted to one.
    public static let alreadyJoined = Self(.alreadyJoined)
    /// The token's role or a rule does not allow the request.
    public static let notPermitted = Self(.notPermitted)
    /// There is no such stream, connection, person, device, chat, call, contact or file.
    public static let notFound = Self(.notFound)
    /// The session has reached its maximum number of members, or this client its maximum number of sessions or
    /// streams.
    public static let sessionFull = Self(.sessionFull)
    /// The session id is invalid: the server did not create it.
    public static let sessionInvalid = Self(.sessionInvalid)
    /// A signal's type is too long or contains characters that are not allowed.
    public static let signalInvalid = Self(.signalInvalid)
    /// The data of a signal is too long.
    public static let signalTooLarge = Self(.signalTooLarge)
    /// This IP address has reached its maximum number of connections.
    public static let tooManyConnections = Self(.tooManyConnections)
    /// This server does not route media, or cannot do so now.
    public static let mediaUnavailable = Self(.mediaUnavailable)
    /// The bandwidth limit of the session or the server is reached. Wait for ``ConfabError/retryAfter``.
    public static let bandwidthExceeded = Self(.bandwidthExceeded)
    /// An error inside the server.
    public static let internalError = Self(.internalError)
    /// The server answered with a message type that does not match the request.
    public static let unexpectedAnswer: Self = "unexpected_answer"
    /// The client has no media engine, so it cannot publish, subscribe or capture.
    public static let noMediaEngine: Self = "no_media_engine"
    /// The media engine could not carry out the request.
    public static let mediaFailed: Self = "media_failed"
    /// The application's credential callback failed.
    public static let credentialFailed: Self = "credential_failed"
    /// The identity could not be read from or written to its store.
    public static let identityStoreFailed: Self = "identity_store_failed"
    /// An iteration of events ended because its consumer was too slow.
    public static let slowConsumer: Self = "slow_consumer"
    /// The task that made the request was canceled. The server may have received the request.
    public static let cancelled: Self = "cancelled"
    /// The server's URL is not an `http`, `https`, `ws` or `wss` URL with a host.
    public static let serverURLInvalid: Self = "server_url_invalid"
}

extension ConfabError {
    static let slowConsumer = ConfabError(
        .slowConsumer,
        "Events arrived faster than they were read. Start a new iteration, and do no slow work between events.")
    static let noMediaEngine = ConfabError(
        .noMediaEngine, "This client has no media engine. Create the client with one to publish or subscribe.")
    static let invalidServerURL = ConfabError(
        .serverURLInvalid, "Invalid server address. Use one such as https://chat.example.org.")
    static let closed = ConfabError(.notConnected, "This client is closed. Create a new client.")
    static let connectionRestarted = ConfabError(
        .connectionRestarted, "The connection was replaced before the server answered. Check the state, and try again.",
        isRetryable: true)
    static let disconnected = ConfabError(.notJoined, "The session is not connected. Connect it first.")

    static func unexpected(_ answer: ServerMessage, for request: String) -> ConfabError {
        ConfabError(
            .unexpectedAnswer,
            "The server answered \"\(request)\" with \"\(answer.type)\". Update the client or the server.")
    }
}
