import Cluster
import Signaling
import Synchronization
import Wire

/// What the operator's page shows, reduced to what differs when it has changed.
struct AdminMarks: Equatable, Sendable {
    /// The time of the newest sample of figures.
    var sample: Timestamp?
    /// ``Hub/overviewMark``, and the newest change of a layer.
    var sessions: Int?
    var newestSwitch: Timestamp?
    /// The reports and the audit log, which has every ban.
    var moderation = ModerationMark()
    /// The nodes of the cluster; nil if the server is alone.
    var nodes: [Node]?

    /// The facts about a node whose change is shown at once. Its load is not among them, because it changes all the time.
    struct Node: Equatable, Sendable {
        var tag: NodeTag
        var condition: NodeCondition
        var requested: NodeRecord.State?
        var isOutOfService: Bool?
        var relays: RelayStates?

        init(_ node: NodeList.Node) {
            (tag, condition, requested) = (node.tag, node.condition, node.requested)
            (isOutOfService, relays) = (node.record?.isOutOfService, node.relays)
        }
    }

    /// The views that have changed since `earlier`, by the names of their requests; all of them if there is nothing earlier.
    func changes(since earlier: AdminMarks?) -> [String] {
        guard let earlier else {
            return ["overview", "sessions", "reports", "bans", "audit"] + (nodes == nil ? [] : ["nodes"])
        }
        var views: [String] = []
        if sample != earlier.sample { views.append("overview") }
        if (sessions, newestSwitch) != (earlier.sessions, earlier.newestSwitch) { views.append("sessions") }
        if moderation != earlier.moderation { views += ["reports", "bans", "audit"] }
        // Their load is shown as often as this server's.
        if let nodes, nodes != earlier.nodes || sample != earlier.sample { views.append("nodes") }
        return views
    }

    /// A line of the stream: the views that the page should load again.
    static func line(_ views: [String]) -> [UInt8] {
        var writer = JSONWriter()
        writer.beginObject()
        writer.name("changed")
        writer.beginArray()
        for view in views { writer.string(view) }
        writer.endArray()
        writer.endObject()
        return writer.bytes + [UInt8(ascii: "\n")]
    }
}

/// A value that many pages look at, and that is read for all of them together: at most once per interval, and never if none looks.
actor SharedReading<Value: Sendable> {
    private let interval: Duration
    private let read: @Sendable () async throws -> Value
    /// The latest reading, and when it began.
    private var latest: (at: Timestamp, task: Task<Value, any Error>)?

    /// - Parameter interval: the least time between the beginnings of two readings.
    init(every interval: Duration, _ read: @escaping @Sendable () async throws -> Value) {
        (self.interval, self.read) = (interval, read)
    }

    /// Returns the latest value, read again if that is older than the interval. If a reading fails, all pages that wait for it get the
    /// error.
    func value(at now: Timestamp) async throws -> Value {
        if let latest, now - latest.at < interval { return try await latest.task.value }
        // A task of its own: the page that happens to be the first may leave while the others wait.
        let reading = Task { [read] in try await read() }
        latest = (now, reading)
        return try await reading.value
    }
}

/// The pages that are notified of changes. Their number is limited, because each is a connection that stays open.
final class AdminWatchers: Sendable {
    /// Maximum number of pages. The others poll.
    static let maxCount = 8
    private let count = Mutex(0)

    /// One of the pages, until it is released.
    final class Place: Sendable {
        private let watchers: AdminWatchers

        fileprivate init(_ watchers: AdminWatchers) { self.watchers = watchers }

        deinit { watchers.count.withLock { $0 -= 1 } }
    }

    /// Returns a place; nil if there is none left.
    func take() -> Place? {
        let isFree = count.withLock { count in
            guard count < Self.maxCount else { return false }
            count += 1
            return true
        }
        return isFree ? Place(self) : nil
    }
}

extension WireError {
    static let tooManyWatchers = WireError(
        .rateLimited, "Too many pages are notified of changes. This one loads them every few seconds.", retryable: true,
        retryAfter: .seconds(60))
}
