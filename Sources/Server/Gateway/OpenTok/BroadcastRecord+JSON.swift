import Signaling
import Wire

extension BroadcastRecord {
    /// The broadcast as OpenTok describes it.
    ///
    /// - Parameter site: the beginning of the URL of the playlist; empty if the server does not know its own URL.
    func json(at site: String) -> JSONValue { .object(JSONObject(members(at: site))) }

    /// The broadcast as a webhook gets it, without the URL and the stream names: these are secrets, and events wait in storage.
    var callbackJSON: JSONValue {
        .object(JSONObject([.init(name: "event", value: .string("broadcast"))] + members(at: nil)))
    }

    /// - Parameter site: nil to leave secrets out.
    private func members(at site: String?) -> [JSONObject.Member] {
        var settings: [JSONObject.Member] = []
        if let hls = request.hls {
            let output: [JSONObject.Member] = [
                .init(name: "lowLatency", value: .bool(hls.isLowLatency)), .init(name: "dvr", value: .bool(hls.hasDVR)),
            ]
            settings.append(.init(name: "hls", value: .object(JSONObject(output))))
        }
        let members: [(String, JSONValue)] = [
            ("id", .string("\(id)")), ("status", .string(status.rawValue)),
            ("reason", reason.map { .string($0) } ?? .null), ("sessionId", .string(session.text)),
            // A number, as from OpenTok, unless the API key has too many digits.
            ("partnerId", Int64(project).map { .integer($0) } ?? .string(project)), ("projectId", .string(project)),
            ("createdAt", .integer(createdAt.milliseconds)), ("updatedAt", .integer(updatedAt.milliseconds)),
            ("resolution", .string(request.resolution.rawValue)), ("hasAudio", .bool(request.hasAudio)),
            ("hasVideo", .bool(request.hasVideo)), ("streamMode", .string(request.streamMode.rawValue)),
            ("maxBitrate", request.maxBitrate.map { .integer(Int64($0)) } ?? .null),
            ("maxDuration", .integer(request.maxDuration.components.seconds)),
            ("settings", .object(JSONObject(settings))), ("broadcastUrls", urls(at: site)),
            ("streams", .array(selection.map(\.json))),
        ]
        return members.map { .init(name: $0.0, value: $0.1) }
    }

    private func urls(at site: String?) -> JSONValue {
        var members: [JSONObject.Member] = []
        if let site, let path = playlistPath { members.append(.init(name: "hls", value: .string(site + path))) }
        if let hlsStatus { members.append(.init(name: "hlsStatus", value: .string(hlsStatus.rawValue))) }
        let targets = zip(request.rtmp, rtmpStatuses).map { target, status in
            var members: [JSONObject.Member] = [.init(name: "status", value: .string(status.rawValue))]
            if !target.id.isEmpty { members.append(.init(name: "id", value: .string(target.id))) }
            if site != nil {
                members.append(.init(name: "serverUrl", value: .string(target.serverURL)))
                members.append(.init(name: "streamName", value: .string(target.streamName)))
            }
            return JSONValue.object(JSONObject(members))
        }
        if !targets.isEmpty { members.append(.init(name: "rtmp", value: .array(targets))) }
        return .object(JSONObject(members))
    }
}
