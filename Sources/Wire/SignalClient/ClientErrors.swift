/// Errors that the client itself detects. They are never sent. The web SDK has the same codes.
extension WireError.Code {
    /// A request was made before `connect`, or after the signaling client ended.
    public static let notConnected: Self = "not_connected"
    /// The client has left, so its unanswered requests get no answers.
    public static let left: Self = "left"
    /// The first connection was not established within the connect timeout.
    public static let connectFailed: Self = "connect_failed"
    /// The socket ended, and the connection will not be resumed.
    public static let connectionLost: Self = "connection_lost"
    /// The connection could not be resumed, and a new one replaced it. The server may or may not have received the request.
    public static let connectionRestarted: Self = "connection_restarted"
    /// Too many requests have no answer yet.
    public static let tooManyRequests: Self = "too_many_requests"
    /// Too many messages are waiting for the connection.
    public static let offlineQueueFull: Self = "offline_queue_full"
}

extension WireError {
    static let notConnected = WireError(.notConnected, "Not connected. Connect first.")
    static let left = WireError(.left, "You have disconnected. Connect again to continue.")
    static let connectFailed = WireError(
        .connectFailed, "The server cannot be reached. Check your connection and try again.", retryable: true)
    static let connectionRestarted = WireError(
        .connectionRestarted, "The connection was lost for too long, so a new one was started. Try again.",
        retryable: true)
    static let tooManyRequests = WireError(
        .tooManyRequests, "Too many requests are waiting for a response. Wait for some of them, then try again.",
        retryable: true)
    static let offlineQueueFull = WireError(
        .offlineQueueFull, "Too many messages are waiting for the connection. Try again after it is restored.",
        retryable: true)
    static let tooLargeToSend = WireError(.messageTooLarge, "This message is too long. Shorten it.")
    static let silentServer = WireError(
        .connectionLost, "The server stopped responding. Check your connection and connect again.", retryable: true)
    static let skippedMessage = WireError(
        .outOfOrder, "The server skipped a message. Connect again.", retryable: true)
    static let wrongWelcome = WireError(
        .malformed, "The server's welcome does not match this client's hello. Connect again.", retryable: true)

    static func unnumbered(_ type: String) -> WireError {
        WireError(.malformed, "\"\(type)\" has no response. Send it as a message, not as a request.")
    }

    /// Returns the reason for a socket that closed without an error message.
    static func closed(by code: CloseCode) -> WireError {
        if code == .abnormal {
            return WireError(
                .connectionLost, "The connection to the server was lost. Connect again.", retryable: true)
        }
        let rawCode = Code(rawValue: "closed_\(code.rawValue)")
        return WireError(
            rawCode, "The server closed the connection (close code \(code.rawValue)). Connect again.",
            retryable: code.isRetried)
    }
}

extension CloseCode {
    /// 4000: the client considers the socket broken. The protocol does not define this code, so the server counts it as a drop
    /// and keeps the connection (`protocol/README.md` §3).
    public static let dropped = CloseCode(rawValue: 4000)
    /// 1009 (RFC 6455 §7.4.1): a message exceeded even the largest limit (`protocol/README.md` §2).
    static let overEveryLimit = CloseCode(rawValue: 1009)

    /// Whether a client may reconnect automatically after the server closed with this code (`protocol/README.md` §2). For
    /// example, it may not after 4409, because the connection was resumed on another socket, nor after 1009, because a resume
    /// would send the same message that is too large.
    var isRetried: Bool {
        switch self {
        case .malformed, .token, .forbidden, .replaced, .tooLarge, .overEveryLimit: false
        default: true
        }
    }

    /// Whether the server requests a pause before the next attempt (`protocol/README.md` §2).
    var requestsPause: Bool { self == .timeout || self == .tooMany }
}
