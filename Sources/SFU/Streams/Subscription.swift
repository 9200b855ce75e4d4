import RTC

/// The state of a subscription's video as last reported to the client.
struct ReportedSubscription: Equatable, Sendable {
    var pause: SubscriptionReason?
    /// The index of the layer that is forwarded; nil before the first.
    var layer: Int?
    var temporalLayer: UInt8 = FeedPacket.noLayer
    var isWarned = false
    var isLimited = false
}

/// One client's subscription to a stream, and the transceivers that receive it.
final class Subscription {
    unowned let publication: Publication
    let client: Key
    var mids: Mids
    var audio: Bool
    var video: Bool
    var preference = VideoPreference()
    /// The state that was last reported to the client.
    var reported = ReportedSubscription()
    /// When a state was last reported to the client.
    var reportedAt: MediaTime?

    init(publication: Publication, client: Key, mids: Mids, audio: Bool, video: Bool) {
        (self.publication, self.client, self.mids) = (publication, client, mids)
        (self.audio, self.video) = (audio, video)
    }

    func mid(_ kind: MediaKind) -> String? { kind == .audio ? mids.audio : mids.video }

    func wants(_ kind: MediaKind) -> Bool { kind == .audio ? audio : video }

    /// Releases these transceivers, so that another subscription can use them.
    func release(_ taken: Mids) {
        let names = [taken.audio, taken.video].compactMap { $0 }
        if let mid = mids.audio, names.contains(mid) { mids.audio = nil }
        if let mid = mids.video, names.contains(mid) { mids.video = nil }
    }
}
