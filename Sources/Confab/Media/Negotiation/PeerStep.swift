import Wire

/// A transceiver that a peer connection should have. It is created again on each new connection.
struct TransceiverPlan: Equatable, Sendable {
    let id: Int
    let kind: TrackKind
    var direction: MediaDirection
    var source: MediaSource?
    var layers: [Layer] = []
    /// The RIDs of the layers to send; nil for all.
    var rids: [String]?
    var streamID: String?
}

/// Local media, compared by identity.
struct MediaSource: Equatable, Sendable {
    let media: any LocalMedia
    static func == (left: Self, right: Self) -> Bool { left.media === right.media }
}

/// Remote media, compared by identity.
struct RemoteTrack: Equatable, Sendable {
    let media: any RemoteMedia
    static func == (left: Self, right: Self) -> Bool { left.media === right.media }
}

/// An operation that a state machine requests on a peer connection. Steps are carried out one after the other.
enum PeerStep: Equatable, Sendable {
    /// Opens a connection, and closes the previous one. Reported as `opened`.
    case open([TransceiverPlan])
    case close
    case add(TransceiverPlan)
    case replace(Int, MediaSource?)
    case setDirection(Int, MediaDirection)
    case activate(Int, [String]?)
    /// Fetches ICE servers with valid credentials for the next restart.
    case refreshServers
    /// Reported as `offered`.
    case offer(restartingICE: Bool)
    /// Accepts an offer and answers it. Reported as `answered`.
    case answer(offer: String, rollingBack: Bool)
    /// Accepts an answer. Reported as `accepted`.
    case accept(answer: String)
    case candidate(PeerCandidate?)
    /// Gets the remote track of a transceiver. Reported as `found` if there is one.
    case find(mid: String)
    /// Reports the next whole frame over a transceiver as the transceiver's first frame.
    case expectFrame(mid: String)
}

/// The result of a ``PeerStep``, or an event of the connection.
enum PeerReport: Sendable {
    case opened
    /// The local offer, with the mids of all transceivers that have one, keyed by the ids of their plans.
    case offered(String, mids: [Int: String])
    case answered(String)
    case accepted
    /// `open`, `offer`, `answer` or `accept` failed.
    case failed(ConfabError)
    /// The transceiver for the plan with this number could not be added.
    case notAdded(Int, ConfabError)
    /// A transceiver sends nothing, because the engine cannot send this source.
    case notReplaced(MediaSource, ConfabError)
    case found(mid: String, RemoteTrack)
    case event(PeerEvent)
}

/// A set of deadlines, keyed by name.
struct Deadlines<Name: Hashable & Sendable>: Sendable {
    private var times: [Name: Timestamp] = [:]

    var next: Timestamp? { times.values.min() }

    subscript(name: Name) -> Timestamp? {
        get { times[name] }
        set { times[name] = newValue }
    }

    /// Removes and returns the names that are due, the earliest first.
    mutating func take(now: Timestamp) -> [Name] {
        let due = times.filter { $0.value <= now }.sorted { $0.value < $1.value }.map(\.key)
        for name in due { times[name] = nil }
        return due
    }

    mutating func removeAll() { times = [:] }
}
