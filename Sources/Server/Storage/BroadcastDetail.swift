import Signaling
import Wire

/// The column `broadcast.detail`: what no statement searches for, as a JSON object. Members may be added, but never renamed.
enum BroadcastDetail: StoredDetail {
    // MARK: Writing

    static func bytes(of broadcast: BroadcastRecord) -> [UInt8] {
        var writer = JSONWriter()
        writer.value(
            object([
                ("request", value(broadcast.request)), ("key", .string("\(broadcast.key)")),
                ("hlsStatus", text(broadcast.hlsStatus?.rawValue)),
                ("rtmpStatuses", .array(broadcast.rtmpStatuses.map { .string($0.rawValue) })),
                ("reason", text(broadcast.reason)), ("selection", .array(broadcast.selection.map(value))),
            ]))
        return writer.bytes
    }

    private static func value(_ request: BroadcastRequest) -> JSONValue {
        object([
            ("hls", request.hls.map(value)), ("rtmp", .array(request.rtmp.map(value))),
            ("streamMode", .string(request.streamMode.rawValue)), ("hasAudio", .bool(request.hasAudio)),
            ("hasVideo", .bool(request.hasVideo)), ("resolution", .string(request.resolution.rawValue)),
            ("layout", request.layout.map(value)), ("tag", .string(request.tag.withoutNUL)),
            ("maxBitrate", request.maxBitrate.map { .integer(Int64($0)) }),
            ("maxDuration", milliseconds(request.maxDuration)),
        ])
    }

    private static func value(_ output: HLSOutput) -> JSONValue {
        object([("lowLatency", .bool(output.isLowLatency)), ("dvr", .bool(output.hasDVR))])
    }

    private static func value(_ output: RTMPOutput) -> JSONValue {
        object([
            ("id", .string(output.id.withoutNUL)), ("serverUrl", .string(output.serverURL)),
            ("streamName", .string(output.streamName)),
        ])
    }

    // MARK: Reading

    /// Reads a record. Returns nil if the bytes are not such an object, or lack a member.
    static func read(
        _ bytes: [UInt8], id: BroadcastID, project: String, session: SessionID, createdAt: Timestamp
    ) -> BroadcastRecord? {
        guard case .object(let object)? = try? JSONReader.parse(bytes),
            case .object(let members)? = object["request"], let request = request(members),
            let key = string(object, "key").flatMap({ BroadcastKey($0) }),
            let selection = list(object, "selection", selection), case .array(let values)? = object["rtmpStatuses"]
        else { return nil }
        var broadcast = BroadcastRecord(
            id: id, project: project, session: session, request: request, key: key, createdAt: createdAt)
        broadcast.hlsStatus = string(object, "hlsStatus").flatMap(HLSStatus.init)
        broadcast.rtmpStatuses = values.compactMap { value in
            if case .string(let text) = value { RTMPStatus(rawValue: text) } else { nil }
        }
        (broadcast.reason, broadcast.selection) = (string(object, "reason"), selection)
        guard broadcast.rtmpStatuses.count == request.rtmp.count,
            (broadcast.hlsStatus == nil) == (request.hls == nil)
        else { return nil }
        return broadcast
    }

    private static func request(_ object: JSONObject) -> BroadcastRequest? {
        guard let rtmp = list(object, "rtmp", rtmp), let mode = string(object, "streamMode").flatMap(StreamMode.init),
            let hasAudio = bool(object, "hasAudio"), let hasVideo = bool(object, "hasVideo"),
            let resolution = string(object, "resolution").flatMap(CompositionResolution.init),
            let maxDuration = time(object, "maxDuration")
        else { return nil }
        var request = BroadcastRequest()
        if case .object(let hls)? = object["hls"] {
            request.hls = HLSOutput(
                isLowLatency: bool(hls, "lowLatency") ?? false, hasDVR: bool(hls, "dvr") ?? false)
        }
        (request.rtmp, request.streamMode, request.resolution) = (rtmp, mode, resolution)
        (request.hasAudio, request.hasVideo, request.maxDuration) = (hasAudio, hasVideo, maxDuration)
        (request.layout, request.tag) = (layout(object), string(object, "tag") ?? "")
        request.maxBitrate = integer(object, "maxBitrate").flatMap { Int(exactly: $0) }
        return request
    }

    private static func rtmp(_ object: JSONObject) -> RTMPOutput? {
        guard let id = string(object, "id"), let url = string(object, "serverUrl"),
            let name = string(object, "streamName")
        else { return nil }
        return RTMPOutput(id: id, serverURL: url, streamName: name)
    }
}
