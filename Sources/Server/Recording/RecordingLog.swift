import MediaFiles
import Signaling
import Wire

/// A line of an archive's event log, `events.jsonl`. Together with the files, the log is all that composing needs.
///
/// Each line is an object with `t`, the recorded time in milliseconds, and `e`, the kind of event. `t` never decreases.
enum RecordingLine: Equatable {
    case archive(ArchiveID, SessionID, RecordingOptions)
    /// The first packet arrived.
    case began(Timestamp)
    case stream(StreamID, RecordedStream)
    case file(StreamID, name: String, codec: String)
    /// The file is complete: its size in bytes.
    case fileEnd(StreamID, name: String, size: Int64)
    case forwarded(StreamID, isVideo: Bool, Bool)
    case size(StreamID, width: Int, height: Int)
    case lost(StreamID, milliseconds: Int64)
    case note(RecordingNote)
    case gone(StreamID)
    case failed(StreamID, RecordingFailure)
    case pause(Timestamp)
    case resume(Timestamp)
    case end(RecordingEnd)

    /// The line with its newline.
    func bytes(at time: Int64) -> [UInt8] {
        var writer = JSONWriter()
        writer.beginObject()
        writer.name("t")
        writer.integer(time)
        writer.name("e")
        write(to: &writer)
        writer.endObject()
        return writer.bytes + [UInt8(ascii: "\n")]
    }

    private func write(to writer: inout JSONWriter) {
        switch self {
        case .archive(let id, let session, let options): Self.write(id, session, options, to: &writer)
        case .began(let time): Self.write("began", [("at", .integer(time.milliseconds))], to: &writer)
        case .stream(let id, let stream): Self.write(id, stream, to: &writer)
        case .file(let id, let name, let codec):
            Self.write("file", id, [("file", .string(name)), ("codec", .string(codec))], to: &writer)
        case .fileEnd(let id, let name, let size):
            Self.write("fileEnd", id, [("file", .string(name)), ("size", .integer(size))], to: &writer)
        case .forwarded(let id, let isVideo, let isOn):
            Self.write(isVideo ? "video" : "audio", id, [("on", .bool(isOn))], to: &writer)
        case .size(let id, let width, let height):
            Self.write("size", id, [("w", .integer(Int64(width))), ("h", .integer(Int64(height)))], to: &writer)
        case .lost(let id, let milliseconds): Self.write("lost", id, [("ms", .integer(milliseconds))], to: &writer)
        case .note(let note): Self.write(note, to: &writer)
        case .gone(let id): Self.write("gone", id, [], to: &writer)
        case .failed(let id, let failure):
            Self.write("failed", id, [("reason", .string(failure.rawValue))], to: &writer)
        case .pause(let time): Self.write("pause", [("at", .integer(time.milliseconds))], to: &writer)
        case .resume(let time): Self.write("resume", [("at", .integer(time.milliseconds))], to: &writer)
        case .end(let reason): Self.write("end", [("reason", .string(reason.rawValue))], to: &writer)
        }
    }

    private static func write(
        _ id: ArchiveID, _ session: SessionID, _ options: RecordingOptions, to writer: inout JSONWriter
    ) {
        write(
            "archive",
            [
                ("id", .string("\(id)")), ("sessionId", .string(session.text)),
                ("name", options.name.map(JSONValue.string) ?? .null), ("partnerId", .string(options.project)),
                ("createdAt", .integer(options.createdAt.milliseconds)),
                ("hasAudio", .bool(options.hasAudio)), ("hasVideo", .bool(options.hasVideo)), ("fps", .integer(25)),
            ], to: &writer)
    }

    private static func write(_ id: StreamID, _ stream: RecordedStream, to writer: inout JSONWriter) {
        write(
            "stream", id,
            [
                ("connectionId", .string("\(stream.publisher)")), ("connectionData", .string(stream.connectionData)),
                ("videoType", stream.videoType.map { .string($0.rawValue) } ?? .null), ("name", .string(stream.name)),
                ("classes", .array(stream.classes.map(JSONValue.string))),
            ], to: &writer)
    }

    private static func write(_ note: RecordingNote, to writer: inout JSONWriter) {
        switch note {
        case .layout(let type, let stylesheet, let screenshareType):
            write(
                "layout",
                [
                    ("type", .string(type)), ("stylesheet", stylesheet.map(JSONValue.string) ?? .null),
                    ("screenshareType", screenshareType.map(JSONValue.string) ?? .null),
                ], to: &writer)
        case .classes(let id, let classes):
            write("classes", id, [("classes", .array(classes.map(JSONValue.string)))], to: &writer)
        case .include(let id, let audio, let video):
            write("include", id, [("audio", .bool(audio)), ("video", .bool(video))], to: &writer)
        }
    }

    private static func write(
        _ event: String, _ stream: StreamID, _ members: [(String, JSONValue)], to writer: inout JSONWriter
    ) {
        write(event, [(event == "stream" ? "id" : "stream", JSONValue.string("\(stream)"))] + members, to: &writer)
    }

    private static func write(_ event: String, _ members: [(String, JSONValue)], to writer: inout JSONWriter) {
        writer.string(event)
        for (name, value) in members where value != .null {
            writer.name(name)
            writer.value(value)
        }
    }
}

/// The manifest of an archive, `archive.json`, in OpenTok's format.
enum RecordingManifest {
    static let name = "archive.json"
    static let logName = "events.jsonl"

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
