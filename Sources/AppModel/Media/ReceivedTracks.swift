/// The tracks that a peer connection receives. Maps each `mid` to its transceiver, and announces each track once its
/// arrival is complete.
///
/// An engine reports two events for each track: its transceiver has begun to receive, and its receiver has a stream.
/// They come in either order, possibly before the `mid` is known. A track is announced once both events have arrived
/// and its `mid` is known. ``described(_:)`` announces the tracks that were waiting only for their `mid`.
///
/// WebRTC creates new wrapper objects for each event. Wrappers of the same receiver compare equal, but when one of
/// them is released, WebRTC stops reporting the first packet to all of them. So a track keeps its wrappers at least
/// until its first packet has been reported.
///
/// Invariant: each `mid` belongs to at most one track. If several tracks have had the same `mid`, it belongs to the
/// newest.
public struct ReceivedTracks<Transceiver, Receiver: Equatable, Watcher> {
    /// An event of a received track.
    public enum Event {
        /// A track arrived. `isNew` is false if the same transceiver received before and already has a watcher.
        case track(mid: String, Transceiver, streamID: String?, isNew: Bool)
        case firstPacket(mid: String)
    }

    /// The maximum number of tracks. It is more than any room sends, and keeps a malicious description from filling
    /// the memory.
    static var maxTracks: Int { 256 }
    /// The maximum number of wrappers of one track. Each negotiation that restarts receiving adds one. If the oldest is
    /// dropped, a first packet may go unreported, but the track itself is never lost.
    static var maxWrappers: Int { 16 }

    /// The progress of an arrival. Next: `started` or `added`, then `complete`, then `none` once it is reported.
    private enum Arrival {
        case none, started
        case added(streamID: String?)
        case complete(streamID: String?)

        mutating func start() {
            switch self {
            case .none: self = .started
            case .added(let streamID): self = .complete(streamID: streamID)
            case .started, .complete: break
            }
        }

        mutating func add(_ streamID: String?) {
            switch self {
            case .none, .added: self = .added(streamID: streamID)
            case .started, .complete: self = .complete(streamID: streamID)
            }
        }
    }

    /// A track that is being received, or whose arrival is not complete yet.
    private struct Track {
        var transceivers: [Transceiver] = []
        /// The wrappers of the track's receiver, the newest last. There is at least one.
        var receivers: [Receiver]
        var mid: String?
        var arrival = Arrival.none
        var isAnnounced = false
        /// Whether a first packet has arrived that has not been reported yet.
        var hasPacket = false
        /// Whether this peer created the track. Such a track is found by its `mid` before anything arrives.
        var isOwn = false
        var watcher: Watcher?

        /// Whether the track waits for an event that may never arrive.
        var isPending: Bool { !isAnnounced && !isOwn }
    }

    private var tracks: [Track] = []

    public init() {}

    /// The number of tracks, for tests.
    var count: Int { tracks.count }
    /// Returns the number of wrappers of the track with this `mid`, for tests.
    func wrapperCount(of mid: String) -> Int { tracks.first { $0.mid == mid }?.receivers.count ?? 0 }

    // MARK: Events

    /// Records a transceiver that this peer has added.
    public mutating func own(_ transceiver: Transceiver, receiver: Receiver) {
        guard let index = track(of: receiver) else { return }
        tracks[index].isOwn = true
        tracks[index].transceivers.append(transceiver)
    }

    /// Records that a transceiver has started receiving.
    ///
    /// - Parameter mid: nil if it is not known yet.
    public mutating func start(_ transceiver: Transceiver, receiver: Receiver, mid: String?) -> [Event] {
        guard var index = track(of: receiver) else { return [] }
        tracks[index].transceivers.append(transceiver)
        if tracks[index].transceivers.count > Self.maxWrappers { tracks[index].transceivers.removeFirst() }
        tracks[index].arrival.start()
        if let mid { index = name(index, mid) }
        return news(of: index)
    }

    /// Records that a receiver has a stream; `streamID` is nil if the remote description names none.
    public mutating func add(_ receiver: Receiver, streamID: String?) -> [Event] {
        guard let index = track(of: receiver) else { return [] }
        tracks[index].arrival.add(streamID)
        return news(of: index)
    }

    /// Records the first packet since the last negotiation. It is reported after its track.
    public mutating func firstPacket(on receiver: Receiver) -> [Event] {
        guard let index = tracks.firstIndex(where: { $0.receivers.contains(receiver) }) else { return [] }
        tracks[index].hasPacket = true
        return news(of: index)
    }

    /// Updates all tracks after a description was set: transceivers may have received a `mid`, or been stopped for
    /// good.
    public mutating func described(_ state: (Transceiver) -> (mid: String?, isStopped: Bool)) -> [Event] {
        tracks.removeAll { track in track.transceivers.last.map { state($0).isStopped } ?? false }
        for index in tracks.indices {
            if let transceiver = tracks[index].transceivers.last { tracks[index].mid = state(transceiver).mid }
        }
        return tracks.indices.flatMap { news(of: $0) }
    }

    // MARK: Lookup

    /// Returns the transceiver of a `mid`; nil if there is none.
    public func transceiver(of mid: String) -> Transceiver? { tracks.last { $0.mid == mid }?.transceivers.last }

    /// Stores the watcher of the track of a `mid` for the lifetime of the track.
    public mutating func watch(_ mid: String, with watcher: Watcher) {
        if let index = tracks.lastIndex(where: { $0.mid == mid }) { tracks[index].watcher = watcher }
    }

    public func watcher(of mid: String) -> Watcher? { tracks.last { $0.mid == mid }?.watcher }

    // MARK: Rules

    /// Returns the index of the receiver's track, which keeps this wrapper, or of a new track. If there are too many
    /// tracks, drops a pending one to make room; returns nil if none is pending.
    private mutating func track(of receiver: Receiver) -> Int? {
        if let index = tracks.firstIndex(where: { $0.receivers.contains(receiver) }) {
            tracks[index].receivers.append(receiver)
            if tracks[index].receivers.count > Self.maxWrappers { tracks[index].receivers.removeFirst() }
            return index
        }
        if tracks.count >= Self.maxTracks {
            guard let pending = tracks.firstIndex(where: \.isPending) else { return nil }
            tracks.remove(at: pending)
        }
        tracks.append(Track(receivers: [receiver]))
        return tracks.count - 1
    }

    /// Sets the `mid` of a track. If another track has the same `mid`, removes that track, because its media section
    /// was reused.
    ///
    /// - Returns: the index of the track afterwards.
    private mutating func name(_ index: Int, _ mid: String) -> Int {
        tracks[index].mid = mid
        guard let former = tracks.indices.first(where: { $0 != index && tracks[$0].mid == mid }) else { return index }
        tracks.remove(at: former)
        return former < index ? index - 1 : index
    }

    /// Returns the events of a track that can be reported now.
    private mutating func news(of index: Int) -> [Event] {
        guard let mid = tracks[index].mid else { return [] }
        var news: [Event] = []
        if case .complete(let streamID) = tracks[index].arrival, let transceiver = tracks[index].transceivers.last {
            news.append(.track(mid: mid, transceiver, streamID: streamID, isNew: !tracks[index].isAnnounced))
            (tracks[index].arrival, tracks[index].isAnnounced) = (.none, true)
        }
        if tracks[index].hasPacket, tracks[index].isAnnounced {
            news.append(.firstPacket(mid: mid))
            tracks[index].hasPacket = false
            forgetWrappers(of: index)
        }
        return news
    }

    /// Drops all wrappers except the newest, because the others have nothing left to report. Does nothing if there are
    /// only a few wrappers: an older one may belong to a negotiation in progress, whose first packet would then go
    /// unreported.
    private mutating func forgetWrappers(of index: Int) {
        guard tracks[index].receivers.count > Self.maxWrappers / 2 else { return }
        tracks[index].receivers.removeFirst(tracks[index].receivers.count - 1)
        tracks[index].transceivers.removeFirst(max(0, tracks[index].transceivers.count - 1))
    }
}

extension ReceivedTracks.Event: Equatable where Transceiver: Equatable {}
