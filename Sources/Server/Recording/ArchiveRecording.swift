import Logging
import MediaFiles
import RTC
import SFU
import Signaling
import Wire

/// An archive that is being recorded: its folder, its event log, its recorded time and its streams.
///
/// It belongs to the recorder's thread.
final class ArchiveRecording {
    /// The maximum number of streams that are recorded at the same time, as OpenTok's.
    static let maxStreams = 50
    /// How often streams of one publisher are added. Each time begins a file. Without this limit, a member who publishes again and
    /// again, or withdraws and gives consent, could fill the folder, the event log and the manifest.
    static let maxAddedOfPublisher = 200
    /// How often streams of all publishers are added.
    static let maxAdded = 5_000
    /// How long the streams may take to end after the archive, before their files are completed without what is missing. Media
    /// loops answer within milliseconds.
    static let maxEnding = MediaInterval.seconds(2)

    let id: ArchiveID
    let session: SessionID
    let options: RecordingOptions
    let folder: RecordingFolder
    let application: String
    let logger: Logger
    private let recorder: RecorderLoop
    private let events: RecordingFile
    private(set) var streams: [StreamID: StreamRecording] = [:]
    /// Why the archive ends, and when it ends at the latest; nil while it is recorded.
    private(set) var ending: (reason: RecordingEnd, deadline: MediaTime)?
    private var files: [RecordedFile] = []
    private var fileCounts: [StreamID: Int] = [:]
    /// How often streams were added, in all and by publisher.
    private var added = 0
    private var addedOf: [ConnectionID: Int] = [:]
    /// When the first packet arrived: the recorded time is 0.
    private var began: MediaTime?
    private var pausedAt: MediaTime?
    private var paused = MediaInterval.zero
    private var lastLogged = Duration.zero

    init(
        _ id: ArchiveID, _ session: SessionID, _ options: RecordingOptions, in parent: RecordingFolder,
        _ recorder: RecorderLoop
    ) throws(RecordingError) {
        (self.id, self.session, self.options, self.recorder) = (id, session, options, recorder)
        (application, logger) = (recorder.settings.application, recorder.logger)
        folder = try parent.folder("\(id)", creating: true)
        events = try folder.create(ArchiveFileName.log)
        log(.opening(id, session, options), at: recorder.now)
    }

    var openFiles: [RecordingFile] { [events] + streams.values.compactMap(\.openFile) }

    /// Whether a stream, or the whole archive, ends as soon as the routers have sent what is left.
    var isEndingStream: Bool { ending != nil || streams.values.contains(where: \.isRemoved) }

    // MARK: Time

    /// Records that a packet arrived. With the first one the recorded time begins.
    func noteArrival(_ time: MediaTime) {
        guard began == nil else { return }
        began = time
        let wall = wallClock(time)
        log(.began(at: wall), at: time)
        recorder.report(.began(id, at: wall))
    }

    func wallClock(_ time: MediaTime) -> Timestamp { recorder.wallClock(time) }

    /// The recorded time. It stands still during pauses.
    private func recordedTime(_ time: MediaTime) -> Duration {
        guard let began else { return .zero }
        let end = pausedAt.map { min($0, time) } ?? time
        return .nanoseconds(max(0, (end - began - paused).nanoseconds))
    }

    func pause(now: MediaTime) {
        guard pausedAt == nil, ending == nil else { return }
        log(.pause(at: wallClock(now)), at: now)
        pausedAt = now
    }

    func resume(now: MediaTime) {
        guard let since = pausedAt else { return }
        pausedAt = nil
        // The time before the first packet does not count anyway.
        if let began { paused = MediaInterval(nanoseconds: paused.nanoseconds + (now - max(since, began)).nanoseconds) }
        log(.resume(at: wallClock(now)), at: now)
    }

    // MARK: Streams

    func add(_ stream: StreamID, _ details: RecordedStream, number: UInt32, now: MediaTime) -> StreamRecording? {
        // The routers have not confirmed the end of the former recording. What they still send of it is ignored.
        if let former = streams[stream], former.isRemoved { finish(former, now: now) }
        guard ending == nil, streams[stream] == nil else { return nil }
        let former = addedOf[details.publisher, default: 0]
        guard streams.count < Self.maxStreams, former < Self.maxAddedOfPublisher, added < Self.maxAdded else {
            recorder.report(.streamFailed(id, stream, .tooMany))
            return nil
        }
        added += 1
        addedOf[details.publisher] = former + 1
        let recording = StreamRecording(number: number, stream, details, self)
        streams[stream] = recording
        log(.beginning(stream, details), at: now)
        return recording
    }

    /// Completes a stream of which nothing follows.
    func finish(_ recording: StreamRecording, now: MediaTime) {
        if !recording.wasPublished, !recording.isRemoved, ending == nil {
            log(.failure(recording.stream, .notPublished), at: now)
            recorder.report(.streamFailed(id, recording.stream, .notPublished))
        }
        recording.finish(now: now)
        // After an error, what was written of the file is completed.
        recording.abandon(now: now)
        streams[recording.stream] = nil
        log(.gone(stream: "\(recording.stream)"), at: now)
        recorder.forget(recording)
    }

    /// A file of the stream cannot be written. Only a full disk concerns the other streams too.
    func failed(_ recording: StreamRecording, _ error: RecordingError, now: MediaTime) {
        logger.error("Cannot record a stream", metadata: ["archive": "\(id)", "error": "\(error.text)"])
        guard !error.isDiskFull else { return recorder.diskIsFull() }
        log(.failure(recording.stream, .cannotWrite), at: now)
        recording.abandon(now: now)
        recorder.report(.streamFailed(id, recording.stream, .cannotWrite))
    }

    func requestKeyframe(of recording: StreamRecording) { recorder.requestKeyframe(recording) }

    /// Returns a name for the stream's next file.
    func nextName(of stream: StreamID, _ codec: ArchivedFile.Codec) -> String {
        let count = fileCounts[stream, default: 0]
        fileCounts[stream] = count + 1
        return ArchiveFileName.of(stream: "\(stream)", index: count, codec: codec)
    }

    func add(_ file: RecordingFile, of recording: StreamRecording, from start: MediaTime, to end: MediaTime) {
        let size = file.size
        files.append(
            RecordedFile(
                stream: recording.stream, name: file.name, size: size, start: recordedTime(start),
                stop: recordedTime(end), connectionData: recording.details.connectionData,
                videoType: recording.details.videoType))
        log(.fileEnd(stream: "\(recording.stream)", name: file.name, size: size), at: end)
    }

    func count(bytes: Int) { recorder.count(bytes: bytes) }

    // MARK: The event log

    /// Logs that a file begins, which is known seconds later: other events may have been logged meanwhile.
    func logBeginning(of file: ArchivedFile, at time: MediaTime) {
        var file = file
        let start = recordedTime(time)
        if start.wholeMilliseconds < lastLogged.wholeMilliseconds { file.start = start }
        log(.file(file), at: time)
    }

    func log(_ event: MediaFiles.ArchiveEvent, at time: MediaTime) {
        lastLogged = max(lastLogged, recordedTime(time))
        let end = events.size
        do throws(RecordingError) {
            try events.apply(.append(ArchiveLogLine(event, at: lastLogged).bytes))
        } catch {
            // A part of a line would spoil the next one, which may be the last.
            try? events.apply(.truncate(end))
            guard !error.isDiskFull else { return recorder.diskIsFull() }
            logger.error("Cannot write the log of an archive", metadata: ["error": "\(error.text)"])
        }
    }

    // MARK: The end

    func end(_ reason: RecordingEnd, now: MediaTime) {
        guard ending == nil else { return }
        ending = (reason, now + Self.maxEnding)
    }

    /// Completes all files, and writes the manifest, which marks the archive as complete.
    func finishAll(now: MediaTime) -> RecordingResult {
        for recording in streams.values.sorted(by: { $0.number < $1.number }) { finish(recording, now: now) }
        let reason = ending?.reason ?? .requested
        let last = files.map(\.stop).max() ?? .zero
        let result = RecordingResult(began: began.map(wallClock), duration: last, files: files)
        log(.end(reason: reason.rawValue), at: now)
        do throws(RecordingError) {
            try events.sync()
            try folder.replace(
                ArchiveFileName.manifest, ArchiveManifest(id, session, options, result, reason).json)
        } catch {
            logger.error("Cannot write the manifest of an archive", metadata: ["error": "\(error.text)"])
        }
        return result
    }
}
