import Hummingbird
import Signaling
import Wire

/// The requests of OpenTok's server SDKs for broadcasts, under `/v2/project/{apiKey}/broadcast` (`docs/opentok.md`).
///
/// It translates requests and responses. The broadcast, which is on the node of its session, decides everything else.
enum BroadcastEndpoint: Sendable {
    case start, list, describe, stop, setLayout, changeStreams

    /// The default and maximum number of broadcasts on a page.
    private static let (usualPage, maxPage) = (50, 1000)

    func respond(_ gateway: Gateway, _ request: OpenTokRequest) async throws(WireError) -> GateResponse {
        let project = try gateway.application(of: request.http)
        switch self {
        case .start:
            // Before the body is checked: a server without a compositor refuses all of them.
            guard let broadcaster = gateway.runner.broadcaster else { throw .broadcastUnavailable }
            let (session, start) = try request.broadcast()
            guard project.mediaMode(of: session) != nil else { throw .foreignSession }
            if let refusal = broadcaster.refusal(of: start) { throw refusal }
            return try await ask(gateway, session, .startBroadcast(start))
        case .list:
            let query = try request.listQuery(usual: Self.usualPage, maximum: Self.maxPage)
            let page = try await gateway.read {
                try await $0.broadcasts(
                    of: project.apiKey, session: query.session, offset: query.offset, limit: query.count)
            }
            let response = OpenTokResponse.list(page.records.map { $0.json(at: gateway.siteURL) }, of: page.count)
            gateway.charge(response, to: project.apiKey)
            return response
        case .describe: return response(try await broadcast(gateway, project, request), gateway)
        case .stop: return try await change(gateway, project, request, .stop)
        case .setLayout: return try await change(gateway, project, request, .setLayout(try request.compositionLayout()))
        case .changeStreams:
            _ = try await change(gateway, project, request, try request.streamChange())
            return GateResponse(status: 204)
        }
    }

    private func response(_ broadcast: BroadcastRecord, _ gateway: Gateway) -> GateResponse {
        OpenTokResponse.json(broadcast.json(at: gateway.siteURL))
    }

    private func change(
        _ gateway: Gateway, _ project: Project, _ request: OpenTokRequest, _ operation: CompositionOperation
    ) async throws(WireError) -> GateResponse {
        let broadcast = try await broadcast(gateway, project, request)
        guard broadcast.status.isRunning else { throw .broadcastNotRunning }
        return try await ask(gateway, broadcast.session, .broadcast(broadcast.id, operation))
    }

    private func ask(
        _ gateway: Gateway, _ session: SessionID, _ operation: SessionOperation
    ) async throws(WireError) -> GateResponse {
        guard case .broadcast(let broadcast) = try await gateway.runner.ask(.session(session, operation)) else {
            throw .internalError
        }
        return response(broadcast, gateway)
    }

    /// Returns the broadcast in the request's path, if it belongs to the project that sent the request.
    private func broadcast(
        _ gateway: Gateway, _ project: Project, _ request: OpenTokRequest
    ) async throws(WireError) -> BroadcastRecord {
        guard let id = request.http.path.get("id").flatMap({ BroadcastID($0) }) else { throw .noBroadcast }
        let found = try await gateway.read { try await $0.broadcast(id) }
        guard let broadcast = found, broadcast.project == project.apiKey else { throw .noBroadcast }
        return broadcast
    }
}

extension Gateway {
    /// The beginning of URLs of this server; empty if `publicURL` is not set, so that URLs are relative.
    var siteURL: String { configuration.publicURL ?? "" }
}

extension WireError {
    fileprivate static let noBroadcast = WireError(.notFound, "This project has no broadcast with this ID.")
}
