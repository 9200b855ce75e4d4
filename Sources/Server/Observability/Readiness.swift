import NIOCore
import NIOHTTP1
import Wire

/// Whether new clients should come to this server, for `GET /ready`. `GET /live` and `GET /health` report only that the process
/// runs. A supervisor restarts a server that is not alive, and a load balancer sends nobody to a server that is not ready.
struct Readiness: Equatable, Sendable {
    /// Why a server that works should get no new clients. Those who are there stay.
    enum Hold: String, CaseIterable, Sendable {
        /// The server stops, or an operator takes it out of service.
        case draining
        /// The rules of this node wait, because its lease is not valid.
        case frozen
        /// This node does not have its places in the cluster yet.
        case registering
        /// Nearly all connections that the process can have are in use.
        case full

        /// What the response says, for people.
        var reason: String {
            switch self {
            case .draining: "draining: this server is being taken out of service."
            case .frozen: "frozen: this node waits until it can reach PostgreSQL again."
            case .registering: "registering: this node does not have its places in the cluster yet."
            case .full: "full: nearly all connections of this server are in use."
            }
        }
    }

    /// A part of the server that can fail.
    enum Part: String, CaseIterable, Sendable {
        /// Ready if changes can be stored, and PostgreSQL, if it is used, can be reached.
        case storage
        /// Ready if all media loops are running, or if this server does not route media.
        case media
        /// Ready if the data directory's disk has enough free space.
        case disk
    }

    var holds: Set<Hold> = []
    /// The parts that are not ready.
    var failing: Set<Part> = []

    var isReady: Bool { holds.isEmpty && failing.isEmpty }

    /// Returns the response: 404 with the reasons as plain text for a server that holds back new clients, 503 with the parts
    /// that are not ready.
    ///
    /// HAProxy with `disable-on-404` sends no new clients after a 404, and keeps those it has. After a 503, it considers the
    /// server dead, and may cut them.
    ///
    /// - Parameter keepsClients: whether to answer 404 also if parts are not ready, for a balancer that must cut nobody for
    ///   that.
    func response(keepsClients: Bool) -> GateResponse {
        guard holds.isEmpty else {
            let reasons = Hold.allCases.filter(holds.contains).map { $0.reason + "\n" }
            return GateResponse(status: 404, text: reasons.joined())
        }
        let status = failing.isEmpty ? 200 : keepsClients ? 404 : 503
        return GateResponse(status: status, type: "application/json", body: (json + "\n").utf8)
    }

    /// `{"status":"ready"}`, or the parts that are not ready.
    private var json: String {
        if failing.isEmpty { return #"{"status":"ready"}"# }
        let parts = Part.allCases.filter(failing.contains).map { "\"\($0.rawValue)\"" }.joined(separator: ",")
        return #"{"status":"unready","parts":[\#(parts)]}"#
    }
}

/// Checks whether all parts of the server are ready.
struct ReadinessCheck: Sendable {
    let gateway: NIOLoopBound<Gateway>
    let storage: any Storage
    /// The media plane; nil if this server does not route media.
    let media: MediaPlane?
    let disk: DiskSpace

    func readiness() async throws -> Readiness {
        let gateway = gateway
        var readiness = try await gateway.eventLoop.submit {
            Readiness(
                holds: gateway.value.holds, failing: gateway.value.runner.writer.isUnavailable ? [.storage] : [])
        }.get()
        if !storage.isReachable { readiness.failing.insert(.storage) }
        if media?.isResponsive == false { readiness.failing.insert(.media) }
        if await !disk.hasRoom() { readiness.failing.insert(.disk) }
        return readiness
    }
}
