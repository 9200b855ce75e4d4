import Foundation
import Logging
import NIOCore
import ServiceLifecycle
import Signaling
import Wire

/// Makes the recorder, which reports its events with the function that it gets. Returns nil if the server does not record.
typealias RecorderFactory = @Sendable (_ report: @escaping @Sendable (RecordingEvent) -> Void) -> (any SessionRecorder)?

/// What a server needs for archives, besides its rules: the recorder, the files, and what is left of an earlier run.
struct ArchiveParts: Sendable {
    let storage: any Storage
    let files: ArchiveFiles
    /// The name of this node of a cluster; empty without a cluster.
    let node: String
    let logger: Logger

    init(storage: any Storage, folder: String, node: String, logger: Logger) {
        (self.storage, files) = (storage, ArchiveFiles(folder: folder))
        (self.node, self.logger) = (node, logger)
    }

    /// Restores the archives that were not finished when the server stopped, then starts the recorder, which reports the files
    /// that it has recovered. Without a recorder, downloads of earlier archives still work.
    ///
    /// - Returns: the recorder; nil if this server does not record.
    func start(
        on gateway: NIOLoopBound<Gateway>, _ makeRecorder: RecorderFactory
    ) async throws -> (any SessionRecorder)? {
        let files = files
        let unfinished = try await storage.unfinishedArchives(of: node)
        let restored = unfinished.map { Input.restoredArchive($0, hasFiles: files.hasFolder(of: $0.id)) }
        try await gateway.eventLoop.submit {
            gateway.value.archiveFiles = files
            for input in restored { gateway.value.runner.submit(input) }
        }.get()
        if !restored.isEmpty { logger.info("Archives restored", metadata: ["count": "\(restored.count)"]) }
        let made = makeRecorder { [logger] event in
            if case .streamFailed(let archive, let stream, let failure) = event {
                logger.warning(
                    "Stopped recording a stream",
                    metadata: ["archive": "\(archive)", "stream": "\(stream)", "reason": "\(failure)"])
            }
            gateway.eventLoop.execute { gateway.value.runner.submit(.recording(event)) }
        }
        guard let recorder = made else {
            try await report(unfinished, to: gateway)
            return nil
        }
        try await gateway.eventLoop.submit { gateway.value.record(with: recorder) }.get()
        recorder.recover(unfinished.map(\.id).filter(files.hasFolder))
        return recorder
    }

    /// Without a recorder, reports the archives that the recorder of an earlier run has completed.
    private func report(_ archives: [ArchiveRecord], to gateway: NIOLoopBound<Gateway>) async throws {
        for archive in archives {
            guard let result = try? await files.completed(archive.id) else { continue }
            try await gateway.eventLoop.submit {
                gateway.value.runner.submit(.recording(.recovered(archive.id, result)))
            }.get()
        }
    }
}

extension Gateway {
    /// Makes sessions recordable.
    fileprivate func record(with recorder: any SessionRecorder) {
        runner.recorder = recorder
        var settings = runner.hubSettings
        settings.rules.recordsSessions = true
        runner.submit(.settingsChanged(settings))
    }

    /// Composes archives that have stopped. Call this before archives are restored, because they may have to be composed.
    ///
    /// - Parameter isAvailable: whether composed archives can be started. Those that have stopped wait until they can be composed.
    func compose(with composer: any ArchiveComposer, isAvailable: Bool) {
        runner.composer = composer
        offerComposedArchives(isAvailable)
    }

    /// Ends an archive that waits to be composed (`ArchiveRecord.canBeGivenUp`), so that it can be deleted. Read its record again
    /// afterward, because it may have been composed meanwhile.
    ///
    /// - Parameter whenStored: called with true when all changes to the archive are stored. Called with false if it is being composed or
    ///   tried now.
    func giveUp(_ archive: ArchiveID, whenStored: @escaping (Bool) -> Void) {
        guard runner.composer?.giveUp(archive) != false else { return whenStored(false) }
        runner.submit(.archiveGivenUp(archive))
        runner.afterCommit { whenStored(true) }
    }

    /// Sets whether composed archives can be started.
    func offerComposedArchives(_ isAvailable: Bool) {
        var settings = runner.hubSettings
        settings.rules.composesArchives = isAvailable
        runner.submit(.settingsChanged(settings))
    }
}

/// Ends all recordings when the server stops, and waits until their ends are stored.
struct RecorderStop: Service {
    let recorder: any SessionRecorder
    let gateway: NIOLoopBound<Gateway>

    func run() async throws {
        try await gracefulShutdown()
        let recorder = recorder
        await withCheckedContinuation { done in
            let thread = Thread {
                recorder.stop()
                done.resume()
            }
            thread.start()
        }
        // What the recorder reported is handled before this.
        await withCheckedContinuation { done in
            gateway.eventLoop.execute {
                // The recorder keeps the gateway, because it reports to it.
                gateway.value.runner.recorder = nil
                gateway.value.runner.afterCommit { done.resume() }
            }
        }
    }
}
