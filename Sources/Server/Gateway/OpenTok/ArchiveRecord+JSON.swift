import Signaling
import Wire

extension ArchiveRecord {
    /// The archive as OpenTok describes it.
    ///
    /// - Parameter url: where the archive can be downloaded now; nil if it cannot.
    func json(url: String?) -> JSONValue { .object(JSONObject(members(at: beganAt ?? createdAt, url: url))) }

    /// The archive as a webhook gets it. OpenTok rounds `createdAt` to a second there.
    var callbackJSON: JSONValue {
        let second = Timestamp(milliseconds: createdAt.milliseconds / 1000 * 1000)
        return .object(
            JSONObject([.init(name: "event", value: .string("archive"))] + members(at: second, url: nil)))
    }

    private func members(at created: Timestamp, url: String?) -> [JSONObject.Member] {
        let isComposed = request.output == .composed
        let members: [(String, JSONValue)] = [
            ("id", .string("\(id)")), ("status", .string(status.rawValue)), ("name", Self.text(request.name)),
            ("reason", Self.text(shownReason)), ("sessionId", .string(session.text)),
            // A number, as from OpenTok, unless the API key has too many digits.
            ("partnerId", Int64(project).map { .integer($0) } ?? .string(project)), ("projectId", .string(project)),
            ("createdAt", .integer(created.milliseconds)), ("updatedAt", .integer(updatedAt.milliseconds)),
            ("size", .integer(status == .deleted || status == .expired ? 0 : size)),
            ("duration", .integer(Int64(duration.wholeMilliseconds / 1000))),
            ("outputMode", .string(request.output.rawValue)), ("streamMode", .string(request.streamMode.rawValue)),
            ("hasAudio", .bool(request.hasAudio)), ("hasVideo", .bool(request.hasVideo)),
            ("hasTranscription", .bool(false)), ("sha256sum", .string("")),
            ("resolution", isComposed ? .string(request.resolution ?? Self.usualResolution) : .null),
            ("maxBitrate", Self.number(request.maxBitrate)),
            ("quantizationParameter", Self.number(request.quantization)),
            ("streams", .array(selection.map(\.json))), ("url", Self.text(url)),
        ]
        return members.map { .init(name: $0.0, value: $0.1) }
    }

    /// The resolution of a composed archive whose request has none: OpenTok's default.
    static let usualResolution = CompositionResolution.small.rawValue

    private static func text(_ text: String?) -> JSONValue { text.map { .string($0) } ?? .null }
    private static func number(_ number: Int?) -> JSONValue { number.map { .integer(Int64($0)) } ?? .null }
}

extension SelectedStream {
    /// The stream in the `streams` of an archive or a broadcast.
    var json: JSONValue {
        .object(
            JSONObject([
                .init(name: "streamId", value: .string("\(stream)")), .init(name: "hasAudio", value: .bool(hasAudio)),
                .init(name: "hasVideo", value: .bool(hasVideo)),
            ]))
    }
}
