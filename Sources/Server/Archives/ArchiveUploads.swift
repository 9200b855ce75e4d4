import Logging
import MediaFiles
import NIOCore
import ServiceLifecycle
import Signaling
import Wire

/// Moves complete archives to a bucket, one after another (`UploadOrder`), and deletes their local files when the bucket has confirmed the size.
///
/// An archive is `available` until then, so it can be downloaded from this server while its upload waits or fails. An upload
/// continues after a restart with the parts that the bucket has: their tags are in the archive's folder.
struct ArchiveUploads: Service {
    /// How often to look for archives.
    private static let interval: Duration = .seconds(5)
    /// How long to wait before asking again whether a deletion is complete, which takes milliseconds.
    private static let turnPause: Duration = .milliseconds(100)
    /// The state of an upload, in the folder of its archive.
    static let progressName = "upload.json"
    /// Says that the bucket has the archive. In the folder of an archive whose local files are being deleted.
    static let uploadedName = "uploaded.json"

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
            await deleteLeftovers()
            var order = UploadOrder()
            var wait = Self.interval
            while !Task.isCancelled {
                do {
                    // More may have become complete during an upload.
                    if try await uploadNext(&order) { continue }
                    wait = Self.interval
                } catch {
                    parts.logger.error("Could not read archives to upload", metadata: ["error": "\(error)"])
                    wait = min(wait * 2, UploadOrder.longestPause)
                }
                try? await Task.sleep(for: wait)
            }
        }
        await transport.close()
    }

    /// Uploads complete archives of this node.
    ///
    /// - Returns: whether one was uploaded.
    /// - Throws: if the archives could not be read.
    private func uploadNext(_ order: inout UploadOrder) async throws -> Bool {
        // All of them, even those from when the clock was ahead.
        let complete = try await parts.storage.archivesToExpire(
            availableBefore: Timestamp(milliseconds: .max), node: parts.node, limit: order.limit)
        var isOneUploaded = false
        for archive in order.next(of: complete, now: .now) where !Task.isCancelled {
            // Archives of deleted projects are deleted soon.
            let project = archive.project
            guard
                try await gateway.eventLoop.submit({
                    gateway.value.runner.hubSettings.projects[project] != nil
                }).get()
            else { continue }
            do {
                try await upload(archive)
                isOneUploaded = true
            } catch {
                if Task.isCancelled { break }
                order.failed(archive.id, now: .now)
                parts.logger.error(
                    "An archive could not be uploaded. It stays on this server, and is tried again",
                    metadata: ["archive": "\(archive.id)", "reason": "\(error)"])
            }
        }
        return isOneUploaded
    }

    private func upload(_ archive: ArchiveRecord) async throws {
        let clock = clock
        let exchange = S3Exchange(
            bucket: bucket, key: bucket.key(of: archive), transport: transport, now: { clock.wallNow },
            pause: { try await Task.sleep(for: $0) })
        var begun: S3Upload.Progress?
        do {
            try await send(archive, exchange, &begun)
        } catch {
            guard !Task.isCancelled else { throw error }
            switch try await status(of: archive.id) {
            case .available: throw error
            // Another process has uploaded it.
            case .uploaded: return
            // It was deleted or has expired while it was uploaded, so its files are gone.
            default:
                return await cleanUp(exchange) {
                    if let begun { try await exchange.abort(begun.upload) }
                    try await exchange.delete()
                }
            }
        }
        try await finish(archive, exchange)
    }

    /// Uploads an archive.
    ///
    /// - Parameter progress: how far the upload is; nil before it begins and after it is complete.
    private func send(
        _ archive: ArchiveRecord, _ exchange: S3Exchange, _ progress: inout S3Upload.Progress?
    ) async throws {
        let content = try await reading { try await ArchiveContent(archive, parts.files) }
        progress = await self.progress(of: archive.id)
        var upload = S3Upload(size: content.size, progress: progress)
        // The archive has changed, or an earlier version began the upload: nothing continues it.
        if let abandoned = progress, upload.progress == nil { try? await exchange.abort(abandoned.upload) }
        var step = S3Upload.Step.send(upload.first)
        while case .send(let request) = step {
            try Task.checkCancellation()
            var body: [UInt8] = []
            if case .part(_, _, let range) = request {
                body.reserveCapacity(range.count)
                try await reading { try await content.read(range) { body += $0.readableBytesView } }
            }
            step = upload.handle(try await exchange.answer(request, body: body))
            guard upload.progress != progress else { continue }
            progress = upload.progress
            if let progress { try await parts.files.write(Self.progressName, of: archive.id, progress.json) }
        }
        if case .failed(let reason) = step { throw S3Exchange.Failure(description: reason) }
    }

    /// Says where the error is: the text of `ArchiveFiles` is for people who download archives.
    private func reading<Value>(_ body: () async throws -> Value) async throws -> Value {
        do {
            return try await body()
        } catch is WireError {
            throw S3Exchange.Failure(description: "a file in the archive's folder is missing, too short or unreadable")
        }
    }

    /// Returns nil if the archive was deleted.
    private func status(of archive: ArchiveID) async throws -> ArchiveStatus? {
        try await parts.storage.archive(archive)?.status
    }

    /// Removes what the bucket has of an archive that was deleted.
    private func cleanUp(_ exchange: S3Exchange, _ remove: () async throws -> Void) async {
        do {
            try await remove()
            parts.logger.info(
                "An archive was deleted while it was uploaded. The bucket has nothing of it",
                metadata: ["key": "\(exchange.key)"])
        } catch {
            parts.logger.error(
                "An archive was deleted while it was uploaded, but could not be removed from the bucket. Remove it there",
                metadata: ["key": "\(exchange.key)", "reason": "\(error)"])
        }
    }

    private func progress(of archive: ArchiveID) async -> S3Upload.Progress? {
        guard let bytes = try? await parts.files.readAll(Self.progressName, of: archive),
            case .object(let members)? = try? JSONReader.parse(bytes)
        else { return nil }
        return try? S3Upload.Progress(members: members)
    }

    /// Stores and reports that the archive is in the bucket, then deletes its local files.
    private func finish(_ archive: ArchiveRecord, _ exchange: S3Exchange) async throws {
        // An application may be deleting it. Then the object has to be removed.
        while !parts.files.beginChange(of: archive.id) { try await Task.sleep(for: Self.turnPause) }
        defer { parts.files.endChange(of: archive.id) }
        switch try await status(of: archive.id) {
        case .available: break
        // By another process, for example a server that was replaced before it had ended. The bucket may have the only copy.
        case .uploaded: return
        default: return await cleanUp(exchange) { try await exchange.delete() }
        }
        var uploaded = archive
        (uploaded.status, uploaded.updatedAt) = (.uploaded, clock.wallNow)
        let record = uploaded
        let reports = try await gateway.eventLoop.submit { gateway.value.report(record) }.get()
        try await parts.storage.commit([.archiveStored(record)] + reports)
        parts.logger.info(
            "Archive uploaded", metadata: ["archive": "\(archive.id)", "key": "\(exchange.key)"])
        await deleteFiles(of: archive.id)
    }

    private func deleteFiles(of archive: ArchiveID) async {
        await note(archive)
        do {
            try await parts.files.delete(archive)
        } catch {
            // Some files may be gone, and the note with them.
            await note(archive)
            parts.logger.error(
                "Could not delete the local files of an archive that is in the bucket. The next start tries it again",
                metadata: ["archive": "\(archive)", "error": "\(error)"])
        }
    }

    /// Writes into an archive's folder that the bucket has it. On a full disk, the files are deleted without this.
    private func note(_ archive: ArchiveID) async {
        try? await parts.files.write(Self.uploadedName, of: archive, Array("{}".utf8))
    }

    /// Deletes the local files of archives that are in the bucket. An earlier run of the server has stored that, but was stopped before
    /// it had deleted them, or could not delete them.
    private func deleteLeftovers() async {
        do {
            let uploaded = Set(try await parts.files.archives(with: Self.uploadedName))
            let begun = try await parts.files.archives(with: Self.progressName)
            for id in uploaded.union(begun).sorted() where !Task.isCancelled {
                if let archive = try await parts.storage.archive(id) {
                    guard archive.node == parts.node, archive.status == .uploaded else { continue }
                } else {
                    // Without its record, nothing else says that these are not the only files of the archive.
                    guard uploaded.contains(id) else { continue }
                }
                await deleteFiles(of: id)
            }
        } catch {
            parts.logger.error(
                "Could not look for local files of archives that are in the bucket", metadata: ["error": "\(error)"])
        }
    }
}
