/// A 128-bit id of a client connection or a stream. The router only compares ids.
public struct Key: Hashable, Sendable {
    public var high: UInt64
    public var low: UInt64
    public init(high: UInt64, low: UInt64) { (self.high, self.low) = (high, low) }
}

/// One of the two peer connections between a client and the server, from the client's point of view.
public enum Side: Hashable, Sendable {
    /// The client publishes media over this peer connection.
    case send
    /// The client receives media over this peer connection.
    case receive
}

/// The `mid`s of the transceivers of one stream (RFC 8843 §15): one for audio, one for video, or both.
public struct Mids: Equatable, Sendable {
    public var audio: String?
    public var video: String?
    public init(audio: String? = nil, video: String? = nil) { (self.audio, self.video) = (audio, video) }
}

/// An event that the router reports to its owner.
public enum RouterEvent: Equatable, Sendable {
    /// A peer connection has failed. The client must make a new one.
    case failed(client: Key, Side, PeerFailure)
    /// A peer connection can now carry media, or no longer can because no connectivity check has arrived for too long.
    case connected(client: Key, Side, Bool)
    /// A subscriber's video was paused or resumed.
    case videoPaused(stream: Key, session: String, client: Key, paused: Bool, PauseReason)
    /// The encodings of a stream that subscribers need, as RIDs in the publisher's order. The publisher may stop sending the
    /// other encodings. Empty if the stream has no subscribers.
    case layersWanted(stream: Key, session: String, client: Key, rids: [String])
    /// A session has reached its bandwidth limit or that of the server, or has room again.
    case full(session: String, Bool)
    /// The active speaker of a session changed. The stream is nil if the former speaker's stream ended.
    case speaking(session: String, stream: Key?)
}

public enum PeerFailure: Equatable, Sendable {
    /// The peer's certificate does not match the fingerprint in the peer's description.
    case fingerprint
    /// The DTLS handshake failed or timed out.
    case handshake
}

public enum PauseReason: Equatable, Sendable {
    /// The subscriber's connection is congested: the queue of data to send is too long.
    case slow
    /// The subscriber cannot decode the published codec.
    case codec
}
