import Wire

/// A live broadcast of a session: when it begins, which streams it contains, and when it ends.
///
/// It composes and sends nothing (the shell does, by `BroadcastCommand`), and does not know who is in the session (the session
/// reports it as `SessionNews`).
/// Invariants: nothing is broadcast before the members were notified and `Rules.recordingNotice` has passed. With
/// `RecordingConsent.ask`, only streams of members who accepted are broadcast. Each change of a status is stored before it is
/// reported.
public struct Broadcast: Machine, Equatable, Sendable {
    enum Phase: Equatable, Sendable {
        /// The members were notified. The broadcast begins at this time. → live, over
        case announced(until: Timestamp)
        /// The shell composes the streams until this time at the latest. → ending, over
        case live(until: Timestamp)
        /// The broadcast has ended for the members and in storage. The shell sends what is left of it. → over
        case ending
        case over
    }

    private var record: BroadcastRecord
    private(set) var phase: Phase
    /// The streams of the session, and which of them the shell composes.
    private var streams = ChosenStreams()
    /// When the broadcast ends because no client is connected; nil while one is.
    private var emptyUntil: Timestamp?
    /// Whether the machine counts in `Context.runningBroadcasts`.
    private var isCounted = false

    static func make(_ id: BroadcastID, for event: BroadcastEvent, _ context: inout Context) -> Broadcast? {
        switch event {
        case .begin(let record, _, _), .restore(let record): Broadcast(record, context)
        default: nil
        }
    }

    static func orphan(_ event: BroadcastEvent, _ id: BroadcastID, _ context: inout Context) {
        if case .operated(_, let socket) = event { context.answer(socket, .refused(.broadcastNotRunning)) }
    }

    private init(_ record: BroadcastRecord, _ context: Context) {
        self.record = record
        phase = .announced(until: context.now + context.rules.recordingNotice)
    }

    var isOver: Bool { phase == .over }
    private var id: BroadcastID { record.id }

    private var isLive: Bool {
        if case .live = phase { true } else { false }
    }

    // MARK: Time

    var nextTimeout: Timestamp? {
        switch phase {
        case .announced(let time), .live(let time): [time, emptyUntil].compactMap(\.self).min()
        case .ending, .over: nil
        }
    }

    mutating func handleTimeout(_ context: inout Context) {
        switch phase {
        case .announced, .live:
            if let emptyUntil, emptyUntil <= context.now { return stop(.sessionEnded, &context) }
        case .ending, .over: return
        }
        switch phase {
        case .announced(let time) where time <= context.now: goLive(&context)
        case .live(let time) where time <= context.now: stop(.maxDuration, &context)
        default: break
        }
    }

    // MARK: Events

    mutating func handle(_ event: BroadcastEvent, _ context: inout Context) {
        switch event {
        case .begin(_, let present, let accepted):
            streams = ChosenStreams(present, consent: context.rules.recordingConsent, accepted: accepted)
            setCounted(true, &context)
        case .restore:
            if record.status.isRunning { end(.stopped, RecordingEnd.serverRestarted.rawValue, &context) }
            phase = .over
        case .session(let news): handle(news, &context)
        case .operated(let operation, let socket):
            do throws(WireError) {
                try perform(operation, &context)
                context.answer(socket, .broadcast(record))
            } catch {
                context.answer(socket, .refused(error))
            }
        case .reported(let report): handle(report, &context)
        case .notStored: abandon(&context)
        }
    }

    private mutating func handle(_ news: SessionNews, _ context: inout Context) {
        switch news {
        case .connections(let count):
            guard count == 0 else { return emptyUntil = nil }
            emptyUntil = emptyUntil ?? context.now + context.rules.broadcastWait
        case .published(let stream):
            streams.insert(stream)
            update(&context)
        case .unpublished(let stream):
            if streams.remove(stream) { context.broadcast(.remove(id, stream)) }
            record.selection.removeAll { $0.stream == stream }
            // Another stream may take its place.
            update(&context)
        case .classes(let stream, let classes):
            guard streams.setClasses(classes, of: stream), streams.isIncluded(stream) else { return }
            context.broadcast(.setClasses(id, stream, classes))
        case .consent(let client, let accepts):
            streams.setConsent(accepts, of: client)
            update(&context)
        case .ended: stop(.sessionEnded, &context)
        }
    }

    private mutating func perform(
        _ operation: CompositionOperation, _ context: inout Context
    ) throws(WireError) {
        guard record.status.isRunning else { throw .broadcastNotRunning }
        switch operation {
        case .stop: return stop(.requested, &context)
        case .setLayout(let layout):
            record.request.layout = layout
            if isLive { context.broadcast(.setLayout(id, layout)) }
        case .addStream(let selected):
            guard try record.select(selected, of: streams, max: context.rules.streamsPerArchive) else { return }
            if streams.isIncluded(selected.stream) {
                streams.exclude(selected.stream)
                context.broadcast(.remove(id, selected.stream))
            }
        case .removeStream(let stream): try record.deselect(stream)
        }
        update(&context)
        context.persist(.broadcastStored(record))
    }

    private mutating func handle(_ report: BroadcastReport, _ context: inout Context) {
        switch report {
        case .hls(_, let status):
            guard isLive, let former = record.hlsStatus, former != status else { return }
            record.hlsStatus = status
            store(&context)
        case .rtmp(_, let target, let status):
            guard isLive, record.rtmpStatuses.indices.contains(target), record.rtmpStatuses[target] != status else {
                return
            }
            record.rtmpStatuses[target] = status
            store(&context)
        case .ended:
            // The shell ends broadcasts by itself only when the server stops.
            guard isLive || phase == .ending else { return }
            if isLive { end(.stopped, RecordingEnd.serverRestarted.rawValue, &context) }
            phase = .over
        case .failed(_, let failure):
            guard isLive || phase == .ending else { return }
            if isLive { end(.failed, failure.rawValue, &context) }
            phase = .over
        }
    }

    // MARK: Composing

    private mutating func goLive(_ context: inout Context) {
        phase = .live(until: context.now + record.request.maxDuration)
        context.broadcast(.begin(record))
        update(&context)
    }

    /// Adds and removes streams, so that the shell composes what should be broadcast.
    private mutating func update(_ context: inout Context) {
        guard isLive else { return }
        for stream in streams.excludeUnwanted(in: record) { context.broadcast(.remove(id, stream)) }
        for stream in streams.includeWanted(in: record, limit: BroadcastRecord.maxStreams) {
            context.broadcast(.add(id, stream.id, stream.details))
        }
    }

    // MARK: Ending

    private mutating func stop(_ reason: RecordingEnd, _ context: inout Context) {
        switch phase {
        case .announced:
            end(.stopped, reason.rawValue, &context)
            phase = .over
        case .live:
            end(.stopped, reason.rawValue, &context)
            context.broadcast(.end(id))
            phase = .ending
        case .ending, .over: break
        }
    }

    /// Stores and reports that viewers and targets get nothing more.
    private mutating func end(_ status: BroadcastStatus, _ reason: String, _ context: inout Context) {
        leaveSession(&context)
        (record.status, record.reason) = (status, reason)
        if record.hlsStatus != nil { record.hlsStatus = status == .failed ? .error : .ended }
        record.rtmpStatuses = record.rtmpStatuses.map { _ in status == .failed ? .error : .offline }
        store(&context)
    }

    /// Ends the broadcast after a change to it could not be stored.
    private mutating func abandon(_ context: inout Context) {
        if isLive { context.broadcast(.end(id)) }
        leaveSession(&context)
        phase = .over
    }

    /// Notifies the session, once, that it is no longer broadcast.
    private mutating func leaveSession(_ context: inout Context) {
        guard isCounted else { return }
        setCounted(false, &context)
        context.tell(.session(record.session, .broadcastStopped(id)))
    }

    private mutating func setCounted(_ isCounted: Bool, _ context: inout Context) {
        guard isCounted != self.isCounted else { return }
        self.isCounted = isCounted
        context.runningBroadcasts += isCounted ? 1 : -1
    }

    /// Stores and reports a new status.
    private mutating func store(_ context: inout Context) {
        record.updatedAt = context.wallNow
        context.persist(.broadcastStored(record))
        guard context.projects[record.project]?.hasWebhook == true else { return }
        context.persist(
            .webhook(
                WebhookEvent(
                    project: record.project, session: record.session, at: context.wallNow, .broadcast(record))))
    }
}
