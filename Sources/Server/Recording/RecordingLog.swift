import MediaFiles
import Signaling
import Wire

/// What the recorder writes into the event log of an archive (`ArchiveLogLine`). Together with the files, the log is all that
/// composing and recovery need.
extension MediaFiles.ArchiveEvent {
    static func opening(_ id: ArchiveID, _ session: SessionID, _ options: RecordingOptions) -> Self {
        .archive(
            ArchiveOpening(
                id: "\(id)", session: session.text, name: options.name, project: options.project,
                createdAt: options.createdAt, hasAudio: options.hasAudio, hasVideo: options.hasVideo))
    }

    static func beginning(_ stream: StreamID, _ details: RecordedStream) -> Self {
        .stream(
            MediaFiles.ArchivedStream(
                id: "\(stream)", connection: "\(details.publisher)", connectionData: details.connectionData,
                videoType: details.videoType, classes: details.classes, name: details.name))
    }

    static func forwarded(_ stream: StreamID, isVideo: Bool, _ isOn: Bool) -> Self {
        isVideo ? .video(stream: "\(stream)", isOn: isOn) : .audio(stream: "\(stream)", isOn: isOn)
    }

    static func failure(_ stream: StreamID, _ failure: RecordingFailure) -> Self {
        .failed(stream: "\(stream)", reason: failure.rawValue)
    }

    static func note(_ note: RecordingNote) -> Self {
        switch note {
        case .layout(let type, let stylesheet, let screenshareType):
            .layout(MediaFiles.ArchiveLayout(type, stylesheet: stylesheet, screenshareType: screenshareType))
        case .classes(let stream, let classes): .classes(stream: "\(stream)", classes)
        case .include(let stream, let audio, let video):
            .include(stream: "\(stream)", audio: audio, video: video)
        }
    }
}
