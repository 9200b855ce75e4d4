// Foundation rather than `stat` for modes: which module a C struct belongs to changes with what else is imported.
import Foundation

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#elseif canImport(Darwin)
import Darwin
#endif

/// Files that only their owner may read, made so that nobody ever sees half of one.
enum PrivateFiles {
    struct File {
        var bytes: [UInt8]
        var isReadableByOthers: Bool
    }

    /// Makes a directory of mode 0700 and the missing ones above it; an existing one is left as it is.
    static func makeDirectory(_ path: String) throws(DataDirectoryError) {
        if mkdir(path, 0o700) == 0 || errno == EEXIST && isDirectory(path) { return }
        let problem = errno
        let parent = path.split(separator: "/", omittingEmptySubsequences: true).dropLast().joined(separator: "/")
        guard problem == ENOENT, !parent.isEmpty else { throw failure("make the directory \(path)", problem) }
        try makeDirectory((path.hasPrefix("/") ? "/" : "") + parent)
        guard mkdir(path, 0o700) == 0 || errno == EEXIST else { throw failure("make the directory \(path)", errno) }
    }

    /// Makes a file of mode 0600, all at once; does nothing when there already is one of that name.
    ///
    /// - Parameter suffix: tells our unfinished file from another process's.
    static func create(_ path: String, contents: [UInt8], suffix: String) throws(DataDirectoryError) {
        let unfinished = try write(contents, beside: path, suffix: suffix)
        defer { unlink(unfinished) }
        // Unlike rename, link never replaces: the first process wins and the others read its file.
        if link(unfinished, path) != 0, errno != EEXIST { throw failure("make \(path)", errno) }
    }

    /// Makes or replaces a file of mode 0600, all at once.
    static func replace(_ path: String, contents: [UInt8], suffix: String) throws(DataDirectoryError) {
        let unfinished = try write(contents, beside: path, suffix: suffix)
        if rename(unfinished, path) != 0 {
            let problem = errno
            unlink(unfinished)
            throw failure("write \(path)", problem)
        }
    }

    /// Nil when there is no such file.
    ///
    /// - Parameter limit: in bytes; a larger file is refused.
    static func read(_ path: String, limit: Int) throws(DataDirectoryError) -> File? {
        let descriptor = open(path, O_RDONLY | O_CLOEXEC)
        if descriptor < 0 {
            if errno == ENOENT { return nil }
            throw failure("read \(path)", errno)
        }
        defer { close(descriptor) }
        var bytes: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 4096)
        while true {
            #if canImport(Darwin)
            let count = Darwin.read(descriptor, &buffer, buffer.count)
            #elseif canImport(Musl)
            let count = Musl.read(descriptor, &buffer, buffer.count)
            #else
            let count = Glibc.read(descriptor, &buffer, buffer.count)
            #endif
            if count < 0, errno == EINTR { continue }
            guard count >= 0 else { throw failure("read \(path)", errno) }
            if count == 0 { break }
            bytes += buffer[..<count]
            guard bytes.count <= limit else { throw DataDirectoryError("\(path) is larger than \(limit) bytes.") }
        }
        let attributes = try? FileManager.default.attributesOfItem(atPath: path)
        let mode = (attributes?[.posixPermissions] as? NSNumber)?.intValue ?? 0o600
        return File(bytes: bytes, isReadableByOthers: mode & 0o077 != 0)
    }

    /// Writes a new file next to `path` and makes sure that it is on the disk; returns its path.
    private static func write(
        _ contents: [UInt8], beside path: String, suffix: String
    ) throws(DataDirectoryError) -> String {
        let unfinished = "\(path).\(getpid()).\(suffix)"
        let descriptor = open(unfinished, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { throw failure("write \(unfinished)", errno) }
        var written = 0
        while written < contents.count {
            let count = contents[written...].withUnsafeBytes { bytes in
                #if canImport(Darwin)
                Darwin.write(descriptor, bytes.baseAddress, bytes.count)
                #elseif canImport(Musl)
                Musl.write(descriptor, bytes.baseAddress, bytes.count)
                #else
                Glibc.write(descriptor, bytes.baseAddress, bytes.count)
                #endif
            }
            if count < 0, errno == EINTR { continue }
            if count <= 0 { break }
            written += count
        }
        let isComplete = written == contents.count && fsync(descriptor) == 0
        let problem = errno
        close(descriptor)
        if isComplete { return unfinished }
        unlink(unfinished)
        throw failure("write \(unfinished)", problem)
    }

    private static func isDirectory(_ path: String) -> Bool {
        var isDirectory = false
        return FileManager.default.fileExists(atPath: path, isDirectory: &isDirectory) && isDirectory
    }

    private static func failure(_ action: String, _ problem: Int32) -> DataDirectoryError {
        DataDirectoryError("Cannot \(action): \(String(cString: strerror(problem))).")
    }
}

/// Why a file of the data directory cannot be made, read or believed: a sentence for the operator.
public struct DataDirectoryError: Error, Equatable, Sendable, CustomStringConvertible {
    public let description: String

    init(_ description: String) { self.description = description }
}
