import Signaling
import Wire

/// The column `archive.detail`: what no statement searches for, as a JSON object. Members may be added, but never renamed.
enum ArchiveDetail: StoredDetail {
    // MARK: Writing

    static func bytes(of archive: ArchiveRecord) -> [UInt8] {
        var writer = JSONWriter()
        writer.value(
            object([
                ("request", value(archive.request)), ("reason", text(archive.reason)),
                ("obstacle", text(archive.obstacle?.rawValue)),
                ("beganAt", archive.beganAt.map { .integer($0.milliseconds) }),
                ("duration", milliseconds(archive.duration)),
                ("selection", .array(archive.selection.map(value))), ("files", .array(archive.files.map(value))),
                (
                    "composed",
                    archive.composed.map { object([("name", .string($0.name)), ("size", .integer($0.size))]) }
                ),
            ]))
        return writer.bytes
    }

    private static func value(_ request: ArchiveRequest) -> JSONValue {
        object([
            ("name", text(request.name)), ("output", .string(request.output.rawValue)),
            ("streamMode", .string(request.streamMode.rawValue)), ("hasAudio", .bool(request.hasAudio)),
            ("hasVideo", .bool(request.hasVideo)), ("resolution", text(request.resolution)),
            ("isAutomatic", request.isAutomatic ? .bool(true) : nil), ("layout", request.layout.map(value)),
            ("tag", .string(request.tag.withoutNUL)),
            ("maxBitrate", request.maxBitrate.map { .integer(Int64($0)) }),
            ("quantization", request.quantization.map { .integer(Int64($0)) }),
        ])
    }

    private static func value(_ file: RecordedFile) -> JSONValue {
        object([
            ("stream", .string("\(file.stream)")), ("name", .string(file.name)), ("size", .integer(file.size)),
            ("start", milliseconds(file.start)), ("stop", milliseconds(file.stop)),
            ("connectionData", .string(file.connectionData)), ("videoType", text(file.videoType?.rawValue)),
        ])
    }

    // MARK: Reading

    /// Reads the members into a record. Returns false if the bytes are not such an object, or lack a member.
    static func read(_ bytes: [UInt8], into archive: inout ArchiveRecord) -> Bool {
        guard case .object(let object)? = try? JSONReader.parse(bytes),
            case .object(let members)? = object["request"], let request = request(members),
            let duration = time(object, "duration"), let selection = list(object, "selection", selection),
            let files = list(object, "files", file)
        else { return false }
        archive.request = request
        archive.reason = string(object, "reason")
        archive.obstacle = string(object, "obstacle").flatMap { ComposingObstacle(rawValue: $0) }
        archive.beganAt = integer(object, "beganAt").map { Timestamp(milliseconds: $0) }
        (archive.duration, archive.selection, archive.files) = (duration, selection, files)
        guard case .object(let composed)? = object["composed"] else { return true }
        guard let name = string(composed, "name"), let size = integer(composed, "size") else { return false }
        archive.composed = ComposedFile(name: name, size: size)
        return true
    }

    private static func request(_ object: JSONObject) -> ArchiveRequest? {
        guard let output = string(object, "output").flatMap(ArchiveOutput.init),
            let mode = string(object, "streamMode").flatMap(StreamMode.init),
            let hasAudio = bool(object, "hasAudio"), let hasVideo = bool(object, "hasVideo")
        else { return nil }
        var request = ArchiveRequest()
        (request.output, request.streamMode, request.hasAudio, request.hasVideo) = (output, mode, hasAudio, hasVideo)
        (request.name, request.resolution) = (string(object, "name"), string(object, "resolution"))
        request.tag = string(object, "tag") ?? ""
        request.isAutomatic = bool(object, "isAutomatic") ?? false
        request.maxBitrate = integer(object, "maxBitrate").flatMap { Int(exactly: $0) }
        request.quantization = integer(object, "quantization").flatMap { Int(exactly: $0) }
        request.layout = layout(object)
        return request
    }

    private static func file(_ object: JSONObject) -> RecordedFile? {
        guard let stream = string(object, "stream").flatMap({ StreamID($0) }), let name = string(object, "name"),
            let size = integer(object, "size"), let start = time(object, "start"), let stop = time(object, "stop"),
            let data = string(object, "connectionData")
        else { return nil }
        return RecordedFile(
            stream: stream, name: name, size: size, start: start, stop: stop, connectionData: data,
            videoType: string(object, "videoType").flatMap(VideoType.init))
    }
}
