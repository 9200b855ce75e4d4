import Datagrams
import Foundation
import Logging
import RTC
import SFU
import Signaling
import Synchronization
import Wire

/// Records streams into files: carries out the hub's commands on a thread of its own, and reports events. It also feeds broadcasts,
/// because one thread can read the rings.
///
/// It reads the packets that the media loops copy into rings (`RecordingRing`). The thread starts with the first archive or broadcast
/// and waits while there is none, so a server that records nothing pays nothing.
final class Recorder: Sendable {
    /// The settings from the configuration, and what does not change.
    struct Settings: Sendable {
        /// The folder of all archives. It is created with the first one.
        var folder: String
        /// The largest layer that is recorded, by its height in pixels.
        var maxHeight: Int
        /// The free bytes below which no archive starts. Below half of it all archives end.
        var minFreeSpace: Int64
        /// The bytes that are reserved while archives are recorded, for completing their files when the disk is full.
        var reserve: Int64 = 16 << 20
        /// The time between two syncs of all files to the disk.
        var syncInterval: Duration
        /// The name and version of the writing program, for the files.
        var application = "Confab"
        /// The time of day.
        var wallClock: @Sendable () -> Timestamp

        var space: RecordingSpace { RecordingSpace(minimum: minFreeSpace) }
    }

    /// What other threads have left for the recorder's thread.
    private struct Inbox {
        var commands: [Command] = []
        var isRunning = false
        var isStopping = false
    }

    /// What the recorder's thread has to do next.
    private enum Command {
        case archive(RecordingCommand)
        case broadcast(BroadcastFeedCommand)
    }

    private let settings: Settings
    private let source: any RecordingSource
    private let logger: Logger
    private let report: @Sendable (RecordingEvent) -> Void
    private let inbox = Mutex(Inbox())
    private let space: SpaceGauge
    private let wake = DispatchSemaphore(value: 0)
    private let ended = DispatchSemaphore(value: 0)
    let counters = RecorderCounters()

    /// - Parameter report: called on the recorder's thread.
    init(
        _ settings: Settings, source: any RecordingSource, logger: Logger,
        report: @escaping @Sendable (RecordingEvent) -> Void
    ) {
        (self.settings, self.source, self.logger, self.report) = (settings, source, logger, report)
        space = SpaceGauge(settings.space) { RecordingFolder.freeSpace(settings.folder) }
    }

    /// Why no archive can start now; nil if one can, as far as is known. Does not block.
    var refusal: WireError? { space.isShort ? .recordingSpace : nil }

    /// Carries out a command. Commands are carried out in order. May be called on any thread.
    func send(_ command: RecordingCommand) { send(.archive(command)) }

    /// Carries out a command about a broadcast, in order with the others. May be called on any thread.
    func feed(_ command: BroadcastFeedCommand) { send(.broadcast(command)) }

    private func send(_ command: Command) {
        let mustStart = inbox.withLock { inbox in
            guard !inbox.isStopping else { return false }
            inbox.commands.append(command)
            defer { inbox.isRunning = true }
            return !inbox.isRunning
        }
        if mustStart { start() }
        wake.signal()
    }

    /// Completes the archives that a previous run has left, on the recorder's thread, and reports them. Call it before the first
    /// command.
    /// - Parameter others: further archives to report. The hub has not stored their end, although they may be complete.
    func recover(_ others: [ArchiveID] = []) {
        let recovery = RecordingRecovery(path: settings.folder, logger: logger)
        let unfinished = Set(recovery.unfinished).union(others).sorted()
        guard !unfinished.isEmpty else { return }
        inbox.withLock { $0.isRunning = true }
        start(recovering: unfinished, recovery)
    }

    /// Ends all archives, reports them, and ends the thread. Broadcasts get nothing more. Blocks for up to `ArchiveRecording.maxEnding`.
    func stop() {
        let isRunning = inbox.withLock { inbox in
            inbox.isStopping = true
            return inbox.isRunning
        }
        guard isRunning else { return }
        wake.signal()
        ended.wait()
        // A second call returns at once.
        inbox.withLock { $0.isRunning = false }
    }

    private func start(recovering unfinished: [ArchiveID] = [], _ recovery: RecordingRecovery? = nil) {
        let (settings, source, counters, logger, report) = (settings, source, counters, logger, report)
        let thread = Thread { [self] in
            setNameOfCurrentThread("confab-recorder")
            for archive in unfinished { recover(archive, recovery) }
            run(RecorderLoop(settings, source: source, counters: counters, logger: logger, report: report))
            ended.signal()
        }
        thread.start()
    }

    private func recover(_ archive: ArchiveID, _ recovery: RecordingRecovery?) {
        var result = RecordingResult()
        do {
            result = try recovery?.recover(archive) ?? result
        } catch {
            logger.error("Cannot recover an archive", metadata: ["archive": "\(archive)", "error": "\(error)"])
        }
        report(.recovered(archive, result))
    }

    private func run(_ loop: RecorderLoop) {
        while true {
            let (commands, isStopping) = inbox.withLock { inbox in
                defer { inbox.commands = [] }
                return (inbox.commands, inbox.isStopping)
            }
            // What has arrived before the commands comes before them.
            if !commands.isEmpty { loop.work() }
            for command in commands {
                switch command {
                case .archive(let command): loop.perform(command)
                case .broadcast(let command): loop.perform(command)
                }
            }
            if isStopping { loop.endAll() }
            loop.work()
            if loop.isIdle {
                if isStopping { return }
                wake.wait()
            } else {
                _ = wake.wait(timeout: .now() + loop.timeToNextLook)
            }
        }
    }
}

/// What the recorder has done, for the metrics.
final class RecorderCounters: Sendable {
    let archives = Atomic<Int>(0)
    let streams = Atomic<Int>(0)
    let bytes = Atomic<Int>(0)
}
