import Confab
import Peers
import RTC

/// Media that this engine can send.
protocol PeerMedia: LocalMedia {
    /// The RIDs of the media's simulcast layers; empty for one encoding.
    var rids: [String] { get }
    var hasVideo: Bool { get }
    /// Creates a feed that sends the media over one connection. Called on the connection's thread.
    func makeFeed(_ start: FeedStart) -> any PeerFeed
}

/// The parameters of a new feed.
struct FeedStart {
    let connection: RobotConnection
    let thread: PeerThread
    let sections: ClipPlayer.Sections
    /// The first RTP timestamps, which continue those of an earlier feed on the same tracks. Each is nil if nothing
    /// was sent on its track.
    let timestamps: ClipPlayer.Timestamps
    /// Whether simulcast layers were negotiated.
    let isLayered: Bool
}

/// Sends one `PeerMedia` over one connection. Used only on the connection's thread.
protocol PeerFeed: AnyObject {
    var media: any PeerMedia { get }
    /// The mids of the media sections to send in.
    var sections: ClipPlayer.Sections { get set }
    /// The RIDs of the layers to send; nil for all.
    var activeRIDs: Set<String>? { get set }
    /// The time at which to call `produce` next; nil for never.
    var nextDue: MediaTime? { get }
    func produce(over connection: RobotConnection, now: MediaTime)
    func keyframeWanted(of track: RobotTrack)
    /// Called whenever the connection is established, including after an interruption.
    func connected()
    func end()
}

/// All feeds of one connection.
final class PeerSource: RobotSource {
    var feeds: [any PeerFeed] = []

    var nextDue: MediaTime? { feeds.compactMap(\.nextDue).min() }

    func produce(over connection: RobotConnection, now: MediaTime) {
        for feed in feeds {
            if let due = feed.nextDue, due <= now { feed.produce(over: connection, now: now) }
        }
    }

    func keyframeWanted(of track: RobotTrack) {
        for feed in feeds { feed.keyframeWanted(of: track) }
    }

    func connected() {
        for feed in feeds { feed.connected() }
    }
}
