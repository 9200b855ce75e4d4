import Signaling
import TestSupport
import Testing
import Wire

/// A routed session of two people that can be recorded, with a recorder that only notes its commands.
final class RecordedSession {
    let stage: Stage
    let session: SessionID
    let (ada, bob): (Guest, Guest)
    private let mids = MediaMids(audio: "0", video: "1")

    /// - Parameters:
    ///   - archive: the resolution of the archives into which the session is always recorded; nil to record it on request.
    ///   - hasWebhook: whether the project's webhook gets events.
    init(
        archive: CompositionResolution? = nil, hasWebhook: Bool = false,
        _ adjust: @escaping (inout Rules) -> Void = { _ in }
    ) {
        stage = Stage { rules in
            (rules.routesMedia, rules.recordsSessions, rules.composesArchives) = (true, true, true)
            adjust(&rules)
        }
        session = stage.room(.routed, archive: archive)
        (ada, bob) = (stage.arrive(), stage.arrive())
        guard hasWebhook else { return }
        var settings = stage.hub.hubSettings
        settings.project.hasWebhook = true
        stage.handle(.settingsChanged(settings))
    }

    func enter() {
        for (guest, name) in [(ada, "Ada"), (bob, "Bob")] { guest.enter(session, data: name, on: stage) }
        for guest in [ada, bob] { guest.take() }
    }

    func publish(_ guest: Guest) throws -> StreamID { try #require(guest.publish(session, mids: mids)).id }

    func request(_ change: (inout ArchiveRequest) -> Void = { _ in }) -> ArchiveRequest {
        var request = ArchiveRequest()
        request.output = .individual
        change(&request)
        return request
    }

    /// Starts an archive. Returns nil if it was refused.
    @discardableResult func start(_ change: (inout ArchiveRequest) -> Void = { _ in }) -> ArchiveRecord? {
        archive(of: stage.operate(.session(session, .startArchive(request(change)))))
    }

    /// Returns the code of the refusal of a start.
    func refusal(_ change: (inout ArchiveRequest) -> Void = { _ in }) -> WireError.Code? {
        code(of: stage.operate(.session(session, .startArchive(request(change)))))
    }

    func operate(_ archive: ArchiveID, _ operation: CompositionOperation) -> OperatorReply? {
        stage.operate(.session(session, .archive(archive, operation)))
    }

    func archive(of reply: OperatorReply?) -> ArchiveRecord? {
        if case .archive(let record)? = reply { record } else { nil }
    }
    func code(of reply: OperatorReply?) -> WireError.Code? {
        if case .refused(let error)? = reply { error.code } else { nil }
    }

    /// The stored archives of the session, oldest first.
    var archives: [ArchiveRecord] {
        stage.archive.archives.values.filter { $0.session == session }.sorted { $0.createdAt < $1.createdAt }
    }

    /// The stored archive.
    func stored(_ archive: ArchiveID) -> ArchiveRecord? { stage.archive.archives[archive] }

    /// Passes the time until recording begins.
    func passNotice() { stage.pass(stage.rules.recordingNotice) }

    /// Returns the commands for the recorder since the previous call, in order, such as `add Bob audio video`.
    func commands() -> [String] {
        stage.takeRecorder().map { command in
            switch command {
            case .begin(_, let session, let options):
                "begin \(session == self.session ? "" : "elsewhere ")\(tracks(options.hasAudio, options.hasVideo))"
            case .add(_, _, let stream): "add \(stream.connectionData) \(tracks(stream.hasAudio, stream.hasVideo))"
            case .remove: "remove"
            case .note(_, .layout(let type, let sheet, let screen)):
                "layout \(([type, sheet, screen] as [String?]).compactMap(\.self).joined(separator: " "))"
            case .note(_, .classes(_, let classes)): "classes \(classes.joined(separator: " "))"
            case .note(_, .include(_, let audio, let video)): "include \(tracks(audio, video))"
            case .pause: "pause"
            case .resume: "resume"
            case .end(_, let reason): "end \(reason.rawValue)"
            }
        }
    }

    private func tracks(_ audio: Bool, _ video: Bool) -> String {
        ([audio ? "audio" : nil, video ? "video" : nil] as [String?]).compactMap(\.self).joined(separator: " ")
    }

    func report(_ event: RecordingEvent) { stage.handle(.recording(event)) }

    /// A result with one file of this stream.
    func result(of stream: StreamID, _ duration: Duration = .seconds(9)) -> RecordingResult {
        let file = RecordedFile(
            stream: stream, name: "\(stream).webm", size: 1234, start: .zero, stop: duration, connectionData: "Bob",
            videoType: .camera)
        return RecordingResult(began: stage.now, duration: duration, files: [file])
    }
}

extension SessionNotice {
    var startedArchive: ArchiveInfo? { if case .archiveStarted(let notice) = self { notice.archive } else { nil } }
    var stoppedArchive: ArchiveID? { if case .archiveStopped(let notice) = self { notice.archive } else { nil } }
}
