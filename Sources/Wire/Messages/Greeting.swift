// The messages that start a connection (`protocol/README.md` §1 and §3): the client's `hello`, and the server's
// `welcome` with a snapshot of the client's state.

/// The first message of a client on each socket. Contains its identity and the connection to resume. Without `identity`
/// and `token`, the server creates a new anonymous identity. A hello with both is answered with `malformed`.
public struct Hello: Payload {
    /// A request to continue an earlier client connection (`protocol/README.md` §3).
    public struct Resume: Payload {
        /// The secret from the ``Welcome/resume`` of the most recent welcome.
        public var secret = ""
        /// The highest `seq` of the server's messages that the client has received; 0 for none.
        public var received: UInt64 = 0
        public init() {}
        public init(secret: String, received: UInt64) { (self.secret, self.received) = (secret, received) }
        public mutating func fields(_ coder: inout FieldCoder) throws(WireError) {
            try coder.string("secret", &secret, max: Limits.name)
            try coder.integer("received", &received, in: 0...(1 << 53))
        }
    }

    /// The protocol version, which is 1. Any other version is answered with `version_unsupported`.
    public var version = 1
    /// The secret of an anonymous identity, from ``Welcome/identity``; nil if there is none yet.
    public var identity: String?
    /// A user token, or a session token for a guest without a lasting identity; nil to use `identity`.
    public var token: String?
    /// The name to show if the person has not chosen one, at most 256 bytes; nil for none. A user token's name takes
    /// precedence.
    public var name: String?
    /// The connection to resume; nil to start a new one.
    public var resume: Resume?
    /// The name and version of the client software, for the server's log, at most 256 bytes; nil if not specified.
    public var client: String?
    /// The trace that the connection continues, as the header `traceparent` of W3C Trace Context, at most 256 bytes; nil for
    /// none. A server that records no traces ignores it, and so does any server if it is invalid.
    public var traceparent: String?
    /// True if the client shows the person what ``RouletteNotice/warning(_:)`` contains. Older clients do not say so: nil.
    public var warnings: Bool?

    public init() {}

    public mutating func fields(_ coder: inout FieldCoder) throws(WireError) {
        try coder.integer("version", &version, in: 0...Int(Int32.max))
        // Check only the lengths here. The server verifies the rest.
        try coder.string("identity", &identity, max: Limits.message)
        try coder.string("token", &token, max: Limits.message)
        try coder.string("name", &name, max: Limits.name)
        try coder.nested("resume", &resume)
        try coder.string("client", &client, max: Limits.name)
        try coder.string("traceparent", &traceparent, max: Limits.name)
        try coder.bool("warnings", &warnings)
    }
}

/// The server's answer to a `hello` that it accepts.
public struct Welcome: Payload {
    /// The data for resuming a connection.
    public struct Resume: Payload {
        /// The secret that proves the right to resume. Do not share it with other clients. Each welcome contains a new secret,
        /// which replaces the previous one.
        public var secret = ""
        /// How long the server keeps a dropped connection.
        public var grace: Duration = .zero
        public init() {}
        public init(secret: String, grace: Duration) { (self.secret, self.grace) = (secret, grace) }
        public mutating func fields(_ coder: inout FieldCoder) throws(WireError) {
            try coder.string("secret", &secret, max: Limits.name)
            try coder.milliseconds("graceMs", &grace)
        }
    }

    /// The server's limits. A message that is too large is answered with `message_too_large`, a signal that is too large with
    /// `signal_too_large`, and too many interests with `invalid_interests`.
    public struct Bounds: Payload {
        /// The maximum size of a message without a session description, in bytes.
        public var message = Limits.message
        /// The maximum size of a message with a session description, in bytes.
        public var description = Limits.description
        /// Maximum number of interests of one person.
        public var interests = 0
        /// The maximum size of a signal's data, in bytes.
        public var signal = Limits.signalData
        /// How long a client waits for the partner's stream in a match before it reports to the user that there is
        /// none; nil if the server does not specify a time.
        public var streamTimeout: Duration?
        public init() {}
        public mutating func fields(_ coder: inout FieldCoder) throws(WireError) {
            try coder.integer("message", &message, in: 0...Int(Int32.max))
            try coder.integer("description", &description, in: 0...Int(Int32.max))
            try coder.integer("interests", &interests, in: 0...1000)
            try coder.integer("signal", &signal, in: 0...Int(Int32.max))
            try coder.milliseconds("streamTimeoutMs", &streamTimeout)
        }
    }

    /// The media mode of matches. Only sent by a server that routes media.
    public struct Media: Payload {
        /// Whether the media of matches is relayed or routed. A page that knows the mode can open its peer connection before
        /// there is a match.
        public var roulette = MediaMode.relayed
        public init() {}
        public init(roulette: MediaMode) { self.roulette = roulette }
        public mutating func fields(_ coder: inout FieldCoder) throws(WireError) {
            try coder.choice("roulette", &roulette)
        }
    }

    /// The key for Web Push (RFC 8292). Only sent by a server that can send push notifications to browsers.
    public struct Push: Payload {
        /// The server's public key in the form that `PushManager.subscribe` expects: 65 bytes in base64url.
        public var vapidKey = ""
        public init() {}
        public init(vapidKey: String) { self.vapidKey = vapidKey }
        public mutating func fields(_ coder: inout FieldCoder) throws(WireError) {
            try coder.string("vapidKey", &vapidKey, max: Limits.name)
        }
    }

    /// The protocol version, which is 1.
    public var version = 1
    /// The version of the server's software.
    public var server = ""
    /// The name of the node that this client is connected to, such as `n2`; nil if the server is not a node of a cluster. To
    /// resume this connection, open the socket's URL with this name as the query parameter `at`.
    public var at: String?
    /// The id of this client connection, which other clients in a session also see.
    public var connection = ConnectionID(high: 0, low: 0)
    /// The secret of a new anonymous identity; nil if the server did not create one. Store the secret and send it in each later
    /// `hello`.
    public var identity: String?
    /// Whether the connection named in ``Hello/resume`` continues. If false, the `seq` of both sides start again at 1.
    public var resumed = false
    /// The highest `seq` that the server has received from this client. The client sends all later messages again.
    public var received: UInt64 = 0
    /// The data for resuming this connection.
    public var resume = Resume()
    /// How long a client waits without receiving anything before it sends `ping`. After the same time without an
    /// answer, the client abandons the socket.
    public var ping: Duration = .seconds(10)
    /// The ICE servers that the client should use for its peer connections.
    public var ice = ICEConfiguration()
    /// The media mode of matches; nil if the server does not route media.
    public var media: Media?
    /// The key for Web Push; nil if the server cannot send push notifications to browsers.
    public var push: Push?
    /// The samples of the camera that clients send; nil if the server checks none.
    public var sampling: Sampling?
    /// The server's limits on messages, signals and interests.
    public var limits = Bounds()
    /// The state of this client connection as the server sees it.
    public var state = Snapshot()

    public init() {}

    public mutating func fields(_ coder: inout FieldCoder) throws(WireError) {
        try coder.integer("version", &version, in: 0...1000)
        try coder.string("server", &server, max: Limits.name)
        try coder.string("at", &at, max: Limits.name)
        try coder.id("connectionId", &connection)
        try coder.string("identity", &identity, max: Limits.name)
        try coder.bool("resumed", &resumed)
        try coder.integer("received", &received, in: 0...(1 << 53))
        try coder.nested("resume", &resume)
        try coder.milliseconds("pingMs", &ping)
        try coder.nested("ice", &ice)
        try coder.nested("media", &media)
        try coder.nested("push", &push)
        try coder.nested("sampling", &sampling)
        try coder.nested("limits", &limits)
        try coder.nested("state", &state)
    }
}

/// The state of a client connection as the server sees it. After a failed resume, the list of sessions is empty and
/// the roulette state is `idle`.
public struct Snapshot: Payload {
    /// A device's state in the roulette.
    public enum RouletteState: String, Hashable, Sendable {
        /// Not searching.
        case idle
        /// In the queue, or about to enter it.
        case waiting
        /// In a chat.
        case matched
    }

    /// The roulette state of this device.
    public struct Roulette: Payload {
        /// Whether the device is searching, chatting or neither.
        public var state = RouletteState.idle
        /// The id of the current match; nil unless `state` is `matched`.
        public var match: MatchID?
        public init() {}
        public init(state: RouletteState, match: MatchID? = nil) { (self.state, self.match) = (state, match) }
        public mutating func fields(_ coder: inout FieldCoder) throws(WireError) {
            try coder.choice("state", &state)
            try coder.id("matchId", &match)
        }
    }

    /// The state of a call on the device that placed or accepted it.
    public enum CallState: String, Hashable, Sendable {
        /// This device placed the call, and the call is ringing.
        case ringing
        /// The call was accepted.
        case active
    }

    /// The call that this device placed or accepted.
    public struct Call: Payload {
        /// The id of the call, with which to rejoin or end it.
        public var id = CallID(high: 0, low: 0)
        /// Whether the call is ringing or was accepted.
        public var state = CallState.ringing
        public init() {}
        public init(id: CallID, state: CallState) { (self.id, self.state) = (id, state) }
        public mutating func fields(_ coder: inout FieldCoder) throws(WireError) {
            try coder.id("callId", &id)
            try coder.choice("state", &state)
        }
    }

    /// The ids of the sessions that the connection is in; nil is the same as an empty list.
    public var sessions: [String]? = []
    /// The state of this device in the roulette.
    public var roulette = Roulette()
    /// The call on this device; nil if there is none.
    public var call: Call?

    public init() {}
    public init(sessions: [SessionID], roulette: Roulette, call: Call? = nil) {
        self.sessions = sessions.map(\.text)
        self.roulette = roulette
        self.call = call
    }

    public mutating func fields(_ coder: inout FieldCoder) throws(WireError) {
        try coder.strings("sessions", &sessions, max: Limits.sessionID)
        try coder.nested("roulette", &roulette)
        try coder.nested("call", &call)
    }
}
