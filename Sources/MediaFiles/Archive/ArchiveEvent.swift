import Wire

/// What happens in an archive: a line of its event log without the time.
///
/// Ids of streams and connections are the text of the API. A name that a person chose is never the name of a file. Composing
/// does not need `began`, `fileEnd` and `failed`: they are for recovery and for people who read the log.
public enum ArchiveEvent: Hashable, Sendable {
    /// The first line: what the archive is.
    case archive(ArchiveOpening)
    /// The first packet arrived: the recorded time begins.
    case began(at: Timestamp)
    /// A stream is published, or is selected by hand for the first time.
    case stream(ArchivedStream)
    /// A file begins. Its time 0 is the time of the line, or an earlier one (`ArchivedFile.start`).
    case file(ArchivedFile)
    /// A file is complete. Its size is in bytes.
    case fileEnd(stream: String, name: String, size: Int64)
    /// The stream's video was turned on or off. A stream begins with its video on.
    case video(stream: String, isOn: Bool)
    /// The stream's audio was turned on or off. A stream begins with its audio on.
    case audio(stream: String, isOn: Bool)
    /// The stream's picture has another size in pixels.
    case size(stream: String, width: Int, height: Int)
    /// The stream's picture must be turned clockwise by 0, 90, 180 or 270 degrees before it is drawn.
    case rotation(stream: String, degrees: Int)
    /// The layout classes of a stream.
    case classes(stream: String, [String])
    /// The layout of the composed picture.
    case layout(ArchiveLayout)
    /// Whether a stream is part of the archive, if the streams are selected by hand.
    case include(stream: String, audio: Bool, video: Bool)
    /// The stream has ended.
    case gone(stream: String)
    /// Some of the stream's media was lost, and its last picture stands for this time.
    case lost(stream: String, for: Duration)
    /// Recording of the stream has failed, for this reason.
    case failed(stream: String, reason: String)
    /// The recorded time stands still, because nobody publishes.
    case pause(at: Timestamp)
    /// The recorded time continues.
    case resume(at: Timestamp)
    /// The last line, with the `reason` of the API.
    case end(reason: String)
}

/// The first line of an event log.
public struct ArchiveOpening: Hashable, Sendable {
    /// The id in the API.
    public var id: String
    /// The session that is recorded.
    public var session: String
    /// The name that the application gave the archive.
    public var name: String?
    /// The API key of the session's project; nil if it is not known.
    public var project: String?
    /// When the archive was requested; nil if it is not known.
    public var createdAt: Timestamp?
    /// The canvas of the composed picture in pixels; nil if it is chosen later. The recorder does not know it.
    public var canvas: ArchiveCanvas?
    /// The layout at the beginning; nil for OpenTok's default.
    public var layout: ArchiveLayout?
    /// Whether audio is recorded.
    public var hasAudio: Bool
    /// Whether video is recorded.
    public var hasVideo: Bool
    /// The frames per second of the composed picture.
    public var frameRate: Int

    public init(
        id: String, session: String, name: String? = nil, project: String? = nil, createdAt: Timestamp? = nil,
        canvas: ArchiveCanvas? = nil, layout: ArchiveLayout? = nil, hasAudio: Bool = true, hasVideo: Bool = true,
        frameRate: Int = 25
    ) {
        (self.id, self.session, self.name, self.canvas, self.layout) = (id, session, name, canvas, layout)
        (self.project, self.createdAt) = (project, createdAt)
        (self.hasAudio, self.hasVideo, self.frameRate) = (hasAudio, hasVideo, frameRate)
    }
}

/// The size of a composed picture in pixels. Its text is that of OpenTok's `resolution`, such as `1280x720`.
public struct ArchiveCanvas: Hashable, Sendable, CustomStringConvertible {
    /// In pixels.
    public var width: Int
    /// In pixels.
    public var height: Int

    /// The default is that of OpenTok.
    public init(width: Int = 640, height: Int = 480) { (self.width, self.height) = (width, height) }

    /// Parses two numbers of at most five digits with an `x` between them; nil for any other text.
    public init?(_ text: some StringProtocol) {
        let sides = text.split(separator: "x", omittingEmptySubsequences: false)
        guard sides.count == 2, sides.allSatisfy({ (1...5).contains($0.utf8.count) && $0.utf8.first != 0x2b }),
            let width = Int(sides[0]), let height = Int(sides[1]), width > 0, height > 0
        else { return nil }
        self.init(width: width, height: height)
    }

    public var description: String { "\(width)x\(height)" }
}

/// The layout of a composed picture, with the values of OpenTok's API.
public struct ArchiveLayout: Hashable, Sendable {
    /// `bestFit`, `pip`, `verticalPresentation`, `horizontalPresentation` or `custom`. A reader may not know a newer one.
    public var type: String
    /// The style sheet of the type `custom`.
    public var stylesheet: String?
    /// The type while a screen is shared.
    public var screenshareType: String?

    public init(_ type: String = "bestFit", stylesheet: String? = nil, screenshareType: String? = nil) {
        (self.type, self.stylesheet, self.screenshareType) = (type, stylesheet, screenshareType)
    }
}

/// What an event log says about a stream when it begins.
public struct ArchivedStream: Hashable, Sendable {
    /// The id in the API.
    public var id: String
    /// The client connection that publishes it.
    public var connection: String
    /// The data of the publisher's token. It may contain personal data, so do not log it.
    public var connectionData: String
    /// nil for a stream without video.
    public var videoType: VideoType?
    /// The layout classes.
    public var classes: [String]
    /// The name that the publisher gave it.
    public var name: String

    public init(
        id: String, connection: String, connectionData: String = "", videoType: VideoType? = .camera,
        classes: [String] = [], name: String = ""
    ) {
        (self.id, self.connection, self.connectionData) = (id, connection, connectionData)
        (self.videoType, self.classes, self.name) = (videoType, classes, name)
    }
}

/// A file of an archive, as its event log names it.
public struct ArchivedFile: Hashable, Sendable {
    /// What the file contains.
    public enum Codec: String, Hashable, Sendable, CaseIterable {
        /// Video, with or without audio beside it.
        case vp8, vp9, h264, av1
        /// Audio without video. Files with video may have audio too.
        case opus

        /// The extension of files with this video: `webm`, or `mkv` for H.264, which WebM does not allow.
        var fileExtension: String { self == .h264 ? "mkv" : "webm" }
    }

    /// The stream's id.
    public var stream: String
    /// The name in the archive's folder. `ArchiveFileName.isValid` is true for it.
    public var name: String
    /// The codec of the video, or `opus` if there is none.
    public var codec: Codec
    /// The recorded time of the file's time 0, if it is earlier than that of the line; otherwise nil. A file begins with frames that were
    /// held for seconds, and the times of lines never decrease.
    public var start: Duration?

    public init(stream: String, name: String, codec: Codec, start: Duration? = nil) {
        (self.stream, self.name, self.codec, self.start) = (stream, name, codec, start)
    }

    /// Returns the recorded time of the file's time 0.
    ///
    /// - Parameter line: the time of the line.
    public func begin(line: Duration) -> Duration { start.map { min($0, line) } ?? line }
}

/// The names of files in an archive's folder.
public enum ArchiveFileName {
    /// OpenTok's manifest, an `ArchiveManifest`.
    public static let manifest = "archive.json"
    /// The event log, an `ArchiveLog`.
    public static let log = "events.jsonl"
    /// The composed file.
    public static let composed = "archive.mp4"

    /// Whether this is a name that the recorder gives to the file of a stream: 1 to 64 digits, letters and hyphens, then
    /// `.webm` or `.mkv`. So a name from a log cannot lead out of the folder, and is no option of a command.
    public static func isValid(_ name: String) -> Bool {
        let parts = name.utf8.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
        guard parts.count == 2, ["webm", "mkv"].contains(String(decoding: parts[1], as: UTF8.self)) else {
            return false
        }
        return (1...64).contains(parts[0].count) && parts[0].first != UInt8(ascii: "-")
            && parts[0].allSatisfy { byte in
                switch byte {
                case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                    UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "-"):
                    true
                default: false
                }
            }
    }

    /// Returns the name of a stream's file.
    ///
    /// - Parameters:
    ///   - index: 0 for the stream's first file, then 1, 2, …, as OpenTok numbers them.
    ///   - codec: decides between WebM and Matroska.
    public static func of(stream: String, index: Int, codec: ArchivedFile.Codec) -> String {
        "\(stream)\(index > 0 ? String(index) : "").\(codec.fileExtension)"
    }
}
