import Cluster
import Hummingbird
import Logging
import NIOHTTP1
import Signaling
import Wire

/// The requests of OpenTok's server SDKs for archives, under `/v2/project/{apiKey}/archive` (`docs/opentok.md`).
///
/// It translates requests and responses. The archive, which is on the node of its session, decides everything else.
enum ArchiveEndpoint: Sendable {
    case start, list, describe, delete, stop, setLayout, changeStreams

    /// OpenTok's default and maximum number of archives on a page.
    private static let (usualPage, maxPage) = (50, 1000)

    func respond(_ gateway: Gateway, _ request: OpenTokRequest) async throws(WireError) -> GateResponse {
        let project = try gateway.application(of: request.http)
        switch self {
        case .start:
            let (session, start) = try request.archive()
            guard let recorder = gateway.runner.recorder else { throw .recordingUnavailable }
            guard project.mediaMode(of: session) != nil else { throw .foreignSession }
            if let refusal = recorder.refusal { throw refusal }
            return try await ask(gateway, project, session, .startArchive(start))
        case .list:
            let query = try request.listQuery(usual: Self.usualPage, maximum: Self.maxPage)
            let page = try await gateway.read {
                try await $0.archives(
                    of: project.apiKey, session: query.session, offset: query.offset, limit: query.count)
            }
            let items = page.records.map { $0.json(url: gateway.downloadURL(of: $0, project)) }
            let response = OpenTokResponse.list(items, of: page.count)
            gateway.charge(response, to: project.apiKey)
            return response
        case .describe:
            let archive = try await archive(gateway, project, request)
            return OpenTokResponse.json(archive.json(url: gateway.downloadURL(of: archive, project)))
        case .delete:
            let archive = try await archive(gateway, project, request)
            try gateway.requireHere(archive)
            guard gateway.archiveFiles?.beginChange(of: archive.id) != false else { throw .archiveChanging }
            defer { gateway.archiveFiles?.endChange(of: archive.id) }
            var found = try await self.archive(gateway, project, request)
            let isGivenUp = found.canBeGivenUp
            if isGivenUp {
                guard await gateway.giveUp(found.id) else { throw .archiveChanging }
                found = try await self.archive(gateway, project, request)
            }
            try await gateway.delete(found, isGivenUp: isGivenUp)
            return GateResponse(status: 204)
        case .stop: return try await change(gateway, project, request, .stop)
        case .setLayout: return try await change(gateway, project, request, .setLayout(try request.compositionLayout()))
        case .changeStreams:
            _ = try await change(gateway, project, request, try request.streamChange())
            return GateResponse(status: 204)
        }
    }

    private func change(
        _ gateway: Gateway, _ project: Project, _ request: OpenTokRequest, _ operation: CompositionOperation
    ) async throws(WireError) -> GateResponse {
        let archive = try await archive(gateway, project, request)
        guard archive.status.isRunning else { throw .archiveNotRunning }
        return try await ask(gateway, project, archive.session, .archive(archive.id, operation))
    }

    private func ask(
        _ gateway: Gateway, _ project: Project, _ session: SessionID, _ operation: SessionOperation
    ) async throws(WireError) -> GateResponse {
        guard case .archive(let archive) = try await gateway.runner.ask(.session(session, operation)) else {
            throw .internalError
        }
        return OpenTokResponse.json(archive.json(url: gateway.downloadURL(of: archive, project)))
    }

    /// Returns the archive in the request's path, if it belongs to the project that sent the request.
    private func archive(
        _ gateway: Gateway, _ project: Project, _ request: OpenTokRequest
    ) async throws(WireError) -> ArchiveRecord {
        guard let id = request.http.path.get("id").flatMap({ ArchiveID($0) }) else { throw .noArchive }
        let found = try await gateway.read { try await $0.archive(id) }
        guard let archive = found, archive.project == project.apiKey else { throw .noArchive }
        return archive
    }
}

extension Gateway {
    /// Reads from storage, and logs why if that fails.
    func read<Result: Sendable>(
        _ body: (any Storage) async throws -> Result
    ) async throws(WireError) -> Result {
        do {
            return try await body(storage)
        } catch {
            logger.error("Could not read from storage", metadata: ["error": "\(error)"])
            throw .storageFailed
        }
    }

    /// Ends an archive that waits to be composed.
    ///
    /// - Returns: false if it is being composed or tried now.
    fileprivate func giveUp(_ archive: ArchiveID) async -> Bool {
        await withCheckedContinuation { continuation in
            giveUp(archive) { continuation.resume(returning: $0) }
        }
    }

    /// Deletes the files of an archive, then the archive.
    ///
    /// - Parameter isGivenUp: whether the archive is no longer composed.
    fileprivate func delete(_ archive: ArchiveRecord, isGivenUp: Bool) async throws(WireError) {
        guard archive.status == .available || archive.status == .uploaded || isGivenUp && archive.status == .stopped
        else {
            throw WireError(
                .archiveConflict,
                "Only an archive that is available, or waits for ffmpeg or disk space, can be deleted. "
                    + "Its status is \(archive.status).")
        }
        var deleted = archive
        (deleted.status, deleted.updatedAt, deleted.obstacle) = (.deleted, runner.wallNow, nil)
        do {
            try await archiveFiles?.delete(archive.id)
            try await storage.commit([.archiveForgotten(archive.id)] + report(deleted))
        } catch {
            logger.error(
                "Could not delete an archive", metadata: ["archive": "\(archive.id)", "error": "\(error)"])
            throw .storageFailed
        }
    }

    /// Returns the event that reports an archive to the webhook of its project; none if the project has no webhook.
    func report(_ archive: ArchiveRecord) -> [Change] {
        guard runner.hubSettings.projects[archive.project]?.hasWebhook == true else { return [] }
        return [
            .webhook(
                WebhookEvent(
                    project: archive.project, session: archive.session, at: archive.updatedAt, .archive(archive)))
        ]
    }

    /// Throws if the files of an archive are on another node of the cluster.
    func requireHere(_ archive: ArchiveRecord) throws(WireError) {
        guard archive.node != runner.hubSettings.tag?.nodeName ?? "" else { return }
        throw WireError(
            .elsewhere, "The files of this archive are on another server of this cluster. Send the request to it.",
            retryable: true, at: archive.node.isEmpty ? nil : archive.node)
    }
}

extension WireError {
    fileprivate static let noArchive = WireError(.notFound, "This project has no archive with this ID.")
    static let foreignSession = WireError(
        .sessionInvalid, "Unknown session ID. Use one that this project created.")
    fileprivate static let archiveChanging = WireError(
        .archiveConflict, "This archive is just being composed, moved or deleted. Try again in a few seconds.",
        retryable: true)
    static let recordingUnavailable = WireError(
        .recordingUnavailable,
        "Recording is not available on this server. Its operator can turn it on (recording.enabled), if it routes media."
    )
}
