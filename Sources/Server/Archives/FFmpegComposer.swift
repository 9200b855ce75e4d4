import Composing
import Logging
import MediaFiles
import ServiceLifecycle
import Signaling
import Synchronization
import Wire

/// Composes archives with ffmpeg, one after another, with a low priority (`ComposeQueue`). If none waits, it composes settled chunks of
/// archives that are being recorded, so that little is left to do when they stop.
///
/// When the server stops, the work that is left is done after the next start: the hub asks for it again. Without ffmpeg, archives wait
/// until it is installed.
final class FFmpegComposer: ArchiveComposer {
    /// What the worker has to do.
    fileprivate final class Waiting: Sendable {
        let archives = Mutex(ComposeQueue())
        /// Called if ffmpeg cannot compose; nil if it was checked, or need not be.
        let onUnusable = Mutex<(@Sendable () -> Void)?>(nil)
    }

    /// What the composer learns from the machine. Tests replace it.
    struct Surroundings: Sendable {
        var now: @Sendable () -> ContinuousClock.Instant = { .now }
        /// Waits until a time. Throws if the task is canceled.
        var sleep: @Sendable (_ time: ContinuousClock.Instant) async throws -> Void = { time in
            try await Task.sleep(until: time, clock: .continuous)
        }
        /// The free space on the disk of a folder, in bytes; nil if it cannot be measured.
        var freeSpace: @Sendable (_ folder: String) -> Int64? = { RecordingFolder.freeSpace($0) }
    }

    /// Whether there was a command of this name at the start. If not, only individual archives can be started.
    let isInstalled: Bool
    private let waiting: Waiting
    private let wake: AsyncStream<Void>.Continuation
    private let worker: Task<Void, Never>
    private let surroundings: Surroundings

    /// Looks for ffmpeg. Its version and its codecs are checked with each archive, and by ``check(onUnusable:)``.
    ///
    /// - Parameters:
    ///   - name: the path of ffmpeg, or the name of a command in `PATH`.
    ///   - minFreeSpace: with fewer free bytes, archives are not composed while they are recorded, because recordings need the space.
    ///   - retry: how long to wait before an archive is tried again that cannot be composed now.
    ///   - wallClock: the time of day, by the clock of the recorder.
    ///   - report: receives `Input.composed`, `notComposed` and `composingWaits`. Called in no particular thread.
    init(
        _ name: String, folder: String, minFreeSpace: Int64 = 0, logger: Logger, retry: Duration = .seconds(60),
        surroundings: Surroundings = Surroundings(), wallClock: @escaping @Sendable () -> Timestamp,
        report: @escaping @Sendable (Input) -> Void
    ) {
        let isInstalled = FFmpegInstallation.locate(name) != nil
        if !isInstalled {
            logger.notice(
                "Composed archives are not available, because ffmpeg is missing", metadata: ["ffmpeg": "\(name)"])
        }
        let (signals, wake) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
        let waiting = Waiting()
        (self.isInstalled, self.waiting, self.wake) = (isInstalled, waiting, wake)
        self.surroundings = surroundings
        let loop = ComposeLoop(
            waiting: waiting, ffmpeg: name, folder: folder, space: RecordingSpace(minimum: minFreeSpace),
            logger: logger, retry: retry, surroundings: surroundings, wallClock: wallClock, report: report)
        worker = Task(priority: .background) { await loop.run(signals, wake) }
    }

    /// Checks in the background whether the ffmpeg that was found can compose archives, because that takes longer than the start of a
    /// server should. Logs why it cannot. Does nothing if none was found.
    ///
    /// - Parameter onUnusable: called if it cannot, in no particular thread.
    func check(onUnusable: @escaping @Sendable () -> Void) {
        guard isInstalled else { return }
        waiting.onUnusable.withLock { $0 = onUnusable }
        wake.yield()
    }

    func composeAhead(_ archive: ArchiveRecord) {
        let now = surroundings.now()
        waiting.archives.withLock { $0.appendRecorded(archive, now: now) }
        wake.yield()
    }

    func compose(_ archive: ArchiveRecord) {
        waiting.archives.withLock { $0.append(archive) }
        wake.yield()
    }

    func giveUp(_ archive: ArchiveID) -> Bool { waiting.archives.withLock { $0.giveUp(archive) } }

    /// Stops ffmpeg, and waits until it has ended.
    func stop() async {
        wake.finish()
        worker.cancel()
        await worker.value
        // Keeps what it refers to.
        waiting.onUnusable.withLock { $0 = nil }
    }
}

/// The work of a composer, in its task.
private struct ComposeLoop: Sendable {
    let waiting: FFmpegComposer.Waiting
    /// The path of ffmpeg, or the name of a command in `PATH`. It is looked for with each archive.
    let ffmpeg: String
    /// Looks for it with each chunk of an archive that is being recorded.
    let finder = FFmpegFinder()
    /// The folder of all archives.
    let folder: String
    let space: RecordingSpace
    let logger: Logger
    let retry: Duration
    let surroundings: FFmpegComposer.Surroundings
    let wallClock: @Sendable () -> Timestamp
    let report: @Sendable (Input) -> Void

    private var now: ContinuousClock.Instant { surroundings.now() }

    /// - Parameter signals: one after each change of `waiting`.
    func run(_ signals: AsyncStream<Void>, _ wake: AsyncStream<Void>.Continuation) async {
        var timer: Task<Void, Never>?
        for await _ in signals {
            timer?.cancel()
            timer = nil
            await check()
            while !Task.isCancelled {
                if let archive = waiting.archives.withLock({ $0.begin(now: now) }) {
                    await compose(archive)
                } else if let chunk = waiting.archives.withLock({ $0.beginChunk(now: now) }) {
                    await composeAhead(chunk)
                } else {
                    break
                }
            }
            guard let time = waiting.archives.withLock({ $0.nextTime(now: now) }) else { continue }
            timer = Task {
                guard (try? await surroundings.sleep(time)) != nil else { return }
                wake.yield()
            }
        }
        timer?.cancel()
    }

    private func check() async {
        let onUnusable = waiting.onUnusable.withLock { onUnusable in
            defer { onUnusable = nil }
            return onUnusable
        }
        guard let onUnusable else { return }
        let about: Logger.Metadata = ["setting": "compose.ffmpeg", "ffmpeg": "\(ffmpeg)"]
        do {
            let installation = try await FFmpegInstallation.find(ffmpeg)
            logger.debug("Archives are composed with ffmpeg \(installation.version)", metadata: about)
        } catch {
            // The server stops.
            guard !Task.isCancelled else { return }
            logger.error(
                "Composed archives are not available until ffmpeg is replaced and the server restarted. \(error)",
                metadata: about)
            onUnusable()
        }
    }

    /// Composes an archive, unless it has to wait.
    private func compose(_ archive: ArchiveRecord) async {
        let about: Logger.Metadata = ["archive": "\(archive.id)"]
        let input: Input
        do {
            let result = try await job(archive).run { _ in resume(archive.id) }
            for note in result.notes { logger.notice("\(note)", metadata: about) }
            logger.info("Archive composed", metadata: about)
            resume(archive.id)
            input = .composed(archive.id, ComposedFile(name: ArchiveFileName.composed, size: result.size))
        } catch {
            // The server stops. The hub asks for it again.
            guard !Task.isCancelled else { return }
            if let obstacle = (error as? ComposeError).flatMap({ ComposingObstacle($0) }) {
                return postpone(archive.id, obstacle, "\(error)")
            }
            logger.error(
                "An archive could not be composed. Its files are still in its folder, for `confab compose`.",
                metadata: about.merging(["error": "\(error)"]) { $1 })
            input = .notComposed(archive.id)
        }
        waiting.archives.withLock { $0.remove(archive.id) }
        report(input)
    }

    /// Composes a chunk of an archive that is being recorded, if it is settled. A failure is left to the end of the archive.
    private func composeAhead(_ chunk: RecordedArchives.Chunk) async {
        let begin = now
        var outcome = RecordedArchives.Outcome.failed
        if space.admits(free: surroundings.freeSpace(folder)) {
            do {
                outcome = .step(
                    try await job(chunk.archive).compose(chunk: chunk.index, at: wallClock(), finder: finder))
            } catch {
                // The server stops.
                guard !Task.isCancelled else { return }
                logger.debug(
                    "A part of an archive could not be composed while it is recorded",
                    metadata: ["archive": "\(chunk.archive.id)", "error": "\(error)"])
            }
        }
        let end = now
        waiting.archives.withLock { $0.endChunk(chunk, outcome, after: end - begin, now: end) }
    }

    private func postpone(_ archive: ArchiveID, _ obstacle: ComposingObstacle, _ error: String) {
        let changed = waiting.archives.withLock { $0.postpone(archive, obstacle, until: now + retry) }
        guard !changed.isEmpty else { return }
        logger.error(
            "Archives cannot be composed now. They wait, and are tried again every \(retry.components.seconds) s.",
            metadata: ["archive": "\(archive)", "count": "\(changed.count)", "error": "\(error)"])
        for archive in changed { report(.composingWaits(archive, obstacle)) }
    }

    /// Called when ffmpeg has encoded a part of an archive, and after its end.
    private func resume(_ archive: ArchiveID) {
        for archive in waiting.archives.withLock({ $0.resume(archive) }) { report(.composingWaits(archive, nil)) }
    }

    /// Returns what has to be composed. The layout and the classes of streams are in the archive's event log.
    private func job(_ archive: ArchiveRecord) -> ComposeJob {
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
}

/// Stops composing when the server stops.
struct ComposerStop: Service {
    let composer: FFmpegComposer

    func run() async throws {
        try? await gracefulShutdown()
        await composer.stop()
    }
}
