import RTC

/// A stream in a session: the client and the transceivers that publish it, and whether its audio and video are forwarded.
final class Publication {
    let stream: Key
    let session: String
    let client: Key
    var mids: Mids
    var forwardsAudio: Bool
    var forwardsVideo: Bool
    var subscriptions: [Key: Subscription] = [:]
    /// The recordings of the stream, by id.
    var recordings: [UInt32: RecordedStream] = [:]
    /// The track that was last used to judge the quality of the stream.
    weak var judgedTrack: FeedTrack?
    /// The quality level that was last reported.
    var reportedUplink = UplinkLevel.good
    /// Whether the stream is that of the session's active speaker.
    var isSpeaking = false
    /// Whether the audio arrives over a relay even while nobody subscribes to it, because this node chooses the session's
    /// active speaker.
    var alwaysHeard = false
    /// Whether the publisher has received an announcement of the layers needed from this video. The publisher
    /// continues to follow the announcement on later connections.
    var hasAnnouncedVideo = false

    init(stream: Key, session: String, client: Key, mids: Mids, audio: Bool, video: Bool) {
        (self.stream, self.session, self.client, self.mids) = (stream, session, client, mids)
        (forwardsAudio, forwardsVideo) = (audio, video)
    }

    func mid(_ kind: MediaKind) -> String? { kind == .audio ? mids.audio : mids.video }

    func forwards(_ kind: MediaKind) -> Bool { kind == .audio ? forwardsAudio : forwardsVideo }
}
