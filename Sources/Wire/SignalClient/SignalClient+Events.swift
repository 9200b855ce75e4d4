extension SignalClient {
    /// One of the WebSockets that a signaling client opens. Events of older WebSockets are ignored.
    public struct Socket: Hashable, Sendable {
        /// The number of the socket, from 1.
        public let number: UInt64
        /// The node of a cluster to connect to: add it to the socket's URL as the query parameter `at`. Nil for any.
        public let node: String?

        init(number: UInt64, node: String?) { (self.number, self.node) = (number, node) }
    }

    /// The id of one request. The owner chooses the id, and should not reuse it until the request has been answered or has
    /// failed.
    public struct RequestID: Hashable, Sendable, RawRepresentable {
        public var rawValue: UInt64
        public init(rawValue: UInt64) { self.rawValue = rawValue }
    }

    /// Settings of a signaling client. The defaults suit an interactive client.
    public struct Options: Equatable, Sendable {
        /// Whether to open a new socket when one ends without `leave` (`protocol/README.md` §3). If false, the
        /// signaling client ends with its socket.
        public var reconnects = true
        /// How long connecting for the first time may take, including all attempts; nil for no limit. After that time,
        /// the signaling client ends with `connect_failed`.
        public var connectTimeout: Duration? = .seconds(20)
        /// How long one socket may take from `open` to the welcome. The server waits for a hello equally long
        /// (`protocol/README.md` §1).
        public var welcomeTimeout: Duration = .seconds(10)
        /// How many messages, and how many bytes, are kept until the server acknowledges them. This includes messages that are
        /// waiting for a connection (`protocol/README.md` §3). In addition, two session descriptions of the maximum
        /// size can wait: one for each of the two peer connections with the server.
        public var replay = Link.Bounds(largeBytes: 2 * Welcome.Bounds().description)
        /// Maximum number of unanswered requests. Any further request fails with `too_many_requests`.
        public var maxRequests = 256

        public init() {}
    }

    /// An event that the owner of a signaling client reports to it.
    public enum Event: Equatable, Sendable {
        /// Connect. Only the first `connect` has an effect: a signaling client that has ended does not start again.
        case connect
        /// The WebSocket of `Effect.open` is open, with the subprotocol `confab.v1`.
        case opened(Socket)
        /// A text message arrived.
        case received([UInt8], on: Socket)
        /// Something other than a text message arrived, such as a WebSocket ping. This shows that the server is alive
        /// (`protocol/README.md` §1).
        case heard(Socket)
        /// The WebSocket ended, or could not be opened. The code is from the server's close frame. It is 1005 if the frame had
        /// no code, and 1006 if there was no close frame.
        case closed(Socket, CloseCode)
        /// Send a request, which can be any message but `hello`, `ack`, `ping` and `bye`. Each request causes exactly one
        /// `answered` or `failed`. Without a connection, the request waits for one.
        case request(RequestID, ClientMessage)
        /// The network changed, or the application is in the foreground again. The signaling client pings immediately,
        /// or connects without waiting for the backoff unless the server requested a pause.
        case networkChanged
        /// Leave immediately, so that the connection cannot be resumed (`protocol/README.md` §3). The signaling client
        /// ends. If the connection has dropped, the server is notified afterwards: see ``SignalClient/leaveDeadline``.
        case leave
    }

    /// An instruction or a notification for the owner of a signaling client. Carry out effects in order. If an effect
    /// makes you call the signaling client again, finish the current effects before the new ones.
    public enum Effect: Equatable, Sendable {
        /// Open a WebSocket, and report `opened` or `closed`.
        case open(Socket)
        /// Send a text message.
        case send([UInt8], on: Socket)
        /// Close the WebSocket with this code. No report is needed.
        case close(Socket, CloseCode)
        /// The server sent its welcome.
        case connected(Welcome, Start)
        /// The socket ended, and the signaling client is trying to connect again. Requests wait in the meantime. The
        /// server keeps the connection for the grace period (`protocol/README.md` §3).
        case reconnecting
        /// The server no longer keeps the connection, so it cannot be resumed. The signaling client still tries to
        /// connect; `connected` follows with `Start.restarted`.
        case expired
        /// The server's answer to a request, which may be an `error` (`protocol/README.md` §1).
        case answered(RequestID, ServerMessage)
        /// A request was not sent, or will get no answer. With `not_connected`, `too_many_requests` or `offline_queue_full`,
        /// the request was not sent. With any other code, the server may have received the request, so check the state before
        /// you send it again.
        case failed(RequestID, WireError)
        /// A numbered message from the server that answers no request.
        case event(ServerMessage)
        /// A message from the server that is malformed or not supported by this version. The message number still counts
        /// (`protocol/README.md` §1).
        case unreadable(UnreadableMessage)
        /// The signaling client has ended. Only `failed` for new requests follows, and until
        /// ``SignalClient/leaveDeadline`` also `open`, `send` and `close`.
        case ended(Ending)
    }

    /// How a connection relates to the previous connection.
    public enum Start: Equatable, Sendable {
        /// There was no previous connection.
        case first
        /// The same client connection continues on a new socket. No message is lost or delivered twice (`protocol/README.md`
        /// §3).
        case resumed
        /// A new client connection, because the old connection could not be resumed for the given reason. All
        /// unanswered requests have failed with `connection_restarted`, except one for which the client moved to another
        /// node. `Welcome.state` contains the current state (`protocol/README.md` §3).
        case restarted(because: WireError)
    }

    /// The reason why a signaling client ended.
    public struct Ending: Equatable, Sendable {
        /// The close code of the most recent socket; 1000 after `leave`.
        public var code: CloseCode
        /// The error that the server sent, or else the error that the client detected; nil after `leave`.
        public var error: WireError?

        public init(code: CloseCode, error: WireError?) { (self.code, self.error) = (code, error) }
    }
}
