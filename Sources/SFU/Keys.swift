/// A 128-bit id of a client connection or a stream. The router only compares it.
public struct Key: Hashable, Sendable {
    public var high: UInt64
    public var low: UInt64
    public init(high: UInt64, low: UInt64) { (self.high, self.low) = (high, low) }
}

/// One of a client connection's two peer connections with the server, from the client's point of view.
public enum Side: Hashable, Sendable {
    /// The client publishes over it.
    case send
    /// The client receives media over it.
    case receive
}

/// The transceivers of one stream by `mid` (RFC 8843 §15): one for audio, one for video, or both.
public struct Mids: Equatable, Sendable {
    public var audio: String?
    public var video: String?
    public init(audio: String? = nil, video: String? = nil) { (self.audio, self.video) = (audio, video) }
}

/// An event that the router reports to its owner.
public enum RouterEvent: Equatable, Sendable {
    /// A peer connection has failed; the client must make a new one.
    case failed(client: Key, Side, PeerFailure)
    /// A peer connection can carry media now, or no longer can because no connectivity check arrived for too long.
    case connected(client: Key, Side, Bool)
    /// A subscriber's video was paused or resumed.
    case videoPaused(stream: Key, session: String, client: Key, paused: Bool, PauseReason)
    /// The encodings of a stream that subscribers need, as RIDs in the publisher's order. The publisher need not send the
    /// others. Empty if there are no subscribers.
    case layersWanted(stream: Key, session: String, client: Key, rids: [String])
    /// The active speaker of a session; nil if that stream ended.
    case speaking(session: String, stream: Key?)
}

public enum PeerFailure: Equatable, Sendable {
    /// The peer's certificate does not match the fingerprint in its description.
    case fingerprint
    /// The DTLS handshake failed or timed out.
    case handshake
}

public enum PauseReason: Equatable, Sendable {
    /// Congestion: the queue to the subscriber is too long.
    case slow
    /// The subscriber cannot decode the published codec.
    case codec
}
