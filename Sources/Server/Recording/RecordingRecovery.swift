import Foundation
import Logging
import MediaFiles
import Signaling
import Wire

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#elseif canImport(Darwin)
import Darwin
#endif

/// Completes archives that a previous run of the server has left after a crash.
///
/// An archive is complete if it has a manifest. Its event log says which files belong to it, and since when. Each file is finished
/// after its last whole block (`WebMScan`). What cannot be read is left as it is.
struct RecordingRecovery {
    /// The maximum size of an event log. A longer one is not ours: a day with 50 streams has less than a tenth of it.
    static let maxLog: Int64 = 64 << 20

    let path: String
    let logger: Logger

    /// The archives that are not complete.
    var unfinished: [ArchiveID] {
        let names = (try? FileManager.default.contentsOfDirectory(atPath: path)) ?? []
        return names.compactMap { ArchiveID($0) }.sorted().filter {
            let folder = "\(path)/\($0)"
            return FileManager.default.fileExists(atPath: "\(folder)/\(RecordingManifest.logName)")
                && !FileManager.default.fileExists(atPath: "\(folder)/\(RecordingManifest.name)")
        }
    }

    /// Completes one archive.
    func recover(_ id: ArchiveID) throws -> RecordingResult {
        let folder = try RecordingFolder(path: path).folder("\(id)", creating: false)
        let log = try folder.existing(RecordingManifest.logName)
        let size = min(log.size, Self.maxLog)
        let bytes = try log.read(0..<size)
        let recorded = RecordedArchive(lines: bytes)
        var result = RecordingResult(began: recorded.began)
        for entry in recorded.files {
            do {
                let file = try folder.existing(entry.name)
                guard let length = try Self.finish(file) else { continue }
                let start = Duration.milliseconds(entry.time)
                result.files.append(
                    RecordedFile(
                        stream: entry.stream, name: entry.name, size: file.size, start: start, stop: start + length,
                        connectionData: recorded.streams[entry.stream]?.connectionData ?? "",
                        videoType: recorded.streams[entry.stream]?.videoType))
            } catch {
                logger.error("Cannot recover a recording", metadata: ["archive": "\(id)", "error": "\(error)"])
            }
        }
        result.duration = result.files.map(\.stop).max() ?? .zero
        // Complete, but the hub may not have stored it.
        if folder.contains(RecordingManifest.name) { return result }
        // The last line may be incomplete.
        if let end = bytes.lastIndex(of: UInt8(ascii: "\n")) { try log.apply(.truncate(Int64(end) + 1)) }
        let time = max(recorded.lastTime, result.duration.wholeMilliseconds)
        try log.apply(.append(RecordingLine.end(.serverRestarted).bytes(at: time)))
        try log.sync()
        let manifest = RecordingManifest.bytes(
            id, recorded.session, recorded.options, result, .serverRestarted)
        try folder.replace(RecordingManifest.name, manifest)
        return result
    }

    /// Finishes a file.
    /// - Returns: its length; nil if it contains no whole block.
    static func finish(_ file: RecordingFile) throws(RecordingError) -> Duration? {
        var scan = WebMScan(fileSize: file.size)
        while let range = scan.wanted { scan.take(try file.read(range)) }
        guard scan.isRecording else { return nil }
        for edit in scan.edits() { try file.apply(edit) }
        try file.sync()
        return .milliseconds(scan.duration)
    }
}

/// What the event log of an archive says about it.
struct RecordedArchive {
    private(set) var session = SessionID.unset
    private(set) var options = RecordingOptions(createdAt: Timestamp(milliseconds: 0))
    private(set) var began: Timestamp?
    private(set) var streams: [StreamID: (connectionData: String, videoType: VideoType?)] = [:]
    /// The files in the order in which they began, with the recorded time of their beginning in milliseconds.
    private(set) var files: [(stream: StreamID, name: String, time: Int64)] = []
    private(set) var lastTime: Int64 = 0

    /// Parses a log. Lines that are incomplete or unknown are ignored.
    init(lines: [UInt8]) {
        for line in lines.split(separator: UInt8(ascii: "\n")) {
            guard case .object(let object)? = try? JSONReader.parse(line), case .integer(let time)? = object["t"],
                case .string(let event)? = object["e"]
            else { continue }
            lastTime = max(lastTime, time)
            switch event {
            case "archive": takeArchive(object)
            case "began": if case .integer(let at)? = object["at"] { began = Timestamp(milliseconds: at) }
            case "stream": takeStream(object)
            case "file":
                guard let stream = Self.stream(object["stream"]), let name = Self.text(object["file"]),
                    name.hasPrefix("\(stream)"), !name.contains("/"), !files.contains(where: { $0.name == name })
                else { continue }
                files.append((stream, name, time))
            default: break
            }
        }
    }

    private mutating func takeArchive(_ object: JSONObject) {
        session = Self.text(object["sessionId"]).flatMap { SessionID($0) } ?? .unset
        if case .integer(let time)? = object["createdAt"] { options.createdAt = Timestamp(milliseconds: time) }
        options.name = Self.text(object["name"])
        options.project = Self.text(object["partnerId"]) ?? ""
    }

    private mutating func takeStream(_ object: JSONObject) {
        guard let stream = Self.stream(object["id"]) else { return }
        streams[stream] = (
            Self.text(object["connectionData"]) ?? "",
            Self.text(object["videoType"]).flatMap { VideoType(rawValue: $0) }
        )
    }

    private static func text(_ value: JSONValue?) -> String? {
        if case .string(let text)? = value { text } else { nil }
    }

    private static func stream(_ value: JSONValue?) -> StreamID? { text(value).flatMap { StreamID($0) } }
}
