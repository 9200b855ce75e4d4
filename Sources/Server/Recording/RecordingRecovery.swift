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
    let path: String
    let logger: Logger

    /// The archives that are not complete.
    var unfinished: [ArchiveID] {
        let names = (try? FileManager.default.contentsOfDirectory(atPath: path)) ?? []
        return names.compactMap { ArchiveID($0) }.sorted().filter {
            let folder = "\(path)/\($0)"
            return FileManager.default.fileExists(atPath: "\(folder)/\(ArchiveFileName.log)")
                && !FileManager.default.fileExists(atPath: "\(folder)/\(ArchiveFileName.manifest)")
        }
    }

    /// Completes one archive.
    func recover(_ id: ArchiveID) throws -> RecordingResult {
        let folder = try RecordingFolder(path: path).folder("\(id)", creating: false)
        let log = try folder.existing(ArchiveFileName.log)
        let size = min(log.size, Int64(ArchiveLog.maxSize))
        let bytes = try log.read(0..<size)
        let recorded = RecordedArchive(ArchiveLog(bytes))
        var result = RecordingResult(began: recorded.began)
        for entry in recorded.files {
            do {
                let file = try folder.existing(entry.name)
                guard let length = try Self.finish(file) else { continue }
                let start = entry.time
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
        if folder.contains(ArchiveFileName.manifest) { return result }
        // The last line may be incomplete.
        if let end = bytes.lastIndex(of: UInt8(ascii: "\n")) { try log.apply(.truncate(Int64(end) + 1)) }
        let time = max(recorded.lastTime, result.duration)
        let end = ArchiveLogLine(.end(reason: RecordingEnd.serverRestarted.rawValue), at: time)
        try log.apply(.append(end.bytes))
        try log.sync()
        let manifest = ArchiveManifest(id, recorded.session, recorded.options, result, .serverRestarted)
        try folder.replace(ArchiveFileName.manifest, manifest.json)
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
    /// The files in the order in which they began, with the recorded time of their beginning.
    private(set) var files: [(stream: StreamID, name: String, time: Duration)] = []
    private(set) var lastTime = Duration.zero

    init(_ log: ArchiveLog) {
        for line in log.lines { take(line.event, at: line.time) }
        lastTime = log.lines.last?.time ?? .zero
    }

    private mutating func take(_ event: MediaFiles.ArchiveEvent, at time: Duration) {
        switch event {
        case .archive(let opening):
            session = SessionID(opening.session) ?? .unset
            options.createdAt = opening.createdAt ?? options.createdAt
            (options.name, options.project) = (opening.name, opening.project ?? "")
        case .began(let time): began = time
        case .stream(let stream):
            guard let id = StreamID(stream.id) else { return }
            streams[id] = (stream.connectionData, stream.videoType)
        case .file(let file):
            guard let stream = StreamID(file.stream), file.name.hasPrefix("\(stream)"),
                !files.contains(where: { $0.name == file.name })
            else { return }
            files.append((stream, file.name, file.begin(line: time)))
        default: break
        }
    }
}
