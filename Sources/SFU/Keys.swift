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
    /// What a subscriber gets of a stream's video has changed.
    case subscriptionChanged(SubscriptionChange)
    /// How well a stream reaches the server has changed. The reason is nil if the level is good.
    case streamQuality(stream: Key, session: String, UplinkLevel, UplinkTrouble?)
    /// What subscribers need of a stream's video has changed.
    case layersWanted(LayersWanted)
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

/// What subscribers need of a stream's video. The publisher may stop sending anything else.
public struct LayersWanted: Equatable, Sendable {
    public var stream: Key
    /// The id of the session that the stream is in.
    public var session: String
    /// The publisher.
    public var client: Key
    /// The needed encodings as RIDs in the publisher's order. Empty if the stream has no subscribers, or no RIDs.
    public var rids: [String]
    /// Whether subscribers need a video without RIDs; nil if it has RIDs.
    public var isVideoWanted: Bool?
    /// The payload type of the codec to send, because subscribers cannot decode the publisher's own choice; nil if they can.
    public var payloadType: UInt8?
}

/// A pause, the end of a pause, another layer or a warning, for one subscription.
public struct SubscriptionChange: Equatable, Sendable {
    /// The stream that the client has subscribed to.
    public var stream: Key
    /// The id of the session that the stream is in.
    public var session: String
    /// The subscriber.
    public var client: Key
    /// Whether the subscriber gets no video for now.
    public var isPaused: Bool
    /// Why this changed. For a pause, also when it ends: `slow` or `codec`.
    public var reason: SubscriptionReason
    /// The RID of the layer that is forwarded; nil if there is only one, and while paused.
    public var rid: String?
    /// The highest temporal layer that is forwarded, 0 to 3; nil if all are.
    public var temporalLayer: Int?
    /// Whether the video will be paused if the subscriber's connection gets worse; nil if this has not changed.
    public var warning: Bool?
    /// Whether the subscriber's connection carries less than the subscriber wants of this video; nil if this has not changed.
    public var isLimited: Bool?
}

/// Why a subscriber gets no video, or another layer of it.
public enum SubscriptionReason: String, Equatable, Sendable {
    /// The subscriber's connection carries too little for this video, or the queue of data to send is too long.
    case slow
    /// The subscriber cannot decode the published codec.
    case codec
    /// The bitrate that the subscriber's connection carries has changed.
    case bandwidth
    /// The subscriber has asked for another size or frame rate.
    case size
    /// The publisher has started or stopped sending a layer.
    case publisher
}

/// How well a stream reaches the server.
public enum UplinkLevel: String, Comparable, Sendable {
    /// Nothing is lost that matters.
    case good
    /// People may notice it.
    case fair
    /// People cannot miss it.
    case poor

    public static func < (left: UplinkLevel, right: UplinkLevel) -> Bool { left.rank < right.rank }
    private var rank: Int { self == .good ? 2 : self == .fair ? 1 : 0 }
}

/// What keeps a stream from reaching the server well.
public enum UplinkTrouble: String, Equatable, Sendable {
    /// Packets are lost.
    case loss
    /// Packets arrive late and unevenly.
    case delay
    /// The publisher does not send layers that subscribers need.
    case bandwidth
}
