extension ClientLine {
    /// Names one WebSocket among all that a line asks for. What its owner reports of an older one is ignored.
    public struct Socket: Hashable, Sendable {
        /// Counts from 1.
        public let number: UInt64

        init(number: UInt64) { self.number = number }
    }

    /// Names one request. The owner chooses it, and should not use it again before the request has its outcome.
    public struct RequestID: Hashable, Sendable, RawRepresentable {
        public var rawValue: UInt64
        public init(rawValue: UInt64) { self.rawValue = rawValue }
    }

    /// How a line behaves; the defaults are those of an interactive client.
    public struct Options: Equatable, Sendable {
        /// Whether a new socket is opened when one ends other than by `leave` (protocol §3). Without it, the line ends with
        /// its socket.
        public var reconnects = true
        /// Time for the first connection, with all attempts; then the line ends with `connect_failed`. Nil for no limit.
        public var connectTimeout: Duration? = .seconds(20)
        /// Time for one socket, from `open` to the welcome. The server waits as long for a hello (protocol §1).
        public var welcomeTimeout: Duration = .seconds(10)
        /// What is kept until the server acknowledges it, and what may wait for a connection (protocol §3).
        public var replay = Link.Bounds()
        /// Requests without an answer; one more fails with `too_many_requests`.
        public var maxRequests = 256

        public init() {}
    }

    /// What happened, as the owner reports it.
    public enum Event: Equatable, Sendable {
        /// The owner wants to be connected. Has an effect once; a line that has ended stays so.
        case connect
        /// The WebSocket that `Effect.open` asked for is open, with the subprotocol `confab.v1`.
        case opened(Socket)
        /// A text message arrived.
        case received([UInt8], on: Socket)
        /// Something other than a text message arrived, such as a WebSocket ping: the server is there (protocol §1).
        case heard(Socket)
        /// The WebSocket ended, or could not be opened. The code is that of the server's close frame, 1005 if it had none,
        /// and 1006 without a close frame.
        case closed(Socket, CloseCode)
        /// The owner asks the server something: any message but `hello`, `ack`, `ping` and `bye`. It gets exactly one
        /// `answered` or `failed`. While no socket is connected, the request waits for one.
        case request(RequestID, ClientMessage)
        /// The network changed or the application is back in the foreground: pings at once, or connects without
        /// waiting for the backoff. A pause that the server asked for goes on.
        case networkChanged
        /// The owner leaves, at once, for everybody (protocol §3). The line ends.
        case leave
    }

    /// What the owner has to do or to know. Effects are carried out in their order; an owner that calls the line again while
    /// it does so finishes the present effects first.
    public enum Effect: Equatable, Sendable {
        /// Open a WebSocket and report `opened` or `closed`.
        case open(Socket)
        /// Send a text message.
        case send([UInt8], on: Socket)
        /// Close the WebSocket with this code. The line does not wait for it and needs no report.
        case close(Socket, CloseCode)
        /// The server said welcome.
        case connected(Welcome, Start)
        /// The socket ended and another is tried for. Requests wait, and so does the server (protocol §3).
        case reconnecting
        /// The server no longer keeps the connection, so a resume is not tried. The line still tries to connect;
        /// `connected` follows with `Start.restarted`.
        case expired
        /// The server's answer to a request, an `error` included (protocol §1).
        case answered(RequestID, ServerMessage)
        /// A request was not sent, or gets no answer. With `not_connected`, `too_many_requests` or `offline_queue_full` it
        /// was not sent. With any other code the server may have received it: do not repeat it without a look at the state.
        case failed(RequestID, WireError)
        /// A numbered message that answers none of the requests.
        case event(ServerMessage)
        /// A message that this version does not know, or that is malformed. It counts in the numbering all the same
        /// (protocol §1).
        case unreadable(UnreadableMessage)
        /// It is over: no effects follow, except for `failed` to requests.
        case ended(Ending)
    }

    /// How a connection relates to the one before it.
    public enum Start: Equatable, Sendable {
        /// The first one.
        case first
        /// The same client connection on a new socket; nothing is lost or repeated (protocol §3).
        case resumed
        /// A new client connection in place of one that could not be resumed, and why. Requests without an answer have
        /// failed with `connection_restarted`, and `Welcome.state` is what the server now believes (protocol §3).
        case restarted(because: WireError)
    }

    /// Why a line is over.
    public struct Ending: Equatable, Sendable {
        /// The close code of the last socket; 1000 after `leave`.
        public var code: CloseCode
        /// Nil after `leave`; otherwise the server's error if it sent one.
        public var error: WireError?

        public init(code: CloseCode, error: WireError?) { (self.code, self.error) = (code, error) }
    }
}
