import Wire

/// A recording of a session: when it begins, which streams it contains, and when it ends.
///
/// It does not write files (the recorder does), and does not know who is in the session (the session tells it).
/// Invariants: nothing is recorded before the members were notified and `Rules.recordingNotice` has passed. With
/// `RecordingConsent.ask`, only streams of members who accepted are recorded. Each change of the status is stored before it
/// is reported.
public struct Archive: Machine, Equatable, Sendable {
    enum Phase: Equatable, Sendable {
        /// The members were notified. Recording begins at this time. → recording, over
        case announced(until: Timestamp)
        /// The recorder records the streams, if there are any. → finishing
        case recording
        /// The recorder completes the files. → composing, over
        case finishing
        /// The streams are being composed into one file. → over
        case composing
        case over
    }

    private(set) var record: ArchiveRecord
    private(set) var phase: Phase
    /// The streams of the session, and which of them the recorder records.
    var streams = ChosenStreams()
    /// The recorded time before `recordingSince`.
    private var recorded = Duration.zero
    /// When the recorded time began or continued; nil while it stands still.
    private var recordingSince: Timestamp?
    /// When the archive stops at the latest.
    private var until: Timestamp
    /// When the archive stops because nobody is connected; nil while there is a connection.
    private var emptyUntil: Timestamp?
    /// When the archive stops because nothing is recorded; nil while something is.
    private var idleUntil: Timestamp?
    /// Whether the machine counts in `Context.runningArchives`.
    private var isCounted = false

    static func make(_ id: ArchiveID, for event: ArchiveEvent, _ context: inout Context) -> Archive? {
        switch event {
        case .begin(let record, _, _), .restore(let record, _): Archive(record, context)
        default: nil
        }
    }

    static func orphan(_ event: ArchiveEvent, _ id: ArchiveID, _ context: inout Context) {
        if case .operated(_, let requester) = event { context.refuse(requester, .archiveNotRunning) }
    }

    private init(_ record: ArchiveRecord, _ context: Context) {
        self.record = record
        phase = .announced(until: context.now + context.rules.recordingNotice)
        until = context.now + context.rules.maxArchiveAge
    }

    var isOver: Bool { phase == .over }
    private var id: ArchiveID { record.id }

    /// The state for metrics.
    var state: ArchiveState {
        switch phase {
        case .announced: .announced
        case .recording: record.status == .paused ? .paused : .recording
        case .finishing, .over: .finishing
        case .composing: .composing
        }
    }

    // MARK: Time

    var nextTimeout: Timestamp? {
        switch phase {
        case .announced(let begin): [begin, emptyUntil].compactMap(\.self).min()
        case .recording: [until, emptyUntil, idleUntil, timeUntil].compactMap(\.self).min()
        case .finishing, .composing, .over: nil
        }
    }

    /// When the archive reaches its maximum recorded time.
    private var timeUntil: Timestamp?

    mutating func handleTimeout(_ context: inout Context) {
        let now = context.now
        func isDue(_ time: Timestamp?) -> Bool { time.map { $0 <= now } ?? false }
        switch phase {
        case .announced(let begin):
            if isDue(emptyUntil) { return stop(.sessionEnded, &context) }
            if isDue(begin) { beginRecording(&context) }
        case .recording:
            if isDue(until) || isDue(timeUntil) { return stop(.maxDuration, &context) }
            if isDue(emptyUntil) { return stop(.sessionEnded, &context) }
            if isDue(idleUntil) { stop(.idle, &context) }
        case .finishing, .composing, .over: break
        }
    }

    // MARK: Events

    mutating func handle(_ event: ArchiveEvent, _ context: inout Context) {
        switch event {
        case .begin(_, let present, let accepted):
            begin(present, accepted, &context)
        case .restore(_, let hasFiles): restore(hasFiles, &context)
        case .session(let news): handle(news, &context)
        case .operated(let operation, let requester): perform(operation, requester, &context)
        case .recording(let event): handle(event, &context)
        case .composed(let file):
            guard phase == .composing else { return }
            (record.composed, record.obstacle) = (file, nil)
            if file == nil { record.reason = ArchiveRecord.encodingFailed }
            end(file == nil ? .failed : .available, &context)
        case .composingWaits(let obstacle):
            guard phase == .composing, record.obstacle != obstacle else { return }
            record.obstacle = obstacle
            store(&context)
        case .givenUp:
            // The shell stores the end.
            if phase == .composing { phase = .over }
        case .notStored: abandon(&context)
        }
    }

    private mutating func begin(
        _ present: [SessionStream], _ accepted: Set<ConnectionID>, _ context: inout Context
    ) {
        streams = ChosenStreams(present, consent: context.rules.recordingConsent, accepted: accepted)
        setCounted(true, &context)
    }

    private mutating func restore(_ hasFiles: Bool, _ context: inout Context) {
        phase = .finishing
        if record.status.isRunning {
            record.reason = RecordingEnd.serverRestarted.rawValue
            set(.stopped, &context)
        }
        // The recorder reports a folder that it has recovered. Without one, it has nothing to report.
        if record.files.isEmpty, !hasFiles { end(.failed, &context) } else if !record.files.isEmpty { finish(&context) }
    }

    private mutating func handle(_ news: SessionNews, _ context: inout Context) {
        switch news {
        case .connections(let count):
            guard count == 0 else { return emptyUntil = nil }
            emptyUntil = emptyUntil ?? context.now + context.rules.archiveWait
        case .published(let stream):
            streams.insert(stream)
            update(&context)
        case .unpublished(let stream):
            if streams.remove(stream) { context.record(.remove(id, stream)) }
            record.selection.removeAll { $0.stream == stream }
            update(&context)
        case .classes(let stream, let classes):
            guard streams.setClasses(classes, of: stream), phase == .recording else { return }
            context.record(.note(id, .classes(stream, classes)))
        case .consent(let client, let accepts):
            streams.setConsent(accepts, of: client)
            update(&context)
        case .ended: stop(.sessionEnded, &context)
        }
    }

    private mutating func handle(_ event: RecordingEvent, _ context: inout Context) {
        switch event {
        case .began(_, at: let time):
            guard record.beganAt == nil, phase == .recording else { return }
            record.beganAt = time
            context.persist(.archiveStored(record))
        case .ended(_, let reason, let result):
            if phase == .recording { stopped(reason, &context) }
            complete(result, &context)
        case .recovered(_, let result): complete(result, &context)
        case .failed(_, let failure):
            if phase == .recording { leaveSession(nil, &context) }
            guard phase == .recording || phase == .finishing else { return }
            record.reason = record.reason ?? failure.phrase
            end(.failed, &context)
        case .streamFailed(_, let stream, _):
            streams.fail(stream)
            update(&context)
        }
    }

    /// The recorder has completed the files.
    private mutating func complete(_ result: RecordingResult, _ context: inout Context) {
        guard phase == .finishing else { return }
        (record.files, record.duration) = (result.files, result.duration)
        record.beganAt = result.began ?? record.beganAt
        finish(&context)
    }

    private mutating func finish(_ context: inout Context) {
        guard !record.files.isEmpty else { return end(.failed, &context) }
        guard record.request.output == .composed else { return end(.available, &context) }
        // After a restart, it may not wait again.
        (phase, record.obstacle) = (.composing, nil)
        // Store the files, so that a restart does not look for them again.
        context.persist(.archiveStored(record))
        context.compose(record)
    }

    // MARK: Recording

    private mutating func beginRecording(_ context: inout Context) {
        phase = .recording
        let request = record.request
        context.record(
            .begin(
                id, record.session,
                RecordingOptions(
                    hasAudio: request.hasAudio, hasVideo: request.hasVideo, name: request.name, project: record.project,
                    createdAt: record.createdAt)))
        if request.output == .composed {
            noteLayout(&context)
            // Audio is mixed at the end, in one pass.
            if request.hasVideo { context.composeAhead(record) }
        }
        // The archive of a session that is always recorded begins before anyone can publish.
        idleUntil = context.now + (request.isAutomatic ? context.rules.maxArchivePause : context.rules.archiveWait)
        update(&context)
    }

    func noteLayout(_ context: inout Context) {
        let layout = record.request.layout ?? CompositionLayout.usual
        context.record(
            .note(
                id,
                .layout(layout.type, stylesheet: layout.stylesheet, screenshareType: layout.screenshareType)))
    }

    /// Adds and removes streams, so that the recorder records what should be recorded. Pauses and resumes the archive.
    mutating func update(_ context: inout Context) {
        guard phase == .recording else { return }
        for stream in streams.excludeUnwanted(in: record) { context.record(.remove(id, stream)) }
        let isActive = streams.isActive(in: record)
        if isActive { resume(&context) }
        for stream in streams.includeWanted(in: record) { context.record(.add(id, stream.id, stream.details)) }
        if !isActive { pause(&context) }
    }

    mutating func remove(_ stream: StreamID, _ context: inout Context) {
        context.record(.remove(id, stream))
        streams.exclude(stream)
    }

    private mutating func resume(_ context: inout Context) {
        guard recordingSince == nil else { return }
        (recordingSince, idleUntil) = (context.now, nil)
        timeUntil = context.now + (context.rules.maxArchiveTime - recorded)
        guard record.status == .paused else { return }
        context.record(.resume(id))
        set(.started, &context)
    }

    private mutating func pause(_ context: inout Context) {
        guard let since = recordingSince else { return }
        recorded += context.now - since
        (recordingSince, timeUntil) = (nil, nil)
        idleUntil = context.now + context.rules.maxArchivePause
        context.record(.pause(id))
        set(.paused, &context)
    }

    // MARK: Ending

    mutating func stop(_ reason: RecordingEnd, _ context: inout Context) {
        switch phase {
        case .announced:
            stopped(reason, &context)
            end(.failed, &context)
        case .recording:
            stopped(reason, &context)
            context.record(.end(id, reason))
        case .finishing, .composing, .over: break
        }
    }

    private mutating func stopped(_ reason: RecordingEnd, _ context: inout Context) {
        leaveSession(reason, &context)
        phase = .finishing
        record.reason = reason.rawValue
        set(.stopped, &context)
    }

    /// Notifies the session that it is no longer recorded.
    ///
    /// - Parameter reason: nil after an error.
    private mutating func leaveSession(_ reason: RecordingEnd?, _ context: inout Context) {
        setCounted(false, &context)
        context.tell(.session(record.session, .archiveStopped(id, reason)))
    }

    private mutating func end(_ status: ArchiveStatus, _ context: inout Context) {
        phase = .over
        set(status, &context)
    }

    /// Ends the archive after a change to it could not be stored. What was recorded stays on the disk: a restart finds it,
    /// if the start of the archive was stored.
    private mutating func abandon(_ context: inout Context) {
        if case .announced = phase { leaveSession(nil, &context) }
        if phase == .recording {
            leaveSession(nil, &context)
            context.record(.end(id, .requested))
        }
        phase = .over
    }

    private mutating func setCounted(_ isCounted: Bool, _ context: inout Context) {
        guard isCounted != self.isCounted else { return }
        self.isCounted = isCounted
        context.runningArchives += isCounted ? 1 : -1
    }

    /// Stores and reports a new status.
    private mutating func set(_ status: ArchiveStatus, _ context: inout Context) {
        (record.status, record.updatedAt) = (status, context.wallNow)
        store(&context)
        guard context.projects[record.project]?.hasWebhook == true else { return }
        context.persist(
            .webhook(
                WebhookEvent(
                    project: record.project, session: record.session, at: context.wallNow, .archive(record))))
    }

    func store(_ context: inout Context) { context.persist(.archiveStored(record)) }
}

extension Archive {
    mutating func change(_ change: (inout ArchiveRecord) -> Void) { change(&record) }
}

extension ArchiveRecord {
    static let encodingFailed = "encoding failed"
}

extension RecordingFailure {
    /// The failure as the reason of an archive.
    var phrase: String {
        switch self {
        case .disabled: "recording disabled"
        case .cannotCompose: "composing unavailable"
        case .diskFull: RecordingEnd.diskFull.rawValue
        case .tooMany: "too many archives"
        case .cannotWrite: "cannot write files"
        case .notPublished: "session not routed"
        case .unsupportedCodec: "unsupported codec"
        }
    }
}
