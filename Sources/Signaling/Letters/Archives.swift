import Wire

/// The status of an archive, with OpenTok's names.
public enum ArchiveStatus: String, Hashable, Sendable, CaseIterable {
    /// The session is recorded, or will be as soon as there is something to record.
    case started
    /// Nobody whose stream is recorded publishes now.
    case paused
    /// Recording has ended. The files are being completed or composed.
    case stopped
    /// The archive was moved to other storage.
    case uploaded
    /// The archive can be downloaded.
    case available
    /// The archive was deleted because of its age.
    case expired
    /// There is nothing to download.
    case failed
    /// The archive was deleted on request. Only webhooks get this status.
    case deleted

    /// Whether streams may still be recorded into the archive.
    public var isRunning: Bool { self == .started || self == .paused }
}

/// What happens to an archive now, for metrics.
public enum ArchiveState: String, Hashable, Sendable, CaseIterable {
    /// The members were notified, and recording has not begun.
    case announced
    case recording
    /// Nothing is recorded now, because nobody publishes.
    case paused
    /// The recorder completes the files.
    case finishing
    /// The streams are composed into one file, or wait for it.
    case composing
}

/// What an application requests when it starts an archive.
public struct ArchiveRequest: Hashable, Sendable {
    /// The maximum number of characters in a name, as in OpenTok.
    public static let maxName = 80

    /// The archive's name; nil for none.
    public var name: String?
    public var output = ArchiveOutput.composed
    public var streamMode = StreamMode.auto
    public var hasAudio = true
    public var hasVideo = true
    /// Width and height of the composed video in pixels, such as `640x480`; nil for an individual archive.
    public var resolution: String?
    /// Whether the server started the archive, because the session is always recorded. Such an archive cannot be stopped.
    public var isAutomatic = false
    public var layout: CompositionLayout?
    /// A session may have several archives at the same time only if their tags differ. Never returned.
    public var tag = ""
    /// Maximum bitrate of the composed video in bits per second; nil for the default.
    public var maxBitrate: Int?
    /// The quantization of the composed video, 15 to 40; nil for the default.
    public var quantization: Int?

    public init() {}

    /// Whether a text has no control or format characters, such as those that change the direction of text, and at most this many
    /// others.
    public static func isText(_ text: String, max: Int) -> Bool {
        text.unicodeScalars.count <= max
            && !text.unicodeScalars.contains {
                $0.properties.generalCategory == .control || $0.properties.generalCategory == .format
            }
    }
}

/// What composing an archive waits for. It is tried again regularly. The raw values are reasons in the archive's JSON.
public enum ComposingObstacle: String, Hashable, Sendable, CaseIterable {
    /// `compose.ffmpeg` is missing, too old, or lacks a codec.
    case ffmpeg = "waiting for ffmpeg"
    /// The disk of the recordings is full.
    case diskSpace = "waiting for disk space"
    /// Another process composes the archive, such as `confab compose`.
    case otherProcess = "waiting for another process"
}

/// The file of a composed archive.
public struct ComposedFile: Hashable, Sendable {
    /// The name in the archive's folder.
    public var name: String
    /// In bytes.
    public var size: Int64

    public init(name: String, size: Int64) { (self.name, self.size) = (name, size) }
}

/// An archive, as stored. Each change stores the whole record, so that the stored state is never a mix of two states.
public struct ArchiveRecord: Hashable, Sendable {
    public var id: ArchiveID
    /// The API key of the session's project.
    public var project: String
    public var session: SessionID
    public var request: ArchiveRequest
    public var status = ArchiveStatus.started
    /// Why the archive has stopped or failed, as a phrase; nil while it runs.
    public var reason: String?
    /// What composing the archive waits for; nil if it does not wait.
    public var obstacle: ComposingObstacle?
    /// The name of the node of a cluster that records the session and has the files; empty without a cluster.
    public var node = ""
    /// When the archive was requested.
    public var createdAt: Timestamp
    /// When the first packet was recorded; nil if none was.
    public var beganAt: Timestamp?
    /// When the status last changed.
    public var updatedAt: Timestamp
    /// The recorded time, without pauses; zero until the archive has stopped.
    public var duration = Duration.zero
    /// The streams that the application has added, in the stream mode `manual`.
    public var selection: [SelectedStream] = []
    /// The recorded files, in the order in which they began.
    public var files: [RecordedFile] = []
    /// The composed file; nil until it is complete.
    public var composed: ComposedFile?

    public init(
        id: ArchiveID, project: String, session: SessionID, request: ArchiveRequest, createdAt: Timestamp
    ) {
        (self.id, self.project, self.session, self.request) = (id, project, session, request)
        (self.createdAt, updatedAt) = (createdAt, createdAt)
    }

    /// The `reason` that applications and operators see: what composing waits for, or why the archive has stopped or failed.
    public var shownReason: String? { obstacle?.rawValue ?? reason }

    /// The size in bytes of what can be downloaded.
    public var size: Int64 { composed?.size ?? files.reduce(0) { $0 + $1.size } }
}

/// Who requested a change to an archive, and gets the answer.
public enum ArchiveRequester: Equatable, Sendable {
    /// An application's server. It gets the changed archive.
    case application(SocketID)
    /// A moderator of the session, with the number of the request.
    case member(ConnectionID, re: UInt64)
}

/// Events for an archive's state machine.
public enum ArchiveEvent: Equatable, Sendable {
    /// Begins an archive whose record was stored.
    indirect case begin(ArchiveRecord, [SessionStream], accepted: Set<ConnectionID>)
    /// Restores an archive that was not finished when the server stopped. `hasFiles` is false if nothing was recorded.
    indirect case restore(ArchiveRecord, hasFiles: Bool)
    case session(SessionNews)
    indirect case operated(CompositionOperation, ArchiveRequester)
    // From the shell.
    indirect case recording(RecordingEvent)
    /// The composed file; nil if composing has failed.
    case composed(ComposedFile?)
    /// Composing waits for this; nil if it no longer waits.
    case composingWaits(ComposingObstacle?)
    /// The shell no longer composes the archive, and deletes it.
    case givenUp
    /// A change to the archive could not be stored.
    case notStored
}

extension WireError.Code {
    /// The archive's or the session's state does not allow this request.
    public static let archiveConflict: WireError.Code = "archive_conflict"
    /// This server cannot record, or cannot compose recordings.
    public static let recordingUnavailable: WireError.Code = "recording_unavailable"
}

extension WireError {
    /// The error for a change to an archive that has stopped.
    public static let archiveNotRunning = WireError(.archiveConflict, "This archive has already stopped.")
    /// The error for an archive that the server cannot compose.
    public static let composingUnavailable = WireError(
        .recordingUnavailable,
        "This server cannot compose archives. Start an individual archive, or install ffmpeg on the server.")
    /// The error for an archive for which the disk has no space.
    public static let recordingSpace = WireError(
        .storageFull,
        "The disk of the recordings is almost full. Free space, or lower recording.minFreeSpace. Then try again.",
        retryable: true, retryAfter: .seconds(60))
    static func archiveConflict(_ sentence: String) -> WireError { WireError(.archiveConflict, sentence) }
}
