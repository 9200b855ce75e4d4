import Signaling
import TestSupport
import Testing
import Wire

/// A routed session of two people that can be broadcast, with a broadcaster that only notes its commands.
final class BroadcastSession {
    let stage: Stage
    let session: SessionID
    let (ada, bob): (Guest, Guest)
    private let mids = MediaMids(audio: "0", video: "1")

    /// - Parameter hasWebhook: whether the project's webhook gets events.
    init(hasWebhook: Bool = false, _ adjust: @escaping (inout Rules) -> Void = { _ in }) {
        stage = Stage { rules in
            (rules.routesMedia, rules.broadcastsSessions) = (true, true)
            (rules.recordsSessions, rules.composesArchives) = (true, true)
            adjust(&rules)
        }
        session = stage.room(.routed)
        (ada, bob) = (stage.arrive(), stage.arrive())
        guard hasWebhook else { return }
        var settings = stage.hub.hubSettings
        settings.project.hasWebhook = true
        stage.handle(.settingsChanged(settings))
    }

    func enter() {
        for (guest, name) in [(ada, "Ada"), (bob, "Bob")] { guest.enter(session, data: name, on: stage) }
        for guest in [ada, bob] { guest.take() }
    }

    func publish(_ guest: Guest) throws -> StreamID { try #require(guest.publish(session, mids: mids)).id }

    /// A request for HLS.
    func request(_ change: (inout BroadcastRequest) -> Void = { _ in }) -> BroadcastRequest {
        var request = BroadcastRequest()
        request.hls = HLSOutput()
        change(&request)
        return request
    }

    /// Starts a broadcast. Returns nil if it was refused.
    @discardableResult func start(_ change: (inout BroadcastRequest) -> Void = { _ in }) -> BroadcastRecord? {
        broadcast(of: stage.operate(.session(session, .startBroadcast(request(change)))))
    }

    /// Returns the code of the refusal of a start.
    func refusal(_ change: (inout BroadcastRequest) -> Void = { _ in }) -> WireError.Code? {
        code(of: stage.operate(.session(session, .startBroadcast(request(change)))))
    }

    func operate(_ broadcast: BroadcastID, _ operation: CompositionOperation) -> OperatorReply? {
        stage.operate(.session(session, .broadcast(broadcast, operation)))
    }

    func broadcast(of reply: OperatorReply?) -> BroadcastRecord? {
        if case .broadcast(let record)? = reply { record } else { nil }
    }
    func code(of reply: OperatorReply?) -> WireError.Code? {
        if case .refused(let error)? = reply { error.code } else { nil }
    }

    func stored(_ broadcast: BroadcastID) -> BroadcastRecord? { stage.archive.broadcasts[broadcast] }

    /// Passes the time until the broadcast begins.
    func passNotice() { stage.pass(stage.rules.recordingNotice) }

    func report(_ report: BroadcastReport) { stage.handle(.broadcast(report)) }

    /// Returns the commands for the broadcaster since the previous call, in order, such as `add Bob audio video`.
    func commands() -> [String] {
        stage.takeBroadcast().map { command in
            switch command {
            case .begin(let record): "begin \((record.request.layout ?? .usual).type)"
            case .add(_, _, let stream):
                (["add", stream.connectionData] + (stream.hasAudio ? ["audio"] : [])
                    + (stream.hasVideo ? ["video"] : [])
                    + stream.classes).joined(separator: " ")
            case .remove: "remove"
            case .setClasses(_, _, let classes): "classes \(classes.joined(separator: " "))"
            case .setLayout(_, let layout): "layout \(layout.type)"
            case .end: "end"
            }
        }
    }

    /// Returns the statuses in the outbox of webhooks, each with that over HLS and those of targets.
    var reported: [String] {
        stage.archive.outbox.compactMap { event in
            guard case .broadcast(let broadcast) = event.kind else { return nil }
            let statuses = [broadcast.hlsStatus?.rawValue].compactMap(\.self) + broadcast.rtmpStatuses.map(\.rawValue)
            return ([broadcast.status.rawValue] + statuses).joined(separator: " ")
        }
    }

    /// Returns the notices about broadcasts that a guest has got since the previous call: `started` or `stopped`, with the ID.
    func notices(_ guest: Guest) -> [String] {
        guest.take().compactMap { message in
            switch message {
            case .session(.broadcastStarted(let notice)):
                "started \(notice.broadcast.broadcast)\(notice.broadcast.asks == true ? " asks" : "")"
            case .session(.broadcastStopped(let notice)): "stopped \(notice.broadcast)"
            default: nil
            }
        }
    }
}
