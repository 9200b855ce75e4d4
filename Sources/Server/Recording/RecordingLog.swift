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

/// The manifest of an archive, `archive.json`, in OpenTok's format.
enum RecordingManifest {
    /// Returns the manifest's bytes. Offsets are milliseconds of recorded time.
    static func bytes(
        _ id: ArchiveID, _ session: SessionID, _ options: RecordingOptions, _ result: RecordingResult,
        _ reason: RecordingEnd
    ) -> [UInt8] {
        var writer = JSONWriter()
        let files: [JSONValue] = result.files.map { file in
            .object(
                JSONObject([
                    .init(name: "streamId", value: .string("\(file.stream)")),
                    .init(name: "filename", value: .string(file.name)),
                    .init(name: "size", value: .integer(file.size)),
                    .init(name: "startTimeOffset", value: .integer(file.start.wholeMilliseconds)),
                    .init(name: "stopTimeOffset", value: .integer(file.stop.wholeMilliseconds)),
                    .init(name: "connectionData", value: .string(file.connectionData)),
                    .init(name: "videoType", value: file.videoType.map { .string($0.rawValue) } ?? .null),
                ]))
        }
        writer.value(
            .object(
                JSONObject([
                    .init(name: "createdAt", value: .integer((result.began ?? options.createdAt).milliseconds)),
                    .init(name: "duration", value: .integer(result.duration.wholeMilliseconds / 1_000)),
                    .init(name: "files", value: .array(files)),
                    .init(name: "id", value: .string("\(id)")),
                    .init(name: "name", value: options.name.map(JSONValue.string) ?? .null),
                    .init(name: "partnerId", value: .string(options.project)),
                    .init(name: "reason", value: .string(reason.rawValue)),
                    .init(name: "sessionId", value: .string(session.text)),
                    .init(name: "size", value: .integer(result.size)),
                ])))
        return writer.bytes
    }
}
