import Wire

/// A command for the recorder, executed in order with the other effects.
///
/// Every `begin` is answered with exactly one `RecordingEvent.ended` or `failed`. Between them, each `add` of a stream is
/// followed by at most one `remove`; the end of the stream's publication also removes it. Commands for an archive that has
/// ended are ignored.
public enum RecordingCommand: Equatable, Sendable {
    /// Starts an archive of a routed session without end-to-end encryption. Nothing is written before a stream is added.
    case begin(ArchiveID, SessionID, RecordingOptions)
    /// Records a published stream into a file of its own. A stream that is added again, after a `remove`, gets another file.
    case add(ArchiveID, StreamID, RecordedStream)
    /// Finishes the stream's file.
    case remove(ArchiveID, StreamID)
    /// Adds a line to the archive's event log at the current recorded time.
    case note(ArchiveID, RecordingNote)
    /// Stops the recorded time until `resume`. Streams must have been removed before.
    case pause(ArchiveID)
    /// Continues the recorded time after `pause`.
    case resume(ArchiveID)
    /// Finishes all files of the archive. Answered with `ended`.
    case end(ArchiveID, RecordingEnd)
}

/// An event from the recorder. Events for archives that no longer exist are dropped.
public enum RecordingEvent: Equatable, Sendable {
    /// The first packet of an archive was written: its recorded time begins now.
    case began(ArchiveID, at: Timestamp)
    /// All files of an archive are complete. The reason is the one of `RecordingCommand.end`, or `diskFull` if the recorder
    /// ended the archive by itself.
    case ended(ArchiveID, RecordingEnd, RecordingResult)
    /// The archive could not be started. There is nothing to download.
    case failed(ArchiveID, RecordingFailure)
    /// A stream could not be recorded, or writing its file failed. The archive continues.
    case streamFailed(ArchiveID, StreamID, RecordingFailure)
    /// The server ended while it recorded this archive, and the recorder has completed its files. Sent once after a start,
    /// before any other event of an archive.
    case recovered(ArchiveID, RecordingResult)

    /// The archive that the event is about.
    public var archive: ArchiveID {
        switch self {
        case .began(let archive, at: _), .ended(let archive, _, _), .failed(let archive, _),
            .streamFailed(let archive, _, _), .recovered(let archive, _):
            archive
        }
    }
}

/// What an archive records.
public struct RecordingOptions: Hashable, Sendable {
    /// Whether audio is recorded. At least one of `hasAudio` and `hasVideo` is true.
    public var hasAudio: Bool
    /// Whether video is recorded.
    public var hasVideo: Bool
    /// The largest simulcast layer to record, by its height in pixels. The smallest layer is recorded if all are higher.
    /// nil for the setting `recording.maxHeight`.
    public var maxHeight: Int?
    /// The archive's name, for the manifest.
    public var name: String?
    /// The API key of the session's project, for the manifest (OpenTok's `partnerId`).
    public var project: String
    /// When the archive was requested.
    public var createdAt: Timestamp

    public init(
        hasAudio: Bool = true, hasVideo: Bool = true, maxHeight: Int? = nil, name: String? = nil, project: String = "",
        createdAt: Timestamp
    ) {
        (self.hasAudio, self.hasVideo, self.maxHeight) = (hasAudio, hasVideo, maxHeight)
        (self.name, self.project, self.createdAt) = (name, project, createdAt)
    }
}

/// What the manifest and the event log of an archive say about a stream.
public struct RecordedStream: Hashable, Sendable {
    /// The connection that publishes the stream.
    public var publisher: ConnectionID
    /// The data of the publisher's token. May contain personal data, so it is not logged.
    public var connectionData: String
    /// nil for a stream without video.
    public var videoType: VideoType?
    /// The stream's name.
    public var name: String
    /// The stream's layout classes.
    public var classes: [String]
    /// Whether the stream's audio is recorded, if the archive records audio at all.
    public var hasAudio: Bool
    /// Whether the stream's video is recorded, if the archive records video at all.
    public var hasVideo: Bool

    public init(
        publisher: ConnectionID, connectionData: String = "", videoType: VideoType? = .camera, name: String = "",
        classes: [String] = [], hasAudio: Bool = true, hasVideo: Bool = true
    ) {
        (self.publisher, self.connectionData, self.videoType) = (publisher, connectionData, videoType)
        (self.name, self.classes, self.hasAudio, self.hasVideo) = (name, classes, hasAudio, hasVideo)
    }
}

/// A line of an archive's event log, for composing it. The recorder adds lines about files, sizes, losses, and tracks that are
/// muted or forwarded again.
public enum RecordingNote: Hashable, Sendable {
    /// The layout of the composed picture, with the values of OpenTok's API: the type, the style sheet of the type `custom`,
    /// and the type while a screen is shared.
    case layout(String, stylesheet: String?, screenshareType: String?)
    /// The layout classes of a stream have changed.
    case classes(StreamID, [String])
    /// Whether a stream is part of the archive, for archives whose streams are selected by hand.
    case include(StreamID, audio: Bool, video: Bool)
}

/// Why an archive has ended. The raw values are those of the `reason` in OpenTok's archive JSON, or ours where it has none.
public enum RecordingEnd: String, Hashable, Sendable, CaseIterable {
    /// The archive was stopped by a request.
    case requested = "user initiated"
    /// The archive has reached its maximum length.
    case maxDuration = "maximum duration exceeded"
    /// Nobody published, or nobody was connected, for too long.
    case idle = "maximum idle time exceeded"
    /// The last client left the session.
    case sessionEnded = "session ended"
    /// Less space was free than the recorder needs.
    case diskFull = "disk full"
    /// The server was stopped or killed.
    case serverRestarted = "server restarted"
}

/// Why an archive or a stream cannot be recorded.
public enum RecordingFailure: String, Hashable, Sendable, CaseIterable {
    /// `recording.enabled` is false.
    case disabled
    /// The archive is composed, and `compose.ffmpeg` is missing or cannot compose.
    case cannotCompose
    /// Less than `recording.minFreeSpace` is free.
    case diskFull
    /// The number of archives, of streams in one archive, or of times that streams were added to it, is at its limit.
    case tooMany
    /// The folder or a file cannot be created or written.
    case cannotWrite
    /// The stream is not published on this server, or is relayed between the clients.
    case notPublished
    /// The codec cannot be recorded.
    case unsupportedCodec
}

/// What an archive contains after its end.
public struct RecordingResult: Hashable, Sendable {
    /// When the recorded time began; nil if no packet was recorded.
    public var began: Timestamp?
    /// The recorded time, without the pauses.
    public var duration: Duration
    /// The files, in the order in which they began. Empty if no packet was recorded.
    public var files: [RecordedFile]

    /// The sum of the files' sizes in bytes.
    public var size: Int64 { files.reduce(0) { $0 + $1.size } }

    public init(began: Timestamp? = nil, duration: Duration = .zero, files: [RecordedFile] = []) {
        (self.began, self.duration, self.files) = (began, duration, files)
    }
}

/// A file of an archive.
public struct RecordedFile: Hashable, Sendable {
    public var stream: StreamID
    /// The name in the archive's folder: the stream's id, from the second file of a stream on its number (from 1), and
    /// `.webm` or, with H.264, `.mkv`.
    public var name: String
    /// In bytes.
    public var size: Int64
    /// The recorded time at which the file begins.
    public var start: Duration
    /// The recorded time at which the file ends.
    public var stop: Duration
    public var connectionData: String
    public var videoType: VideoType?

    public init(
        stream: StreamID, name: String, size: Int64, start: Duration, stop: Duration, connectionData: String,
        videoType: VideoType?
    ) {
        (self.stream, self.name, self.size, self.start, self.stop) = (stream, name, size, start, stop)
        (self.connectionData, self.videoType) = (connectionData, videoType)
    }
}
