import NIOCore

/// Whether the server can do its work, for `GET /ready`. `GET /health` reports only whether it is alive. A supervisor
/// restarts a server that is not alive, and a proxy sends no requests to a server that is not ready.
struct Readiness: Equatable, Sendable {
    /// A part of the server that can fail.
    enum Part: String, CaseIterable, Sendable {
        /// Ready if changes can be stored, and PostgreSQL, if it is used, can be reached.
        case storage
        /// Ready if all media loops are running, or if this server does not route media.
        case media
        /// Ready if the data directory's disk has enough free space.
        case disk
    }

    var isDraining = false
    /// The parts that are not ready.
    var failing: Set<Part> = []

    var isReady: Bool { !isDraining && failing.isEmpty }

    /// The body of the response: `{"status":"ready"}`, or another status and the parts that are not ready.
    var json: String {
        if isReady { return #"{"status":"ready"}"# }
        let parts = Part.allCases.filter(failing.contains).map { "\"\($0.rawValue)\"" }.joined(separator: ",")
        return #"{"status":"\#(isDraining ? "draining" : "unready")","parts":[\#(parts)]}"#
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
                isDraining: gateway.value.isDraining,
                failing: gateway.value.runner.writer.isUnavailable ? [.storage] : [])
        }.get()
        if !storage.isReachable { readiness.failing.insert(.storage) }
        if media?.isResponsive == false { readiness.failing.insert(.media) }
        if await !disk.hasRoom() { readiness.failing.insert(.disk) }
        return readiness
    }
}
