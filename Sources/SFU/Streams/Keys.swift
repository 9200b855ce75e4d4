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
    /// A peer connection can now carry media (true), or no longer can (false): no connectivity check has arrived for
    /// too long, its TCP connection was closed, or the client closed it.
    case connected(client: Key, Side, Bool)
    /// The video that a subscriber receives was paused, resumed or switched to another layer, or a warning or limit
    /// changed.
    case subscriptionChanged(SubscriptionChange)
    /// The quality of a stream's connection to the server has changed. The reason is nil if the level is good.
    case streamQuality(stream: Key, session: String, UplinkLevel, UplinkTrouble?)
    /// The layers or the codec that subscribers need from a stream's video have changed.
    case layersWanted(LayersWanted)
    /// A session or the whole server has reached its bandwidth limit (true), or both are clearly below their limits
    /// again (false).
    case full(session: String, Bool)
    /// The active speaker of a session changed. The stream is nil if the previous speaker's stream ended.
    case speaking(session: String, stream: Key?)
}

/// The reason why a peer connection has failed.
public enum PeerFailure: Equatable, Sendable {
    /// The peer's certificate does not match the fingerprint in the peer's description.
    case fingerprint
    /// The DTLS handshake failed or timed out.
    case handshake
}

/// The layers and the codec that subscribers need from a stream's video. The publisher may stop sending anything else.
public struct LayersWanted: Equatable, Sendable {
    public var stream: Key
    /// The id of the session that the stream is in.
    public var session: String
    /// The publisher.
    public var client: Key
    /// The needed encodings as RIDs in the publisher's order. Empty if no subscriber needs the video, or if it has no
    /// RIDs.
    public var rids: [String]
    /// Whether subscribers need a video that has no RIDs; nil if it has RIDs.
    public var isVideoWanted: Bool?
    /// The payload type of the codec to send, because subscribers cannot decode the one that the publisher would
    /// choose; nil if they can.
    public var payloadType: UInt8?
}

/// A change to the video that one subscription receives: a pause, the end of a pause, another layer, or another
/// warning or limit.
public struct SubscriptionChange: Equatable, Sendable {
    /// The stream that the client has subscribed to.
    public var stream: Key
    /// The id of the session that the stream is in.
    public var session: String
    /// The subscriber.
    public var client: Key
    /// Whether the subscriber currently gets no video.
    public var isPaused: Bool
    /// The reason for the change. For the start and the end of a pause: `slow` or `codec`.
    public var reason: SubscriptionReason
    /// The RID of the forwarded layer; nil if there is only one, and while paused.
    public var rid: String?
    /// The highest temporal layer that is forwarded, 0 to 3; nil if all are.
    public var temporalLayer: Int?
    /// Whether the video will be paused if the subscriber's connection gets worse; nil if unchanged.
    public var warning: Bool?
    /// Whether the subscriber gets this video in a lower quality than requested, because its connection has too little
    /// bandwidth; nil if unchanged.
    public var isLimited: Bool?
}

/// Why a subscriber's video was paused or switched to another layer.
public enum SubscriptionReason: String, Equatable, Sendable {
    /// The subscriber's connection has too little bandwidth for this video, or its send queue is too long.
    case slow
    /// The subscriber cannot decode the published codec.
    case codec
    /// The available bandwidth of the subscriber's connection has changed.
    case bandwidth
    /// The subscriber has requested another size or frame rate.
    case size
    /// The publisher has started or stopped sending a layer.
    case publisher
}

/// The quality of a stream's connection to the server.
public enum UplinkLevel: String, Comparable, Sendable {
    /// No noticeable problems.
    case good
    /// Problems that people may notice.
    case fair
    /// Obvious problems.
    case poor

    public static func < (left: UplinkLevel, right: UplinkLevel) -> Bool { left.rank < right.rank }
    private var rank: Int { self == .good ? 2 : self == .fair ? 1 : 0 }
}

/// The reason why the quality of a stream's connection to the server is not good.
public enum UplinkTrouble: String, Equatable, Sendable {
    /// Packets are lost.
    case loss
    /// Packets arrive late and unevenly.
    case delay
    /// The publisher does not send layers that subscribers need.
    case bandwidth
}
