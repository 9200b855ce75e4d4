import Datagrams
import Foundation
import Logging
import MediaFiles
import NIOPosix
import RTC
import SFU
import Signaling
import Synchronization
import Wire

/// The routers that a recorder reads from.
protocol RecordingSource: Sendable {
    /// One for each router.
    var recordingRings: [RecordingRing] { get }
    func record(_ stream: StreamID, as number: UInt32, _ request: RecordingRequest)
    func stopRecording(_ stream: StreamID, _ number: UInt32)
    func requestKeyframe(of stream: StreamID, for number: UInt32)
}

/// The state of the recorder's thread: reads the routers' rings, writes the files of all archives, and feeds all broadcasts. The
/// hub limits their numbers (`Rules.maxRunningArchives`, `Rules.maxBroadcasts`).
///
/// A slow disk delays only this thread. The rings then drop packets, which are treated as lost.
final class RecorderLoop {
    /// The number of packets after which their memory is released.
    private static let releaseInterval = 256
    /// The usual time between two looks at the rings, in seconds. A look costs as much CPU time as dozens of packets, and the
    /// rings hold the packets of seconds. A server that is killed loses what was sent since the last look.
    private static let interval = 0.25
    /// The time between two looks while a broadcast is fed or a stream ends, in seconds.
    private static let shortInterval = 0.02
    /// A file that is deleted when the disk is full, so that the archives' files can be completed.
    static let reserveName = "reserve"

    let settings: Recorder.Settings
    let logger: Logger
    let report: @Sendable (RecordingEvent) -> Void
    private let source: any RecordingSource
    private let counters: RecorderCounters
    private let readers: [RecordingRingReader]
    private let clock: () -> MediaTime
    private var folder: RecordingFolder?
    private var archives: [ArchiveID: ArchiveRecording] = [:]
    private var broadcasts: [BroadcastID: BroadcastFeed] = [:]
    /// The streams of archives and broadcasts.
    private var streams: [UInt32: any RingStream] = [:]
    private var lastNumber: UInt32 = 0
    private var spaceCheckedAt: MediaTime?
    private var syncedAt: MediaTime
    private let syncing = RecordingSyncState()
    private var isDiskFull = false
    private var hasReserve = false

    /// - Parameter clock: the clock of the packets' times of arrival.
    init(
        _ settings: Recorder.Settings, source: any RecordingSource, counters: RecorderCounters,
        clock: @escaping () -> MediaTime = { .monotonic }, logger: Logger,
        report: @escaping @Sendable (RecordingEvent) -> Void
    ) {
        (self.settings, self.source, self.counters, self.logger) = (settings, source, counters, logger)
        (self.clock, self.report) = (clock, report)
        syncedAt = clock()
        readers = source.recordingRings.map { RecordingRingReader($0) }
    }

    /// Whether nothing happens without a command.
    var isIdle: Bool { archives.isEmpty && broadcasts.isEmpty }

    var now: MediaTime { clock() }

    /// The time until the next look at the rings, in seconds.
    var timeToNextLook: Double {
        guard broadcasts.isEmpty, !archives.values.contains(where: \.isEndingStream) else { return Self.shortInterval }
        return Self.interval
    }

    func wallClock(_ time: MediaTime) -> Timestamp {
        settings.wallClock() + .nanoseconds((time - now).nanoseconds)
    }

    // MARK: Commands

    func perform(_ command: RecordingCommand) {
        let now = self.now
        switch command {
        case .begin(let id, let session, let options): begin(id, session, options, now: now)
        case .add(let id, let stream, let details): add(id, stream, details, now: now)
        case .remove(let id, let stream):
            guard let recording = archives[id]?.streams[stream] else { return }
            recording.isRemoved = true
            source.stopRecording(stream, recording.number)
        case .note(let id, let note): archives[id]?.log(.note(note), at: now)
        case .pause(let id): archives[id]?.pause(now: now)
        case .resume(let id): archives[id]?.resume(now: now)
        case .end(let id, let reason): end(id, reason, now: now)
        }
    }

    private func begin(_ id: ArchiveID, _ session: SessionID, _ options: RecordingOptions, now: MediaTime) {
        guard archives[id] == nil else { return }
        do {
            let folder = try self.folder ?? RecordingFolder(path: settings.folder)
            self.folder = folder
            guard settings.space.admits(free: freeSpace) else { return report(.failed(id, .diskFull)) }
            makeReserve(in: folder)
            archives[id] = try ArchiveRecording(id, session, options, in: folder, self)
            counters.archives.store(archives.count, ordering: .relaxed)
        } catch {
            let problem = error as? RecordingError
            logger.error("Cannot start an archive", metadata: ["error": "\(problem?.text ?? "\(error)")"])
            report(.failed(id, problem?.isDiskFull == true ? .diskFull : .cannotWrite))
        }
    }

    private func add(_ id: ArchiveID, _ stream: StreamID, _ details: RecordedStream, now: MediaTime) {
        guard let archive = archives[id] else { return }
        lastNumber &+= 1
        guard let recording = archive.add(stream, details, number: lastNumber, now: now) else { return }
        read(recording)
        let formats = VideoPayloadFormat.allCases.filter(\.isRecordable)
        source.record(
            stream, as: lastNumber,
            RecordingRequest(
                audio: archive.options.hasAudio && details.hasAudio,
                video: archive.options.hasVideo && details.hasVideo,
                maxHeight: archive.options.maxHeight ?? settings.maxHeight, formats: Set(formats)))
    }

    private func end(_ id: ArchiveID, _ reason: RecordingEnd, now: MediaTime) {
        guard let archive = archives[id], archive.ending == nil else { return }
        archive.end(reason, now: now)
        for recording in archive.streams.values { source.stopRecording(recording.stream, recording.number) }
    }

    /// Ends everything, because the server stops.
    func endAll() {
        let now = self.now
        for id in archives.keys { end(id, .serverRestarted, now: now) }
        for id in Array(broadcasts.keys) { perform(.end(id)) }
    }

    // MARK: Broadcasts

    func perform(_ command: BroadcastFeedCommand) {
        switch command {
        case .begin(let id, let settings, let sink):
            guard broadcasts[id] == nil else { return }
            broadcasts[id] = BroadcastFeed(settings, sink, source, now: now)
        case .add(let id, let stream, let details):
            guard let feed = broadcasts[id] else { return }
            lastNumber &+= 1
            if let stream = feed.add(stream, details, as: lastNumber) { read(stream) }
        case .remove(let id, let stream):
            if let removed = broadcasts[id]?.remove(stream) { forget(removed) }
        case .setClasses(let id, let stream, let classes): broadcasts[id]?.setClasses(stream, classes)
        case .setLayout(let id, let layout): broadcasts[id]?.setLayout(layout)
        case .requestKeyframe(let id, let number): broadcasts[id]?.requestKeyframe(ofNumber: number)
        case .end(let id):
            guard let feed = broadcasts.removeValue(forKey: id) else { return }
            for stream in Array(feed.streams.keys) { if let removed = feed.remove(stream) { forget(removed) } }
        }
    }

    // MARK: Work

    /// Reads what the routers have sent, and performs what is due.
    func work() {
        for reader in readers { read(reader) }
        let now = self.now
        for stream in streams.values { stream.tick(now: now) }
        finishEnded(now: now)
        checkSpace(now: now)
        sync(now: now)
    }

    private func read(_ reader: RecordingRingReader) {
        var count = 0
        while let item = reader.next() {
            let now = self.now
            switch item {
            case .packet(let packet): streams[packet.recording]?.receive(packet, now: now)
            case .message(let number, let message): streams[number]?.receive(message, now: now)
            }
            count += 1
            // Make room for the router now and then, even if it writes as fast as this thread reads.
            if count % Self.releaseInterval == 0 { reader.release() }
        }
        reader.release()
    }

    private func finishEnded(now: MediaTime) {
        for archive in archives.values {
            for recording in archive.streams.values where recording.endedRouters >= readers.count {
                archive.finish(recording, now: now)
            }
            guard let ending = archive.ending, archive.streams.isEmpty || now >= ending.deadline else { continue }
            let result = archive.finishAll(now: now)
            archives[archive.id] = nil
            counters.archives.store(archives.count, ordering: .relaxed)
            report(.ended(archive.id, ending.reason, result))
        }
        if archives.isEmpty { isDiskFull = false }
    }

    /// Begins to read a stream from the rings.
    private func read(_ stream: any RingStream) {
        streams[stream.number] = stream
        countStreams()
    }

    /// Ignores what follows of a stream.
    func forget(_ stream: any RingStream) {
        streams[stream.number] = nil
        countStreams()
    }

    private func countStreams() {
        let fed = broadcasts.values.reduce(0) { $0 + $1.streams.count }
        counters.streams.store(streams.count - fed, ordering: .relaxed)
    }

    func requestKeyframe(_ recording: StreamRecording) {
        source.requestKeyframe(of: recording.stream, for: recording.number)
    }

    func count(bytes: Int) { counters.bytes.add(bytes, ordering: .relaxed) }

    /// Syncs all files on another thread, because it may take seconds.
    private func sync(now: MediaTime) {
        guard !archives.isEmpty, now - syncedAt >= MediaInterval(settings.syncInterval) else { return }
        guard !syncing.isRunning.exchange(true, ordering: .acquiringAndReleasing) else { return }
        syncedAt = now
        let files = archives.values.flatMap(\.openFiles)
        NIOThreadPool.singleton.submit { [logger, syncing] _ in
            for file in files {
                do throws(RecordingError) {
                    try file.sync()
                } catch {
                    logger.error("Cannot sync a recording", metadata: ["error": "\(error.text)"])
                }
            }
            syncing.isRunning.store(false, ordering: .releasing)
        }
    }

    // MARK: Disk space

    private var freeSpace: Int64? { RecordingFolder.freeSpace(settings.folder) }

    private func checkSpace(now: MediaTime) {
        guard !archives.isEmpty, spaceCheckedAt.map({ now - $0 >= MediaInterval(RecordingSpace.interval) }) ?? true
        else {
            return
        }
        spaceCheckedAt = now
        if settings.space.isUsedUp(free: freeSpace) { diskIsFull() }
    }

    /// Ends all archives.
    func diskIsFull() {
        guard !isDiskFull else { return }
        isDiskFull = true
        logger.error("The disk of the recordings is full: all archives end", metadata: ["folder": "\(settings.folder)"])
        folder?.remove(Self.reserveName)
        hasReserve = false
        let now = self.now
        for archive in archives.values {
            for recording in archive.streams.values where recording.hasFailed { recording.abandon(now: now) }
        }
        for id in archives.keys { end(id, .diskFull, now: now) }
    }

    private func makeReserve(in folder: RecordingFolder) {
        guard !hasReserve, settings.reserve > 0 else { return }
        hasReserve = true
        do throws(RecordingError) {
            folder.remove(Self.reserveName)
            try folder.create(Self.reserveName).allocate(settings.reserve)
        } catch {
            logger.warning("Cannot reserve space to complete recordings", metadata: ["error": "\(error.text)"])
        }
    }
}

/// Whether a thread syncs the files now.
private final class RecordingSyncState: Sendable {
    let isRunning = Atomic(false)
}
