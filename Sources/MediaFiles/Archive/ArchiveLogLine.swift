import Wire

/// A line of an archive's event log: a JSON object with the time `t`, the event's name `e`, and the event's members.
public struct ArchiveLogLine: Payload, Hashable {
    /// The recorded time, in whole milliseconds since the archive's first packet.
    public var time: Duration
    /// What happened.
    public var event: ArchiveEvent

    public init(_ event: ArchiveEvent, at time: Duration) { (self.event, self.time) = (event, time) }

    public init() { self.init(.end(reason: ""), at: .zero) }

    /// The line as it is in the file, with the line feed at its end.
    public var bytes: [UInt8] { json + [UInt8(ascii: "\n")] }

    public mutating func fields(_ coder: inout FieldCoder) throws(WireError) {
        try coder.milliseconds("t", &time)
        var kind = event.kind
        try coder.choice("e", &kind)
        switch kind {
        case .archive, .stream, .file, .layout: try event.description(kind, &coder)
        case .began, .archivePaused, .archiveResumed, .end: try event.ofArchive(kind, &coder)
        default: try event.ofStream(kind, &coder)
        }
    }
}

/// The longest texts of an event log in bytes of UTF-8. The recorder writes shorter ones; a longer one makes a line unreadable.
private enum Longest {
    static let id = 64
    /// The reasons of the API, and names of the layouts.
    static let word = 64
    /// The data of a connection, and the names of archives and streams.
    static let text = 4 * Limits.connectionData
    /// OpenTok's limit for style sheets.
    static let stylesheet = 20 * 1_024
}

extension ArchiveEvent {
    /// The value of `e`.
    enum Kind: String {
        case archive, began, stream, file, fileEnd, video, audio, size, rotation, classes, layout, include, gone, lost
        case failed, end
        case archivePaused = "pause"
        case archiveResumed = "resume"
    }

    var kind: Kind {
        switch self {
        case .archive: .archive
        case .began: .began
        case .stream: .stream
        case .file: .file
        case .fileEnd: .fileEnd
        case .video: .video
        case .audio: .audio
        case .size: .size
        case .rotation: .rotation
        case .classes: .classes
        case .layout: .layout
        case .include: .include
        case .gone: .gone
        case .lost: .lost
        case .failed: .failed
        case .pause: .archivePaused
        case .resume: .archiveResumed
        case .end: .end
        }
    }

    /// Reads or writes the events that have a structure of their own.
    fileprivate mutating func description(_ kind: Kind, _ coder: inout FieldCoder) throws(WireError) {
        switch kind {
        case .archive:
            var opening = ArchiveOpening(id: "", session: "")
            if case .archive(let written) = self { opening = written }
            try opening.fields(&coder)
            self = .archive(opening)
        case .stream:
            var stream = ArchivedStream(id: "", connection: "")
            if case .stream(let written) = self { stream = written }
            try stream.fields(&coder)
            self = .stream(stream)
        case .file:
            var file = ArchivedFile(stream: "", name: "", codec: .vp8)
            if case .file(let written) = self { file = written }
            try file.fields(&coder)
            self = .file(file)
        default:
            var layout = ArchiveLayout()
            if case .layout(let written) = self { layout = written }
            try layout.fields(&coder)
            self = .layout(layout)
        }
    }

    fileprivate mutating func ofArchive(_ kind: Kind, _ coder: inout FieldCoder) throws(WireError) {
        if kind == .end {
            var reason = ""
            if case .end(let written) = self { reason = written }
            try coder.string("reason", &reason, max: Longest.word)
            return self = .end(reason: reason)
        }
        var time = Timestamp(milliseconds: 0)
        switch self {
        case .began(let written), .pause(let written), .resume(let written): time = written
        default: break
        }
        try coder.timestamp("at", &time)
        switch kind {
        case .began: self = .began(at: time)
        case .archivePaused: self = .pause(at: time)
        default: self = .resume(at: time)
        }
    }

    /// Reads or writes the events that change a stream.
    fileprivate mutating func ofStream(_ kind: Kind, _ coder: inout FieldCoder) throws(WireError) {
        var stream = self.stream ?? ""
        try coder.string("stream", &stream, max: Longest.id)
        switch kind {
        case .video, .audio:
            var isOn = true
            switch self {
            case .video(_, let written), .audio(_, let written): isOn = written
            default: break
            }
            try coder.bool("on", &isOn)
            self = kind == .video ? .video(stream: stream, isOn: isOn) : .audio(stream: stream, isOn: isOn)
        case .size:
            var (width, height) = (1, 1)
            if case .size(_, let writtenWidth, let writtenHeight) = self {
                (width, height) = (writtenWidth, writtenHeight)
            }
            try coder.integer("w", &width, in: 1...65_535)
            try coder.integer("h", &height, in: 1...65_535)
            self = .size(stream: stream, width: width, height: height)
        case .gone: self = .gone(stream: stream)
        case .fileEnd, .failed: try ofRecorder(kind, stream, &coder)
        default: try ofStream(kind, stream, &coder)
        }
    }

    private mutating func ofRecorder(
        _ kind: Kind, _ stream: String, _ coder: inout FieldCoder
    ) throws(WireError) {
        if kind == .failed {
            var reason = ""
            if case .failed(_, let written) = self { reason = written }
            try coder.string("reason", &reason, max: Longest.word)
            return self = .failed(stream: stream, reason: reason)
        }
        var (name, size) = ("", Int64(0))
        if case .fileEnd(_, let writtenName, let writtenSize) = self { (name, size) = (writtenName, writtenSize) }
        try coder.fileName("file", &name)
        try coder.integer("size", &size, in: 0...(1 << 53))
        self = .fileEnd(stream: stream, name: name, size: size)
    }

    private mutating func ofStream(
        _ kind: Kind, _ stream: String, _ coder: inout FieldCoder
    ) throws(WireError) {
        switch kind {
        case .rotation:
            var degrees = 0
            if case .rotation(_, let written) = self { degrees = written }
            try coder.integer("degrees", &degrees, in: 0...270)
            self = .rotation(stream: stream, degrees: degrees)
        case .classes:
            var classes: [String]? = []
            if case .classes(_, let written) = self { classes = written }
            try coder.strings("classes", &classes, max: Longest.text)
            self = .classes(stream: stream, classes ?? [])
        case .include:
            var (audio, video) = (true, true)
            if case .include(_, let writtenAudio, let writtenVideo) = self {
                (audio, video) = (writtenAudio, writtenVideo)
            }
            try coder.bool("audio", &audio)
            try coder.bool("video", &video)
            self = .include(stream: stream, audio: audio, video: video)
        default:
            var length = Duration.zero
            if case .lost(_, let written) = self { length = written }
            try coder.milliseconds("ms", &length)
            self = .lost(stream: stream, for: length)
        }
    }

    /// The id of the stream that the event is about; nil if it is about the archive.
    public var stream: String? {
        switch self {
        case .archive, .began, .layout, .pause, .resume, .end: nil
        case .stream(let stream): stream.id
        case .file(let file): file.stream
        case .video(let stream, _), .audio(let stream, _), .size(let stream, _, _), .rotation(let stream, _),
            .classes(let stream, _), .include(let stream, _, _), .gone(let stream), .lost(let stream, _),
            .fileEnd(let stream, _, _), .failed(let stream, _):
            stream
        }
    }
}

extension ArchiveOpening {
    fileprivate mutating func fields(_ coder: inout FieldCoder) throws(WireError) {
        try coder.string("id", &id, max: Longest.id)
        try coder.string("sessionId", &session, max: Longest.text)
        try coder.string("name", &name, max: Longest.text)
        try coder.string("partnerId", &project, max: Longest.word)
        try coder.timestamp("createdAt", &createdAt)
        var resolution = canvas?.description
        try coder.string("resolution", &resolution, max: Longest.word)
        canvas = resolution.flatMap { ArchiveCanvas($0) }
        guard (canvas != nil) == (resolution != nil) else {
            throw WireError(.malformed, "The member \"resolution\" must be two numbers such as 640x480.")
        }
        try coder.nested("layout", &layout)
        try coder.bool("hasAudio", &hasAudio)
        try coder.bool("hasVideo", &hasVideo)
        try coder.integer("fps", &frameRate, in: 1...120)
    }
}

extension ArchiveLayout: Payload {
    public init() { self.init("bestFit") }

    public mutating func fields(_ coder: inout FieldCoder) throws(WireError) {
        try coder.string("type", &type, max: Longest.word)
        try coder.string("stylesheet", &stylesheet, max: Longest.stylesheet)
        try coder.string("screenshareType", &screenshareType, max: Longest.word)
    }
}

extension ArchivedStream {
    fileprivate mutating func fields(_ coder: inout FieldCoder) throws(WireError) {
        try coder.string("id", &id, max: Longest.id)
        try coder.string("connectionId", &connection, max: Longest.id)
        try coder.string("connectionData", &connectionData, max: Longest.text)
        try coder.choice("videoType", &videoType)
        var list: [String]? = classes
        try coder.strings("classes", &list, max: Longest.text)
        classes = list ?? []
        try coder.string("name", &name, max: Longest.text)
    }
}

extension ArchivedFile {
    fileprivate mutating func fields(_ coder: inout FieldCoder) throws(WireError) {
        try coder.string("stream", &stream, max: Longest.id)
        try coder.fileName("file", &name)
        try coder.choice("codec", &codec)
        try coder.milliseconds("start", &start)
    }
}

extension FieldCoder {
    /// Reads or writes the name of a recorded file.
    fileprivate mutating func fileName(_ member: String, _ name: inout String) throws(WireError) {
        try string(member, &name, max: Longest.text)
        guard !isReading || ArchiveFileName.isValid(name) else {
            throw WireError(.malformed, "The member \"\(member)\" must be the name of a recorded file.")
        }
    }
}
