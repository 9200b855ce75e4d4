public import Cluster
import Signaling
import Synchronization
public import Wire

/// The events in storage that have to be delivered to webhooks. `commit` adds them, as `Change.webhook`, in the transaction of
/// the changes that they report.
///
/// Besides the events, the outbox contains what was reported as created and not yet as destroyed. The end of something whose
/// beginning was not reported is not reported either.
public protocol WebhookOutbox: Sendable {
    /// Announces the projects to which events were added.
    var webhookSignal: WebhookSignal { get }

    /// Returns the events of a project that follow an event, in the order in which they happened.
    ///
    /// - Parameter id: the number of the event before the first one; 0 starts with the oldest.
    func webhooks(of project: String, after id: Int64, limit: Int) async throws -> [WebhookEntry]

    /// Returns the event of the same session that follows an event; nil if there is none.
    func webhook(following entry: WebhookEntry) async throws -> WebhookEntry?

    /// Returns what to send for an event; nil if the event was removed.
    func webhookMessage(_ id: Int64) async throws -> WebhookMessage?

    /// Removes an event that was delivered or given up on.
    func removeWebhook(_ id: Int64) async throws

    /// Removes everything that the outbox contains for a project without a webhook, in small transactions. Does nothing if
    /// the project has a webhook.
    func removeWebhooks(of project: String) async throws

    /// Removes the events of a project that happened before a time, in small transactions.
    ///
    /// - Returns: how many were removed.
    func removeWebhooks(of project: String, before time: Timestamp) async throws -> Int

    /// Returns how many events of each project are waiting and how many were refused, keyed by project. Contains all
    /// projects that have something in the outbox.
    func webhookBacklogs() async throws -> [String: WebhookBacklog]

    /// Adds the end of everything that was reported as created and not yet as destroyed: streams, then connections,
    /// then sessions. Ends of streams and connections have the reason `networkDisconnected`. Call it when the server
    /// starts, before anyone can join a session.
    ///
    /// - Returns: the number of added events.
    @discardableResult
    func endReportedSessions(at now: Timestamp) async throws -> Int

    /// Does the same for what one life of a node of a cluster has reported: its streams and connections, and the sessions in which nobody
    /// else is connected. Call it when that life is over.
    ///
    /// - Returns: the number of added events.
    @discardableResult
    func endReportedSessions(of life: NodeTag, at now: Timestamp) async throws -> Int
}

/// The position of an event in the outbox.
public struct WebhookEntry: Hashable, Sendable {
    /// The number of the event. Later events have higher numbers, and numbers are never reused.
    public var id: Int64
    /// The API key of the project.
    public var project: String
    public var session: SessionID
    public var at: Timestamp

    public init(id: Int64, project: String, session: SessionID, at: Timestamp) {
        (self.id, self.project, self.session, self.at) = (id, project, session, at)
    }
}

/// What is sent for an event.
public struct WebhookMessage: Hashable, Sendable {
    /// A random ID, the same in every attempt to deliver the event.
    public var delivery: [UInt8]
    /// The JSON document.
    public var body: [UInt8]
}

/// How many events of a project the outbox has.
public struct WebhookBacklog: Hashable, Sendable {
    public var waiting: Int
    /// The number of events that were not stored because too many were waiting or the disk was nearly full. It starts
    /// again at 0 when the project's webhook is removed.
    public var refused: Int
}

/// Announces new events in the outbox. Bounded: it holds one entry for each project.
public final class WebhookSignal: Sendable {
    /// Whether the disk is nearly full, so that beginnings are refused. Set by `DiskMeter`.
    let isDiskLow = Atomic<Bool>(false)
    /// Yields an element after new events were stored. Elements that are not read in time are merged into one.
    let announcements: AsyncStream<Void>
    private let continuation: AsyncStream<Void>.Continuation
    private let projects = Mutex<Set<String>>([])

    init() { (announcements, continuation) = AsyncStream.makeStream(bufferingPolicy: .bufferingNewest(1)) }

    func announce(_ added: Set<String>) {
        guard !added.isEmpty else { return }
        projects.withLock { $0.formUnion(added) }
        continuation.yield()
    }

    /// Returns the projects that were announced since the last call.
    func take() -> Set<String> {
        projects.withLock { projects in
            defer { projects = [] }
            return projects
        }
    }
}
