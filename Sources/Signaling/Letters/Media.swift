import Wire

/// A command for the media plane, executed in order with the other effects.
///
/// Every `publish` of a stream is followed by exactly one `unpublish`. Every `subscribe` ends with one `unsubscribe` or with
/// the stream's `unpublish`. No command refers to a client after that client's `leave`.
///
/// If a session spans nodes, its node posts commands to the others. They may arrive after the `leave` of a client, which has ended its
/// streams and subscriptions. A node forgets the session's streams when the last member there leaves, and gets
/// them again when another one joins.
public enum MediaCommand: Equatable, Sendable {
    /// A client's SDP offer. Answered exactly once, with `MediaEvent.answered` or `refused`. The session is the last
    /// of those that the client is in, or the one of its room; nil if there is none. It only decides which media loop serves
    /// a client that has none yet.
    case offer(ConnectionID, in: SessionID?, re: UInt64, MediaSide, sdp: String)
    case close(ConnectionID, MediaSide)
    /// A client requests the available bitrate of its connection. Answered exactly once, with `MediaEvent.estimated`.
    case estimate(ConnectionID, re: UInt64)
    /// The client connection has ended. Closes both of its peer connections.
    case leave(ConnectionID)
    /// Starts a stream, or moves it to other transceivers. `audio` and `video` say whether to forward these tracks.
    /// `alwaysHeard` says whether the audio of a client on another node arrives even while nobody here subscribes to it. Only the
    /// session's node needs that, because it chooses the active speaker. The value is not part of letters.
    case publish(
        StreamID, SessionID, by: ConnectionID, MediaMids, audio: Bool, video: Bool, alwaysHeard: Bool = false
    )
    /// Changes which tracks of the stream are forwarded.
    case update(StreamID, by: ConnectionID, audio: Bool, video: Bool)
    case unpublish(StreamID, by: ConnectionID)
    /// Starts or changes a subscription. The stream replaces any earlier stream on these transceivers.
    case subscribe(
        StreamID, SessionID, by: ConnectionID, MediaMids, audio: Bool, video: Bool,
        preferring: VideoPreference = VideoPreference()
    )
    case unsubscribe(StreamID, by: ConnectionID)
}

/// An event from the media plane. Events for machines that no longer exist are dropped.
public enum MediaEvent: Equatable, Sendable {
    case answered(ConnectionID, re: UInt64, MediaSide, sdp: String)
    case refused(ConnectionID, re: UInt64, WireError)
    /// The available bitrate of a client's connection in bits per second; nil if nothing limits it.
    case estimated(ConnectionID, re: UInt64, bitrate: Int?)
    /// The server closed its peer connection for this side of the client. The error is the reason.
    case closed(ConnectionID, MediaSide, WireError)
    /// Media can flow over this side's peer connection (true), or no longer can (false).
    case connected(ConnectionID, MediaSide, Bool)
    /// The layer of a stream's video that a subscriber receives has changed.
    case subscriptionChanged(SessionNotice.SubscriptionChanged, subscriber: ConnectionID)
    /// The quality with which the server receives a stream has changed.
    case streamQuality(SessionNotice.StreamQuality)
    /// The layers of a publisher's video that subscribers need have changed.
    case layersWanted(SessionNotice.LayersWanted, publisher: ConnectionID)
    /// The session or the whole server has reached its bandwidth limit (true), or neither is at its limit now (false).
    case full(SessionID, Bool)
    /// The active speaker of a session changed; nil if no one speaks.
    case speaking(SessionID, StreamID?)

    /// The letter that delivers this event to the state machine that handles it.
    var letter: Letter {
        switch self {
        case .answered(let client, let re, let side, let sdp):
            .client(client, .deliver(.media(.answer(.init(re: re, side: side, sdp: sdp)))))
        case .refused(let client, let re, let error):
            .client(client, .deliver(.error(.init(error, re: re))))
        case .estimated(let client, let re, let bitrate):
            .client(client, .deliver(.media(.estimate(.init(re: re, bitrate: bitrate)))))
        case .closed(let client, let side, let error):
            .client(client, .deliver(.media(.closed(.init(side: side, error)))))
        case .connected(let client, _, let isConnected): .client(client, .connected(isConnected))
        case .subscriptionChanged(let news, let subscriber):
            .session(news.session, .subscriptionChanged(news, subscriber))
        case .streamQuality(let quality): .session(quality.session, .streamQuality(quality))
        case .layersWanted(let wanted, let publisher): .session(wanted.session, .layersWanted(wanted, publisher))
        case .full(let session, let isFull): .session(session, .full(isFull))
        case .speaking(let session, let stream): .session(session, .speaking(stream))
        }
    }
}
