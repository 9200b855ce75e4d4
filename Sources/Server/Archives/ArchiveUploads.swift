import Logging
import MediaFiles
import NIOCore
import ServiceLifecycle
import Signaling
import Wire

/// Moves complete archives to a bucket, one after another, and deletes their local files when the bucket has confirmed the size.
///
/// An archive is `available` until then, so it can be downloaded from this server while its upload waits or fails. An upload
/// continues after a restart with the parts that the bucket has: their tags are in the archive's folder.
struct ArchiveUploads: Service {
    /// How often to look for archives, and the longest pause after failures.
    private static let interval: Duration = .seconds(5)
    private static let longestPause: Duration = .seconds(600)
    /// Archives that are read at a time.
    private static let page = 100
    /// The state of an upload, in the folder of its archive.
    static let progressName = "upload.json"

    private let bucket: S3Bucket
    private let gateway: NIOLoopBound<Gateway>
    private let parts: ArchiveParts
    private let transport: any PushTransport
    private let clock: ServerClock

    /// Gives the gateway the bucket, for the URLs of downloads.
    ///
    /// - Returns: nil if no bucket is configured.
    /// - Throws: if its URL cannot be used.
    init?(
        _ settings: ConfabConfiguration.ArchiveBucket, _ gateway: NIOLoopBound<Gateway>,
        _ parts: ArchiveParts,
        _ clock: ServerClock
    ) async throws {
        guard let bucket = try S3Bucket(settings) else { return nil }
        (self.bucket, self.gateway, self.parts, self.clock) = (bucket, gateway, parts, clock)
        transport = PushConnections(S3Exchange.settings(settings))
        try await gateway.eventLoop.submit { gateway.value.archiveBucket = bucket }.get()
    }

    func run() async throws {
        await cancelWhenGracefulShutdown {
            var wait = Self.interval
            while !Task.isCancelled {
                wait = await uploadAll() ? Self.interval : min(wait * 2, Self.longestPause)
                try? await Task.sleep(for: wait)
            }
        }
        await transport.close()
    }

    /// Uploads all complete archives of this node.
    ///
    /// - Returns: false if one could not be uploaded.
    func uploadAll() async -> Bool {
        var isFine = true
        do {
            let limit = clock.moment.wall + .seconds(86400)
            let complete = try await parts.storage.archivesToExpire(
                availableBefore: limit, node: parts.node, limit: Self.page)
            for archive in complete where !Task.isCancelled {
                // Archives of deleted projects are deleted soon.
                let project = archive.project
                guard
                    try await gateway.eventLoop.submit({
                        gateway.value.runner.hubSettings.projects[project] != nil
                    }).get()
                else { continue }
                do {
                    try await upload(archive)
                } catch {
                    if Task.isCancelled { break }
                    isFine = false
                    parts.logger.error(
                        "An archive could not be uploaded. It stays on this server, and is tried again",
                        metadata: ["archive": "\(archive.id)", "reason": "\(error)"])
                }
            }
        } catch {
            parts.logger.error("Could not read archives to upload", metadata: ["error": "\(error)"])
            return false
        }
        return isFine
    }

    private func upload(_ archive: ArchiveRecord) async throws {
        let content = try await ArchiveContent(archive, parts.files)
        let clock = clock
        let exchange = S3Exchange(
            bucket: bucket, key: bucket.key(of: archive), transport: transport, now: { clock.wallNow },
            pause: { try await Task.sleep(for: $0) })
        var upload = S3Upload(size: content.size, progress: await progress(of: archive.id))
        var step = S3Upload.Step.send(upload.first)
        while case .send(let request) = step {
            try Task.checkCancellation()
            var body: [UInt8] = []
            if case .part(_, _, let range) = request {
                body.reserveCapacity(range.count)
                try await content.read(range) { body += $0.readableBytesView }
            }
            let before = upload.progress
            step = upload.handle(try await exchange.answer(request, body: body))
            if let progress = upload.progress, progress != before {
                try await parts.files.write(Self.progressName, of: archive.id, progress.json)
            }
        }
        if case .failed(let reason) = step { throw S3Exchange.Failure(description: reason) }
        try await finish(archive, exchange)
    }

    private func progress(of archive: ArchiveID) async -> S3Upload.Progress? {
        guard let bytes = try? await parts.files.readAll(Self.progressName, of: archive),
            case .object(let members)? = try? JSONReader.parse(bytes)
        else { return nil }
        return try? S3Upload.Progress(members: members)
    }

    /// Stores and reports that the archive is in the bucket, then deletes its local files.
    private func finish(_ archive: ArchiveRecord, _ exchange: S3Exchange) async throws {
        // It may have been deleted or have expired while it was uploaded.
        guard try await parts.storage.archive(archive.id)?.status == .available else {
            return try await exchange.delete()
        }
        var uploaded = archive
        (uploaded.status, uploaded.updatedAt) = (.uploaded, clock.wallNow)
        let record = uploaded
        let reports = try await gateway.eventLoop.submit { gateway.value.report(record) }.get()
        try await parts.storage.commit([.archiveStored(record)] + reports)
        try await parts.files.delete(archive.id)
        parts.logger.info(
            "Archive uploaded", metadata: ["archive": "\(archive.id)", "key": "\(exchange.key)"])
    }
}
