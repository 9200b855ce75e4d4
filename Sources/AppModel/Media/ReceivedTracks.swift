/// What a peer connection receives: which transceiver belongs to a `mid`, and when the arrival of a track is complete.
///
/// An engine tells that a transceiver receives and that a receiver has a stream, in any order, and perhaps before the `mid` is
/// known. An arrival is told once both are known. ``described(_:)`` tells those that had to wait for their `mid`.
///
/// Each event of WebRTC brings new wrapper objects. When the wrapper of a receiver is released, first packets are no longer
/// reported for any wrapper of that receiver. So a track keeps its wrappers until a first packet was reported. Two wrappers of one
/// receiver are equal.
///
/// Invariant: a `mid` belongs to one track, the newest that has it.
public struct ReceivedTracks<Transceiver, Receiver: Equatable, Watcher> {
    public enum News {
        /// A track arrived. `isNew` is false if the same transceiver received before, so that it has its watcher.
        case track(mid: String, Transceiver, streamID: String?, isNew: Bool)
        case firstPacket(mid: String)
    }

    /// More tracks than any room sends. A description must not fill the memory.
    static var maxTracks: Int { 256 }
    /// Wrappers of one track. Each negotiation that restarts receiving adds one. If the oldest is dropped, a first packet may go
    /// unreported. The track itself is never lost.
    static var maxWrappers: Int { 16 }

    /// What is known about an arrival. Next: `started` or `added`, then `complete`, then `none` when it was told.
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

    private struct Track {
        var transceivers: [Transceiver] = []
        /// At least one.
        var receivers: [Receiver]
        var mid: String?
        var arrival = Arrival.none
        var isAnnounced = false
        /// Whether a first packet arrived that was not told yet.
        var hasPacket = false
        /// Whether this end made it. It is found by its `mid` before anything arrives.
        var isOwn = false
        var watcher: Watcher?

        /// Whether it only waits for something that may never come.
        var isPending: Bool { !isAnnounced && !isOwn }
    }

    private var tracks: [Track] = []

    public init() {}

    /// The number of tracks, for tests.
    var count: Int { tracks.count }
    /// The wrappers of the track with this `mid`, for tests.
    func wrapperCount(of mid: String) -> Int { tracks.first { $0.mid == mid }?.receivers.count ?? 0 }

    // MARK: Events

    /// This end has added a transceiver.
    public mutating func own(_ transceiver: Transceiver, receiver: Receiver) {
        guard let index = track(of: receiver) else { return }
        tracks[index].isOwn = true
        tracks[index].transceivers.append(transceiver)
    }

    /// A transceiver receives from now on.
    ///
    /// - Parameter mid: nil if it is not known yet.
    public mutating func start(_ transceiver: Transceiver, receiver: Receiver, mid: String?) -> [News] {
        guard var index = track(of: receiver) else { return [] }
        tracks[index].transceivers.append(transceiver)
        if tracks[index].transceivers.count > Self.maxWrappers { tracks[index].transceivers.removeFirst() }
        tracks[index].arrival.start()
        if let mid { index = name(index, mid) }
        return news(of: index)
    }

    /// A receiver has a stream from now on; nil if its description names none.
    public mutating func add(_ receiver: Receiver, streamID: String?) -> [News] {
        guard let index = track(of: receiver) else { return [] }
        tracks[index].arrival.add(streamID)
        return news(of: index)
    }

    /// The first packet arrived since the last negotiation. It is told after its track.
    public mutating func firstPacket(on receiver: Receiver) -> [News] {
        guard let index = tracks.firstIndex(where: { $0.receivers.contains(receiver) }) else { return [] }
        tracks[index].hasPacket = true
        return news(of: index)
    }

    /// A description was set: transceivers may have a `mid` now, or be stopped for good.
    public mutating func described(_ state: (Transceiver) -> (mid: String?, isStopped: Bool)) -> [News] {
        tracks.removeAll { track in track.transceivers.last.map { state($0).isStopped } ?? false }
        for index in tracks.indices {
            if let transceiver = tracks[index].transceivers.last { tracks[index].mid = state(transceiver).mid }
        }
        return tracks.indices.flatMap { news(of: $0) }
    }

    // MARK: What is known

    /// The transceiver of a `mid`; nil if there is none.
    public func transceiver(of mid: String) -> Transceiver? { tracks.last { $0.mid == mid }?.transceivers.last }

    /// Keeps what watches the track of a `mid`, for as long as the track exists.
    public mutating func watch(_ mid: String, with watcher: Watcher) {
        if let index = tracks.lastIndex(where: { $0.mid == mid }) { tracks[index].watcher = watcher }
    }

    public func watcher(of mid: String) -> Watcher? { tracks.last { $0.mid == mid }?.watcher }

    // MARK: Rules

    /// The track of a receiver, which keeps this wrapper of it, or a new one; nil if there is no place for more.
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

    /// Gives a track its `mid`. Another one that had it is over: a media section was used again.
    ///
    /// - Returns: the track's index afterwards.
    private mutating func name(_ index: Int, _ mid: String) -> Int {
        tracks[index].mid = mid
        guard let former = tracks.indices.first(where: { $0 != index && tracks[$0].mid == mid }) else { return index }
        tracks.remove(at: former)
        return former < index ? index - 1 : index
    }

    /// What can be told about a track now.
    private mutating func news(of index: Int) -> [News] {
        guard let mid = tracks[index].mid else { return [] }
        var news: [News] = []
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

    /// Drops all wrappers but the newest, now that none of them has anything to report. Only once there are many, because a new
    /// negotiation may be under way, whose report would be missing.
    private mutating func forgetWrappers(of index: Int) {
        guard tracks[index].receivers.count > Self.maxWrappers / 2 else { return }
        tracks[index].receivers.removeFirst(tracks[index].receivers.count - 1)
        tracks[index].transceivers.removeFirst(max(0, tracks[index].transceivers.count - 1))
    }
}

extension ReceivedTracks.News: Equatable where Transceiver: Equatable {}
