import Wire

/// What the machines ask of the media plane, to be carried out in order with their other effects.
///
/// Every `publish` of a stream is followed by exactly one `unpublish`; every `subscribe` of a stream by a connection is
/// ended by one `unsubscribe`, or by the stream's `unpublish`; and nothing names a client after its `leave`.
public enum MediaCommand: Equatable, Sendable {
    /// To be answered with `MediaEvent.answered` or `refused`, once.
    case offer(ConnectionID, re: UInt64, MediaSide, sdp: String)
    case close(ConnectionID, MediaSide)
    /// The client connection is gone: both its peer connections end.
    case leave(ConnectionID)
    /// A stream begins, or is carried by other transceivers from now on. `audio` and `video` say what of it is
    /// forwarded.
    case publish(StreamID, SessionID, by: ConnectionID, MediaMids, audio: Bool, video: Bool)
    /// Other parts of it are forwarded from now on.
    case update(StreamID, audio: Bool, video: Bool)
    case unpublish(StreamID)
    /// A subscription begins, or changes. What an earlier stream put into these transceivers gives way.
    case subscribe(
        StreamID, SessionID, by: ConnectionID, MediaMids, audio: Bool, video: Bool,
        preferring: VideoPreference = VideoPreference()
    )
    case unsubscribe(StreamID, by: ConnectionID)
}

/// What the media plane tells the machines. Whoever is gone meanwhile is told nothing.
public enum MediaEvent: Equatable, Sendable {
    case answered(ConnectionID, re: UInt64, MediaSide, sdp: String)
    case refused(ConnectionID, re: UInt64, WireError)
    /// The server's end of this side is no more.
    case closed(ConnectionID, MediaSide, WireError)
    /// Media can flow over this side's connection now, or cannot any more.
    case connected(ConnectionID, MediaSide, Bool)
    case videoPaused(StreamID, SessionID, subscriber: ConnectionID, paused: Bool, reason: PauseReason)
    /// Which of a publisher's simulcast layers anybody wants, by their rids.
    case layersWanted(StreamID, SessionID, publisher: ConnectionID, rids: [String])
    /// Who speaks in a session now, or that nobody does.
    case speaking(SessionID, StreamID?)

    /// To the machine it concerns.
    var letter: Letter {
        switch self {
        case .answered(let client, let re, let side, let sdp):
            .client(client, .deliver(.media(.answer(.init(re: re, side: side, sdp: sdp)))))
        case .refused(let client, let re, let error):
            .client(client, .deliver(.error(.init(error, re: re))))
        case .closed(let client, let side, let error):
            .client(client, .deliver(.media(.closed(.init(side: side, error)))))
        case .connected(let client, _, let isConnected): .client(client, .connected(isConnected))
        case .videoPaused(let stream, let session, let subscriber, let paused, let reason):
            .session(session, .videoPaused(stream, subscriber, paused, reason))
        case .layersWanted(let stream, let session, let publisher, let rids):
            .session(session, .layersWanted(stream, publisher, rids))
        case .speaking(let session, let stream): .session(session, .speaking(stream))
        }
    }
}
