import Wire

/// The description of an archive, `archive.json`, with the members of OpenTok's manifest and ours behind them.
public struct ArchiveManifest: Payload, Hashable {
    /// The id in the API.
    public var id = ""
    /// The name that the application gave the archive.
    public var name: String?
    /// The API key of the project.
    public var partnerID = ""
    /// The session that was recorded.
    public var session = ""
    /// When the first packet was recorded, or when the archive was requested if none was.
    public var createdAt = Timestamp(milliseconds: 0)
    /// The files in the order in which they began.
    public var files: [ArchiveManifestFile] = []
    /// The recorded time; nil while the archive is recorded.
    public var duration: Duration?
    /// Why the archive ended, with the `reason` of the API; nil while it is recorded.
    public var reason: String?

    public init() {}

    public init(
        id: String, name: String? = nil, partnerID: String, session: String, createdAt: Timestamp,
        files: [ArchiveManifestFile] = [], duration: Duration? = nil, reason: String? = nil
    ) {
        (self.id, self.name, self.partnerID, self.session) = (id, name, partnerID, session)
        (self.createdAt, self.files, self.duration, self.reason) = (createdAt, files, duration, reason)
    }

    /// Reads a manifest.
    ///
    /// - Throws: `malformed` with the name of the wrong member, or with the place of the problem in the JSON.
    public init(_ bytes: [UInt8]) throws(WireError) {
        let value: JSONValue
        do throws(JSONError) {
            value = try JSONReader.parse(bytes)
        } catch {
            throw WireError(.malformed, "The manifest is not JSON at byte \(error.offset): \(error.message).")
        }
        guard case .object(let members) = value else {
            throw WireError(.malformed, "The manifest must be a JSON object.")
        }
        try self.init(members: members)
    }

    public mutating func fields(_ coder: inout FieldCoder) throws(WireError) {
        try coder.string("id", &id, max: Limits.name)
        try coder.string("name", &name, max: 4 * Limits.connectionData)
        try partner(&coder)
        try coder.string("sessionId", &session, max: 4 * Limits.connectionData)
        try coder.timestamp("createdAt", &createdAt)
        try coder.list("files", &files)
        try coder.milliseconds("durationMilliseconds", &duration)
        try coder.string("reason", &reason, max: Limits.name)
    }

    /// OpenTok's API keys are numbers, and its manifest has `partnerId` as a number. Other keys are written as strings.
    private mutating func partner(_ coder: inout FieldCoder) throws(WireError) {
        var value: JSONValue? =
            Int64(partnerID).flatMap { String($0) == partnerID ? .integer($0) : nil }
            ?? .string(partnerID)
        try coder.json("partnerId", &value)
        switch value {
        case .integer(let number): partnerID = String(number)
        case .string(let text): partnerID = text
        default: throw WireError(.malformed, "The member \"partnerId\" must be a number or a string.")
        }
    }
}

/// A file in an archive's manifest.
public struct ArchiveManifestFile: Payload, Hashable {
    /// The id of the stream.
    public var stream = ""
    /// The name in the archive's folder.
    public var name = ""
    /// In bytes; 0 while it is written.
    public var size: Int64 = 0
    /// The recorded time of the file's time 0.
    public var start = Duration.zero
    /// The recorded time of the file's end.
    public var stop = Duration.zero
    /// The data of the publisher's token. It may contain personal data, so do not log it.
    public var connectionData = ""
    /// The first source of the stream's video; nil for a stream without video.
    public var videoType: VideoType?
    /// Why the file could not be written to its end; nil if it is whole.
    public var error: String?

    public init() {}

    public init(
        stream: String, name: String, size: Int64 = 0, start: Duration, stop: Duration, connectionData: String = "",
        videoType: VideoType? = .camera, error: String? = nil
    ) {
        (self.stream, self.name, self.size, self.start, self.stop) = (stream, name, size, start, stop)
        (self.connectionData, self.videoType, self.error) = (connectionData, videoType, error)
    }

    public mutating func fields(_ coder: inout FieldCoder) throws(WireError) {
        try coder.string("streamId", &stream, max: Limits.name)
        try coder.string("filename", &name, max: Limits.name)
        try coder.integer("size", &size, in: 0...(1 << 53))
        try coder.milliseconds("startTimeOffset", &start)
        try coder.milliseconds("stopTimeOffset", &stop)
        try coder.string("connectionData", &connectionData, max: 4 * Limits.connectionData)
        try coder.choice("videoType", &videoType)
        try coder.string("error", &error, max: 4 * Limits.connectionData)
    }
}
