import Composing
import Logging
import MediaFiles
import ServiceLifecycle
import Signaling

/// Composes archives with ffmpeg, one after another, with a low priority.
///
/// When the server stops, the work that is left is done after the next start: the hub asks for it again.
final class FFmpegComposer: ArchiveComposer {
    /// What the worker does, in order.
    private enum Work {
        case check(onUnusable: @Sendable () -> Void)
        case compose(ArchiveRecord)
    }

    private let waiting: AsyncStream<Work>.Continuation
    private let worker: Task<Void, Never>

    /// Returns nil if there is no ffmpeg: then only individual archives can be recorded. Its version and its codecs are checked
    /// with each archive, and by ``check(onUnusable:)``.
    ///
    /// - Parameters:
    ///   - name: the path of ffmpeg, or the name of a command in `PATH`.
    ///   - retry: how long to wait before an archive is tried again whose disk is full, or that another process composes.
    ///   - report: receives `Input.composed` or `notComposed`. Called in no particular thread.
    init?(
        _ name: String, folder: String, logger: Logger, retry: Duration = .seconds(60),
        report: @escaping @Sendable (Input) -> Void
    ) {
        guard let ffmpeg = FFmpegInstallation.locate(name) else {
            logger.notice(
                "Composed archives are not available, because ffmpeg is missing", metadata: ["ffmpeg": "\(name)"])
            return nil
        }
        let (works, waiting) = AsyncStream.makeStream(of: Work.self)
        self.waiting = waiting
        worker = Task(priority: .background) {
            for await work in works {
                switch work {
                case .check(let onUnusable): if await !Self.isUsable(ffmpeg, logger) { onUnusable() }
                case .compose(let archive):
                    let job = Self.job(archive, in: folder, ffmpeg)
                    guard let input = await Self.run(job, archive, logger, retry: retry) else { return }
                    report(input)
                }
            }
        }
    }

    /// Checks in the background whether this ffmpeg can compose archives, because that takes longer than the start of a server
    /// should. Logs why it cannot.
    ///
    /// - Parameter onUnusable: called if it cannot, in no particular thread.
    func check(onUnusable: @escaping @Sendable () -> Void) { waiting.yield(.check(onUnusable: onUnusable)) }

    func compose(_ archive: ArchiveRecord) { waiting.yield(.compose(archive)) }

    /// Stops ffmpeg, and waits until it has ended.
    func stop() async {
        waiting.finish()
        worker.cancel()
        await worker.value
    }

    private static func isUsable(_ ffmpeg: String, _ logger: Logger) async -> Bool {
        let about: Logger.Metadata = ["setting": "compose.ffmpeg", "ffmpeg": "\(ffmpeg)"]
        do {
            let installation = try await FFmpegInstallation.find(ffmpeg)
            logger.debug("Archives are composed with ffmpeg \(installation.version)", metadata: about)
            return true
        } catch {
            // The server stops.
            if Task.isCancelled { return true }
            logger.error(
                "Composed archives are not available until ffmpeg is replaced and the server restarted. \(error)",
                metadata: about)
            return false
        }
    }

    /// Returns what has to be composed. The layout and the classes of streams are in the archive's event log.
    private static func job(_ archive: ArchiveRecord, in folder: String, _ ffmpeg: String) -> ComposeJob {
        var options = ComposeOptions()
        options.canvas = archive.request.resolution.flatMap { ArchiveCanvas($0) }
        (options.hasAudio, options.hasVideo) = (archive.request.hasAudio, archive.request.hasVideo)
        if let bitrate = archive.request.maxBitrate { options.quality = .bitrate(bitrate) }
        if let parameter = archive.request.quantization { options.quality = .quantization(parameter) }
        var job = ComposeJob(folder: "\(folder)/\(archive.id)", options: options)
        job.ffmpeg = ffmpeg
        // A file that an earlier run has finished was not reported.
        job.overwrites = true
        return job
    }

    /// Returns what to report; nil if the server stops.
    private static func run(
        _ job: ComposeJob, _ archive: ArchiveRecord, _ logger: Logger, retry: Duration
    ) async -> Input? {
        let about: Logger.Metadata = ["archive": "\(archive.id)"]
        var waitsFor: ComposeError?
        while true {
            do {
                let result = try await job.run()
                for note in result.notes { logger.notice("\(note)", metadata: about) }
                logger.info("Archive composed", metadata: about)
                return .composed(archive.id, ComposedFile(name: ArchiveFileName.composed, size: result.size))
            } catch is CancellationError {
                return nil
            } catch let error as ComposeError where error == .diskFull || error == .busy {
                // Both pass. The archive stays `stopped` until then, and later ones wait behind it.
                if waitsFor != error {
                    logger.error(
                        "An archive cannot be composed now. It is tried again every \(retry.components.seconds) s.",
                        metadata: about.merging(["error": "\(error)"]) { $1 })
                }
                waitsFor = error
                guard (try? await Task.sleep(for: retry)) != nil else { return nil }
            } catch {
                guard !Task.isCancelled else { return nil }
                logger.error(
                    "An archive could not be composed. Its files are still in its folder, for `confab compose`.",
                    metadata: about.merging(["error": "\(error)"]) { $1 })
                return .notComposed(archive.id)
            }
        }
    }
}

/// Stops composing when the server stops.
struct ComposerStop: Service {
    let composer: FFmpegComposer

    func run() async throws {
        try? await gracefulShutdown()
        await composer.stop()
    }
}
