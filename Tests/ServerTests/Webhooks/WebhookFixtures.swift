import Signaling
import Wire

@testable import Server

/// Events and targets for tests of webhooks.
enum WebhookSamples {
    static let project = "1000"
    static let secret = "a secret of a webhook with 32 bytes!"
    static let at = Timestamp(milliseconds: 1_700_000_000_123)
    static let session = SessionID("1_session")!
    static let connection = ConnectionInfo(
        id: ConnectionID(high: 1, low: 2), createdAt: at - .seconds(60), data: #"name="Ann" \ ☕"#)

    static var stream: StreamInfo {
        var stream = StreamInfo()
        (stream.id, stream.connection) = (StreamID(high: 3, low: 4), connection.id)
        (stream.createdAt, stream.name, stream.videoType) = (at - .seconds(30), "Ann's\ncamera", .camera)
        return stream
    }

    static func event(
        _ kind: WebhookEvent.Kind, _ session: SessionID = session, project: String = project, at time: Timestamp = at
    ) -> WebhookEvent {
        WebhookEvent(project: project, session: session, at: time, kind)
    }

    static func connection(_ number: Int) -> ConnectionInfo {
        ConnectionInfo(id: ConnectionID(high: 9, low: UInt64(number)), createdAt: at, data: "")
    }

    /// The events of one visit, in order.
    static func visit(_ number: Int, session: SessionID = session, project: String = project) -> [WebhookEvent] {
        let connection = connection(number)
        return [
            .sessionCreated, .connectionCreated(connection), .connectionDestroyed(connection, .clientDisconnected),
            .sessionDestroyed,
        ].map { event($0, session, project: project) }
    }
}

/// The webhooks of projects, in memory.
actor TargetsDouble: WebhookTargets {
    private var targets: [String: WebhookTarget]

    init(_ targets: [String: WebhookTarget]) { self.targets = targets }

    func set(_ target: WebhookTarget?, of project: String) { targets[project] = target }

    func webhooks() async throws -> [String: WebhookTarget] { targets }
    func webhook(of project: String) async throws -> WebhookTarget? { targets[project] }
}
