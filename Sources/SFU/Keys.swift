/// A 128-bit id of whoever uses the router: a client connection or a stream. The router only compares them.
public struct Key: Hashable, Sendable {
    public var high: UInt64
    public var low: UInt64
    public init(high: UInt64, low: UInt64) { (self.high, self.low) = (high, low) }
}

/// Which of a client connection's two peer connections with the server, seen from the client.
public enum Side: Hashable, Sendable {
    /// The client publishes over it.
    case send
    /// The client gets others' media over it.
    case receive
}

/// The transceivers of one stream, by their `mid` (RFC 8843 §15): for audio, for video, or for both.
public struct Mids: Equatable, Sendable {
    public var audio: String?
    public var video: String?
    public init(audio: String? = nil, video: String? = nil) { (self.audio, self.video) = (audio, video) }
}

/// What the router tells its owner.
public enum RouterEvent: Equatable, Sendable {
    /// A peer connection cannot go on; the client has to make another.
    case failed(client: Key, Side, PeerFailure)
    /// Media can flow over a peer connection now, or cannot any more: nobody has asked over any path for too long.
    case connected(client: Key, Side, Bool)
    /// A subscriber's video stopped, or goes on.
    case videoPaused(stream: Key, session: String, client: Key, paused: Bool, PauseReason)
    /// Which encodings of a stream are wanted, by their rids in the publisher's order: he need not make the others.
    /// None where nobody watches.
    case layersWanted(stream: Key, session: String, client: Key, rids: [String])
    /// Who speaks in a session; nil when the one who did is gone.
    case speaking(session: String, stream: Key?)
}

public enum PeerFailure: Equatable, Sendable {
    /// The certificate shown is not the one the description names.
    case fingerprint
    /// The handshake broke or took too long.
    case handshake
}

public enum PauseReason: Equatable, Sendable {
    /// What is sent to the subscriber piles up.
    case slow
    /// The subscriber cannot decode what is published.
    case codec
}
