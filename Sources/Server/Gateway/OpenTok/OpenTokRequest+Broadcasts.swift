import Broadcasting
import Signaling
import Wire

/// Reads the bodies of requests for broadcasts.
extension OpenTokRequest {
    private static let maxTargetID = 256

    /// Reads the request to start a broadcast.
    func broadcast() throws(WireError) -> (SessionID, BroadcastRequest) {
        let members = try members()
        guard let session = try text("sessionId", members).flatMap({ SessionID($0) }) else {
            throw WireError(.malformed, "Send the \"sessionId\" of the session to broadcast.")
        }
        var broadcast = BroadcastRequest()
        broadcast.streamMode = try choice("streamMode", members) ?? .auto
        broadcast.hasAudio = try flag("hasAudio", members) ?? true
        broadcast.hasVideo = try flag("hasVideo", members) ?? true
        guard broadcast.hasAudio || broadcast.hasVideo else {
            throw WireError(
                .malformed, "Broadcast audio, video, or both. \"hasAudio\" and \"hasVideo\" are both false.")
        }
        broadcast.tag = try short("multiBroadcastTag", members, max: Self.maxTag) ?? ""
        broadcast.maxBitrate = try number("maxBitrate", members, in: Self.bitrates)
        let durations = BroadcastRequest.maxDurations
        let seconds = try number(
            "maxDuration", members,
            in: Int(durations.lowerBound.components.seconds)...Int(durations.upperBound.components.seconds))
        if let seconds { broadcast.maxDuration = .seconds(seconds) }
        if let text = try text("resolution", members) {
            guard let resolution = CompositionResolution(rawValue: text) else {
                throw WireError(.malformed, "\"resolution\" must be one of \(CompositionResolution.list).")
            }
            broadcast.resolution = resolution
        }
        broadcast.layout = try Self.layout(ofStart: members)
        try readOutputs(members, &broadcast)
        return (session, broadcast)
    }

    private func readOutputs(_ members: JSONObject, _ broadcast: inout BroadcastRequest) throws(WireError) {
        guard case .object(let outputs)? = members["outputs"] else { throw .noOutputs }
        switch outputs["hls"] {
        case .object(let hls)?:
            let output = HLSOutput(
                isLowLatency: try flag("lowLatency", hls) ?? false, hasDVR: try flag("dvr", hls) ?? false)
            guard !output.isLowLatency || !output.hasDVR else {
                throw WireError(.malformed, "Send \"lowLatency\" or \"dvr\", not both: \"dvr\" has no low latency.")
            }
            broadcast.hls = output
        case nil: break
        default: throw WireError(.malformed, "\"hls\" must be an object, which may be empty.")
        }
        switch outputs["rtmp"] {
        case .array(let values)?:
            guard values.count <= BroadcastRequest.maxTargets else {
                throw WireError(
                    .malformed, "\"rtmp\" must not have more than \(BroadcastRequest.maxTargets) targets.")
            }
            for value in values { broadcast.rtmp.append(try target(value)) }
        case nil: break
        default: throw WireError(.malformed, "\"rtmp\" must be an array of targets.")
        }
        guard broadcast.hls != nil || !broadcast.rtmp.isEmpty else { throw .noOutputs }
        let ids = broadcast.rtmp.map(\.id).filter { !$0.isEmpty }
        guard Set(ids).count == ids.count else {
            throw WireError(.malformed, "Each target of \"rtmp\" needs a different \"id\", or none.")
        }
    }

    private func target(_ value: JSONValue) throws(WireError) -> RTMPOutput {
        guard case .object(let target) = value, let url = try text("serverUrl", target),
            let name = try text("streamName", target)
        else {
            throw WireError(.malformed, "Each target of \"rtmp\" needs a \"serverUrl\" and a \"streamName\".")
        }
        do throws(RTMPDestination.Fault) {
            _ = try RTMPDestination(serverURL: url, streamName: name)
        } catch {
            throw WireError(.malformed, "\(error)")
        }
        return RTMPOutput(
            id: try short("id", target, max: Self.maxTargetID) ?? "", serverURL: url, streamName: name)
    }
}

extension WireError {
    fileprivate static let noOutputs = WireError(
        .malformed, "Send \"outputs\" with \"hls\", with at least one target in \"rtmp\", or with both.")
}
