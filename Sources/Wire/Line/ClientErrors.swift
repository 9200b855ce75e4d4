/// Errors that a client finds itself. They never travel; the web SDK has the same codes.
extension WireError.Code {
    /// A request before `connect`, or after the end.
    public static let notConnected: Self = "not_connected"
    /// The owner left; nothing more is answered.
    public static let left: Self = "left"
    /// No connection within the connect timeout.
    public static let connectFailed: Self = "connect_failed"
    /// The socket broke, and the connection does not resume.
    public static let connectionLost: Self = "connection_lost"
    /// The server no longer keeps the connection, and a new one took its place. Whether it received the request is unknown.
    public static let connectionRestarted: Self = "connection_restarted"
    /// Too many requests have no answer yet.
    public static let tooManyRequests: Self = "too_many_requests"
    /// The connection is away, and too much waits for it already.
    public static let offlineQueueFull: Self = "offline_queue_full"
}

extension WireError {
    static let notConnected = WireError(.notConnected, "Connect first.")
    static let left = WireError(.left, "You left. Connect to come back.")
    static let connectFailed = WireError(
        .connectFailed, "The server cannot be reached. Check the connection and try again.", retryable: true)
    static let connectionRestarted = WireError(
        .connectionRestarted, "The connection was lost for too long and had to be replaced. Try again.", retryable: true
    )
    static let tooManyRequests = WireError(
        .tooManyRequests, "Too many requests have no answer yet. Wait for some, then try again.", retryable: true)
    static let offlineQueueFull = WireError(
        .offlineQueueFull, "The connection is away and too much is waiting for it already. Try again when it is back.",
        retryable: true)
    static let tooLargeToSend = WireError(.messageTooLarge, "This is too long to send. Make it shorter.")
    static let silentServer = WireError(.connectionLost, "The server no longer answers.", retryable: true)
    static let skippedMessage = WireError(
        .outOfOrder, "The server sent a message without the ones before it.", retryable: true)
    static let wrongWelcome = WireError(
        .malformed, "The server's welcome does not fit what this client sent.", retryable: true)

    static func unnumbered(_ type: String) -> WireError {
        WireError(.malformed, "A \"\(type)\" is not a request and has no answer.")
    }

    /// The reason for a socket that closed without an error message before it.
    static func closed(by code: CloseCode) -> WireError {
        if code == .abnormal {
            return WireError(.connectionLost, "The connection to the server was lost.", retryable: true)
        }
        let rawCode = Code(rawValue: "closed_\(code.rawValue)")
        return WireError(rawCode, "The server closed the connection (\(code.rawValue)).", retryable: code.isRetried)
    }
}

extension CloseCode {
    /// What a client closes a socket with that it takes for broken. No code of the protocol's, so the server counts it as a
    /// drop and keeps the connection (protocol §3).
    public static let dropped = CloseCode(rawValue: 4000)
    /// RFC 6455 §7.4.1: a message over every limit (protocol §2).
    static let overEveryLimit = CloseCode(rawValue: 1009)

    /// Whether a client may connect again by itself after a server closed with this (protocol §2). After 4409 the
    /// connection is on another socket; after 1009 a resume would send the same message again.
    var isRetried: Bool {
        switch self {
        case .malformed, .token, .forbidden, .replaced, .tooLarge, .overEveryLimit: false
        default: true
        }
    }

    /// Whether the server asks for a pause before the next attempt (protocol §2).
    var asksForPause: Bool { self == .timeout || self == .tooMany }
}
