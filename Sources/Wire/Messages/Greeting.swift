// How a connection begins: the client's `hello`, the server's `welcome`, and the state that the server has of the client
// (`protocol/README.md` §2 and §3).

public struct Hello: Payload {
    public struct Resume: Payload {
        public var secret = ""
        public var received: UInt64 = 0
        public init() {}
        public init(secret: String, received: UInt64) { (self.secret, self.received) = (secret, received) }
        public mutating func fields(_ coder: inout FieldCoder) throws(WireError) {
            try coder.string("secret", &secret, max: Limits.name)
            try coder.integer("received", &received, in: 0...(1 << 53))
        }
    }

    public var version = 1
    public var identity: String?
    public var token: String?
    public var name: String?
    public var resume: Resume?
    public var client: String?

    public init() {}

    public mutating func fields(_ coder: inout FieldCoder) throws(WireError) {
        try coder.integer("version", &version, in: 0...Int(Int32.max))
        // Only the length is checked here. The verifier checks the rest.
        try coder.string("identity", &identity, max: Limits.message)
        try coder.string("token", &token, max: Limits.message)
        try coder.string("name", &name, max: Limits.name)
        try coder.nested("resume", &resume)
        try coder.string("client", &client, max: Limits.name)
    }
}

public struct Welcome: Payload {
    public struct Resume: Payload {
        public var secret = ""
        public var grace: Duration = .zero
        public init() {}
        public init(secret: String, grace: Duration) { (self.secret, self.grace) = (secret, grace) }
        public mutating func fields(_ coder: inout FieldCoder) throws(WireError) {
            try coder.string("secret", &secret, max: Limits.name)
            try coder.milliseconds("graceMs", &grace)
        }
    }

    public struct Bounds: Payload {
        public var message = Limits.message
        public var description = Limits.description
        public var interests = 0
        public var signal = Limits.signalData
        /// Without a stream for this long after a match, the page says so.
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

    /// That this server routes media.
    public struct Media: Payload {
        /// What the sessions of matches will be, so that a page can open its connections during the preview.
        public var roulette = MediaMode.relayed
        public init() {}
        public init(roulette: MediaMode) { self.roulette = roulette }
        public mutating func fields(_ coder: inout FieldCoder) throws(WireError) {
            try coder.choice("roulette", &roulette)
        }
    }

    /// That this server can wake browsers (RFC 8292).
    public struct Push: Payload {
        /// Its public key, as `PushManager.subscribe` takes it: 65 bytes in base64url.
        public var vapidKey = ""
        public init() {}
        public init(vapidKey: String) { self.vapidKey = vapidKey }
        public mutating func fields(_ coder: inout FieldCoder) throws(WireError) {
            try coder.string("vapidKey", &vapidKey, max: Limits.name)
        }
    }

    public var version = 1
    public var server = ""
    public var connection = ConnectionID(high: 0, low: 0)
    public var identity: String?
    public var resumed = false
    public var received: UInt64 = 0
    public var resume = Resume()
    public var ping: Duration = .seconds(10)
    public var ice = ICEConfiguration()
    public var media: Media?
    public var push: Push?
    public var limits = Bounds()
    public var state = Snapshot()

    public init() {}

    public mutating func fields(_ coder: inout FieldCoder) throws(WireError) {
        try coder.integer("version", &version, in: 0...1000)
        try coder.string("server", &server, max: Limits.name)
        try coder.id("connectionId", &connection)
        try coder.string("identity", &identity, max: Limits.name)
        try coder.bool("resumed", &resumed)
        try coder.integer("received", &received, in: 0...(1 << 53))
        try coder.nested("resume", &resume)
        try coder.milliseconds("pingMs", &ping)
        try coder.nested("ice", &ice)
        try coder.nested("media", &media)
        try coder.nested("push", &push)
        try coder.nested("limits", &limits)
        try coder.nested("state", &state)
    }
}

/// What the server believes about a client, whole.
public struct Snapshot: Payload {
    public enum RouletteState: String, Hashable, Sendable { case idle, waiting, matched }
    public struct Roulette: Payload {
        public var state = RouletteState.idle
        public var match: MatchID?
        public init() {}
        public init(state: RouletteState, match: MatchID? = nil) { (self.state, self.match) = (state, match) }
        public mutating func fields(_ coder: inout FieldCoder) throws(WireError) {
            try coder.choice("state", &state)
            try coder.id("matchId", &match)
        }
    }

    public enum CallState: String, Hashable, Sendable { case ringing, active }
    /// The call that this device holds.
    public struct Call: Payload {
        public var id = CallID(high: 0, low: 0)
        public var state = CallState.ringing
        public init() {}
        public init(id: CallID, state: CallState) { (self.id, self.state) = (id, state) }
        public mutating func fields(_ coder: inout FieldCoder) throws(WireError) {
            try coder.id("callId", &id)
            try coder.choice("state", &state)
        }
    }

    public var sessions: [String]? = []
    public var roulette = Roulette()
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
