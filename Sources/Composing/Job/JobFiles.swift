import Foundation
import MediaFiles
import Synchronization

#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif

/// Lines that another thread collects.
final class Lines: Sendable {
    private let lines = Mutex<[String]>([])
    var all: [String] { lines.withLock { $0 } }
    func append(_ line: String) { lines.withLock { if $0.count < 10_000 { $0.append(line) } } }
}

/// The files of a job in an archive's folder.
///
/// A finished part has a name with the key of its command, and gets it by renaming. So the names alone are the job's state: a part
/// with the right name is whole, and was made from the same files with the same options.
struct JobFiles: Sendable {
    /// The folder in the archive's folder for finished and unfinished parts.
    static let work = "composing"
    /// The log of all attempts, beside the composed file.
    static let log = "composing.log"
    /// The largest log in bytes.
    static let maxLog: Int64 = 1 << 20
    /// Fewer free bytes than this count as a full disk. A chunk of one minute at the highest bitrate has 45 MB.
    static let minFree: UInt64 = 64 << 20

    let folder: String
    /// Locked while this process works on the archive; nil if it only reads.
    private let lock: Int32?

    /// The files of an archive that this process only reads. Leaves the folder as it is.
    init(reading folder: String) { (self.folder, lock) = (folder, nil) }

    /// - Throws: `busy` if another process has the archive's lock.
    init(folder: String) throws {
        self.folder = folder
        let work = "\(folder)/\(Self.work)"
        guard mkdir(work, 0o700) == 0 || errno == EEXIST else { throw Self.writeError(work) }
        let lock = open("\(work)/lock", O_CREAT | O_RDWR | O_CLOEXEC | O_NOFOLLOW, 0o600)
        guard lock >= 0 else { throw Self.writeError(work) }
        guard flock(lock, LOCK_EX | LOCK_NB) == 0 else {
            close(lock)
            throw ComposeError.busy
        }
        self.lock = lock
    }

    /// Ends the lock, and leaves no empty folder.
    func unlock() {
        guard let lock else { return }
        if names == ["lock"] { removeWork() }
        // Closing is not enough: a child that another thread has just forked has a copy until it starts its program.
        flock(lock, LOCK_UN)
        close(lock)
    }

    private static func writeError(_ path: String) -> ComposeError {
        errno == ENOSPC || errno == EDQUOT ? .diskFull : .cannotWrite(path)
    }

    /// Returns the path of a file, relative to the archive's folder, as ffmpeg gets it.
    static func path(_ name: String) -> String { "\(work)/\(name)" }

    func full(_ path: String) -> String { path.hasPrefix("/") ? path : "\(folder)/\(path)" }

    var isDiskFull: Bool {
        var information = statvfs()
        guard statvfs(folder, &information) == 0 else { return false }
        return UInt64(information.f_bavail) * UInt64(information.f_frsize) < Self.minFree
    }

    func exists(_ path: String) -> Bool { access(full(path), F_OK) == 0 }

    /// The size of a file in the folder in bytes; nil if it is missing, or is not an ordinary file.
    func size(_ path: String) -> Int64? {
        var information = stat()
        guard lstat(full(path), &information) == 0, information.st_mode & S_IFMT == S_IFREG else { return nil }
        return Int64(information.st_size)
    }

    func remove(_ path: String) { unlink(full(path)) }

    /// Gives a whole file its name. Its bytes reach the disk first, so that no power failure leaves an empty file of this name.
    func rename(_ from: String, to name: String) throws {
        let descriptor = open(full(from), O_RDONLY | O_CLOEXEC)
        if descriptor >= 0 {
            fsync(descriptor)
            close(descriptor)
        }
        guard Foundation.rename(full(from), full(name)) == 0 else { throw Self.writeError(full(name)) }
    }

    func write(_ text: String, to path: String) throws {
        let descriptor = open(full(path), O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC | O_NOFOLLOW, 0o600)
        guard descriptor >= 0 else { throw Self.writeError(full(path)) }
        defer { close(descriptor) }
        let bytes = Array(text.utf8)
        guard Foundation.write(descriptor, bytes, bytes.count) == bytes.count else { throw Self.writeError(full(path)) }
    }

    /// Appends a line to the log. A log that is too long is not continued.
    func note(_ line: String) {
        let path = full(Self.log)
        let descriptor = open(path, O_CREAT | O_APPEND | O_WRONLY | O_CLOEXEC | O_NOFOLLOW, 0o600)
        guard descriptor >= 0 else { return }
        defer { close(descriptor) }
        var information = stat()
        guard fstat(descriptor, &information) == 0, information.st_size < Self.maxLog else { return }
        let bytes = Array("\(Date.now.formatted(.iso8601)) \(line)\n".utf8)
        _ = Foundation.write(descriptor, bytes, bytes.count)
    }

    /// Removes the parts that a killed process has not finished.
    func removeUnfinished() {
        for name in names where name.hasSuffix(".part") { remove(Self.path(name)) }
    }

    /// Removes all parts, after the composed file has its name.
    func removeWork() {
        for name in names { remove(Self.path(name)) }
        rmdir(full(Self.work))
    }

    private var names: [String] {
        (try? FileManager.default.contentsOfDirectory(atPath: full(Self.work))) ?? []
    }

    /// Reads a part of a file, as the readers of files expect it.
    static func withReader<Value>(_ path: String, _ body: (Int64, (Int64, Int) -> [UInt8]) -> Value?) -> Value? {
        let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW)
        guard descriptor >= 0 else { return nil }
        defer { close(descriptor) }
        var information = stat()
        guard fstat(descriptor, &information) == 0, information.st_mode & S_IFMT == S_IFREG else { return nil }
        return body(Int64(information.st_size)) { offset, count in
            var bytes = [UInt8](repeating: 0, count: count)
            let length = pread(descriptor, &bytes, count, off_t(offset))
            return Array(bytes.prefix(max(0, length)))
        }
    }

    func facts(_ name: String) -> SourceFacts? {
        Self.withReader(full(name)) { size, read in MatroskaStart(size: size, read: read).map(SourceFacts.init) }
    }

    /// The facts of a file that may still be written. Such a file has tracks for audio and video, of which those without blocks are removed
    /// at its end.
    func factsSoFar(_ name: String) -> SourceFacts? {
        Self.withReader(full(name)) { size, read -> SourceFacts? in
            guard let start = MatroskaStart(size: size, read: read) else { return nil }
            var facts = SourceFacts(start)
            if start.hasVideo, start.duration == nil, start.firstFrame == nil {
                // `MatroskaStart` finds no frame after minutes of audio alone.
                let clusters = MatroskaClusters(start, size: size, read: read).all
                facts.hasVideo = clusters.contains(where: \.startsWithKeyframe)
            }
            return facts
        }
    }

    private func clusters(_ name: String) -> MatroskaClusters? {
        Self.withReader(full(name)) { size, read in
            MatroskaStart(size: size, read: read).map { MatroskaClusters($0, size: size, read: read) }
        }
    }

    /// The clusters of all files of these chunks.
    func clusters(of chunks: some Sequence<ComposedChunk>) -> [String: MatroskaClusters] {
        var clusters: [String: MatroskaClusters] = [:]
        for source in chunks.flatMap(\.sources) {
            if let file = source.file, clusters[file] == nil { clusters[file] = self.clusters(file) }
        }
        return clusters
    }

    func tracks(_ path: String) -> MP4Tracks? {
        Self.withReader(full(path)) { size, read in MP4Tracks(size: size, read: read) }
    }

    func read(_ name: String, max: Int) -> [UInt8]? {
        Self.withReader(full(name)) { size, read in read(0, Int(min(size, Int64(max)))) }
    }
}
