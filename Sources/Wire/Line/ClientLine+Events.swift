extension ClientLine {
    /// One of the WebSockets that a client line opens. Events of an older one are ignored.
    public struct Socket: Hashable, Sendable {
        /// The number of the socket, from 1.
        public let number: UInt64

        init(number: UInt64) { self.number = number }
    }

    /// The id of one request. The owner chooses it, and should not use it again before the request has its result.
    public struct RequestID: Hashable, Sendable, RawRepresentable {
        public var rawValue: UInt64
        public init(rawValue: UInt64) { self.rawValue = rawValue }
    }

    /// Settings of a client line. The defaults suit an interactive client.
    public struct Options: Equatable, Sendable {
        /// Whether to open a new socket when one ends without `leave` (`protocol/README.md` §3). If false, the client line ends
        /// with its socket.
        public var reconnects = true
        /// Time for the first connection, all attempts included; nil for no limit. After it the client line ends with
        /// `connect_failed`.
        public var connectTimeout: Duration? = .seconds(20)
        /// Time for one socket, from `open` to the welcome. The server waits as long for a hello (`protocol/README.md` §1).
        public var welcomeTimeout: Duration = .seconds(10)
        /// How much is kept until the server acknowledges it, and how much may wait for a connection (`protocol/README.md` §3).
        public var replay = Link.Bounds()
        /// Maximum number of requests without an answer. One more fails with `too_many_requests`.
        public var maxRequests = 256

        public init() {}
    }

    /// An event that the owner reports.
    public enum Event: Equatable, Sendable {
        /// Connect. Only the first one has an effect; a client line that has ended does not start again.
        case connect
        /// The WebSocket of `Effect.open` is open, with the subprotocol `confab.v1`.
        case opened(Socket)
        /// A text message arrived.
        case received([UInt8], on: Socket)
        /// Anything other than a text message arrived, such as a WebSocket ping: the server is alive (`protocol/README.md` §1).
        case heard(Socket)
        /// The WebSocket ended, or could not be opened. The code is that of the server's close frame: 1005 if the frame had
        /// none, 1006 without a frame.
        case closed(Socket, CloseCode)
        /// Send a request: any message but `hello`, `ack`, `ping` and `bye`. It gets exactly one `answered` or `failed`.
        /// Without a connection the request waits for one.
        case request(RequestID, ClientMessage)
        /// The network changed, or the application is in the foreground again. Pings at once, or connects without waiting for
        /// the backoff, unless the server requested a pause.
        case networkChanged
        /// Leave at once, without a resume (`protocol/README.md` §3). The client line ends.
        case leave
    }

    /// An instruction or a notification for the owner. Carry out effects in order. If that causes another call of the client
    /// line, finish these effects before the new ones.
    public enum Effect: Equatable, Sendable {
        /// Open a WebSocket, and report `opened` or `closed`.
        case open(Socket)
        /// Send a text message.
        case send([UInt8], on: Socket)
        /// Close the WebSocket with this code. No report is needed.
        case close(Socket, CloseCode)
        /// The server sent its welcome.
        case connected(Welcome, Start)
        /// The socket ended, and the client line tries to connect again. Requests wait, and the server keeps the connection for
        /// the grace period (`protocol/README.md` §3).
        case reconnecting
        /// The server no longer keeps the connection, so it cannot be resumed. The client line still tries to connect;
        /// `connected` follows with `Start.restarted`.
        case expired
        /// The server's answer to a request, which may be an `error` (`protocol/README.md` §1).
        case answered(RequestID, ServerMessage)
        /// A request was not sent, or gets no answer. With `not_connected`, `too_many_requests` or `offline_queue_full` it was
        /// not sent. With any other code the server may have received it: check the state before you send it again.
        case failed(RequestID, WireError)
        /// A numbered message that answers none of the requests.
        case event(ServerMessage)
        /// A message that is malformed, or that this version does not support. It still counts in the numbering
        /// (`protocol/README.md` §1).
        case unreadable(UnreadableMessage)
        /// The client line has ended. No more effects follow, except `failed` for new requests.
        case ended(Ending)
    }

    /// The relation of a connection to the one before it.
    public enum Start: Equatable, Sendable {
        /// There was none before.
        case first
        /// The same client connection on a new socket. No message is lost or delivered twice (`protocol/README.md` §3).
        case resumed
        /// A new client connection, because the old one could not be resumed, with the reason. Requests without an answer have
        /// failed with `connection_restarted`. `Welcome.state` is what the server knows now (`protocol/README.md` §3).
        case restarted(because: WireError)
    }

    /// The reason why a client line ended.
    public struct Ending: Equatable, Sendable {
        /// The close code of the last socket; 1000 after `leave`.
        public var code: CloseCode
        /// The server's error if it sent one, otherwise the client's; nil after `leave`.
        public var error: WireError?

        public init(code: CloseCode, error: WireError?) { (self.code, self.error) = (code, error) }
    }
}
