import DequeModule
import Signaling
import Wire

/// What the operator's page shows of media: the latest changes of layers with their reasons, and how well the server
/// receives each stream. It observes the events that the media plane sends to the rules.
struct AdminMediaLog: Sendable {
    /// Changes of layers that are kept, of all sessions.
    static let maxSwitches = 200
    /// Streams whose quality is kept. Beyond it, the qualities of all streams are forgotten, and reported again when they
    /// change.
    static let maxStreams = 10_000

    /// A change of the video layer that a subscriber receives.
    struct Switch: Equatable, Sendable {
        var at: Timestamp
        var subscriber: ConnectionID
        var change: SessionNotice.SubscriptionChanged
    }

    private var kept: Deque<Switch> = []
    /// The oldest first.
    var switches: [Switch] { Array(kept) }
    /// When a layer last changed; nil if none has.
    var newestSwitch: Timestamp? { kept.last?.at }
    private var qualities: [StreamID: SessionNotice.StreamQuality] = [:]

    mutating func note(_ event: MediaEvent, at now: Timestamp) {
        switch event {
        case .subscriptionChanged(let change, let subscriber):
            if kept.count >= Self.maxSwitches { kept.removeFirst() }
            kept.append(Switch(at: now, subscriber: subscriber, change: change))
        case .streamQuality(let quality):
            // A stream without an entry is good.
            guard quality.level != .good else {
                qualities[quality.stream] = nil
                return
            }
            if qualities[quality.stream] == nil, qualities.count >= Self.maxStreams { qualities = [:] }
            qualities[quality.stream] = quality
        default: return
        }
    }

    /// Returns how well the server receives this stream; nil if nothing impairs it.
    func quality(of stream: StreamID) -> SessionNotice.StreamQuality? { qualities[stream] }

    /// Returns the latest change of a layer that this connection receives; nil if there was none lately.
    func lastSwitch(of subscriber: ConnectionID) -> Switch? { kept.last { $0.subscriber == subscriber } }
}

extension Gateway {
    /// Notes an event of the media plane, if the operator's page is on.
    func noteForAdmin(_ event: MediaEvent) {
        if configuration.admin.port != nil { adminMedia.note(event, at: runner.wallNow) }
    }
}
