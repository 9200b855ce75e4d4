// Read file modes with Foundation instead of `stat`: which module declares the C struct depends on the other imports.
import Foundation

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#elseif canImport(Darwin)
import Darwin
#endif

/// Files that only their owner can read. They are created atomically, so that no process reads a partial file.
enum PrivateFiles {
    /// The contents of a file that was read, and whether other users of the machine can read it.
    struct File {
        var bytes: [UInt8]
        var isReadableByOthers: Bool
    }

    /// Creates a directory and its missing parents with mode 0700. Does not change an existing directory.
    static func makeDirectory(_ path: String) throws(DataDirectoryError) {
        if mkdir(path, 0o700) == 0 || errno == EEXIST && isDirectory(path) { return }
        let problem = errno
        let parent = path.split(separator: "/", omittingEmptySubsequences: true).dropLast().joined(separator: "/")
        guard problem == ENOENT, !parent.isEmpty else { throw failure("create the directory \(path)", problem) }
        try makeDirectory((path.hasPrefix("/") ? "/" : "") + parent)
        guard mkdir(path, 0o700) == 0 || errno == EEXIST else { throw failure("create the directory \(path)", errno) }
    }

    /// Creates a file with mode 0600 atomically. Does nothing if the file exists.
    ///
    /// - Parameter suffix: distinguishes this process's temporary file from those of others.
    static func create(_ path: String, contents: [UInt8], suffix: String) throws(DataDirectoryError) {
        let unfinished = try write(contents, beside: path, suffix: suffix)
        defer { unlink(unfinished) }
        // Unlike rename, link never replaces a file: the first process wins, and the others read its file.
        if link(unfinished, path) != 0, errno != EEXIST { throw failure("create \(path)", errno) }
        syncDirectory(of: path)
    }

    /// The owner and the group of a file.
    struct Owner: Equatable {
        var user: UInt32
        var group: UInt32
    }

    /// Creates or replaces a file atomically.
    ///
    /// - Parameters:
    ///   - mode: by default only the owner may read and write the file.
    ///   - owner: nil for the user of this process.
    static func replace(
        _ path: String, contents: [UInt8], suffix: String, mode: UInt32 = 0o600, owner: Owner? = nil
    ) throws(DataDirectoryError) {
        let unfinished = try write(contents, beside: path, suffix: suffix, mode: mode, owner: owner)
        if rename(unfinished, path) != 0 {
            let problem = errno
            unlink(unfinished)
            throw failure("write \(path)", problem)
        }
        syncDirectory(of: path)
    }

    /// Syncs the directory that contains `path`, so that a created or replaced file survives a power failure. The
    /// file's contents must already be synced. If the directory is not synced, the old file can reappear after the
    /// power failure. Ignores errors.
    static func syncDirectory(of path: String) {
        let descriptor = open(directory(of: path), O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { return }
        fsync(descriptor)
        close(descriptor)
    }

    private static func directory(of path: String) -> String {
        let folder = path.split(separator: "/", omittingEmptySubsequences: false).dropLast().joined(separator: "/")
        return folder.isEmpty ? (path.hasPrefix("/") ? "/" : ".") : folder
    }

    /// Runs `body` while holding the exclusive lock of this directory. Waits while another process holds it.
    static func withLock<Result>(
        on directory: String, _ body: () throws(DataDirectoryError) -> Result
    ) throws(DataDirectoryError) -> Result {
        let descriptor = open(directory, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { throw failure("open the directory \(directory)", errno) }
        // Closing the descriptor releases the lock.
        defer { close(descriptor) }
        while flock(descriptor, LOCK_EX) != 0 {
            guard errno == EINTR else { throw failure("lock the directory \(directory)", errno) }
        }
        return try body()
    }

    /// Checks that this process runs as the owner of the file. Otherwise, replacing the file would change its owner,
    /// and the server, which runs as the old owner, could no longer read it.
    ///
    /// - Throws: `DataDirectoryError` if the file belongs to a different user than this process. Does not throw if the
    ///   owner cannot be read.
    static func requireOwner(of path: String) throws(DataDirectoryError) {
        let attributes = try? FileManager.default.attributesOfItem(atPath: path)
        guard let owner = (attributes?[.ownerAccountID] as? NSNumber)?.uint32Value, owner != geteuid() else { return }
        let name = attributes?[.ownerAccountName] as? String ?? "\(owner)"
        throw DataDirectoryError(
            "\(path) belongs to the user \(name). Run this command as that user: sudo -u \(name) …")
    }

    /// Reads a file. Returns nil if it does not exist.
    ///
    /// - Parameter limit: the maximum size in bytes. A larger file is an error.
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
            guard bytes.count <= limit else {
                throw DataDirectoryError(
                    "\(path) is too large: at most \(limit) bytes are allowed. Check that it is the right file.")
            }
        }
        let attributes = try? FileManager.default.attributesOfItem(atPath: path)
        let mode = (attributes?[.posixPermissions] as? NSNumber)?.intValue ?? 0o600
        return File(bytes: bytes, isReadableByOthers: mode & 0o077 != 0)
    }

    /// Writes a temporary file next to `path`, syncs it to disk and returns its path.
    private static func write(
        _ contents: [UInt8], beside path: String, suffix: String, mode: UInt32 = 0o600, owner: Owner? = nil
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
        // The owner first, because a change of the owner can change the mode.
        let isOwned = owner.map { fchown(descriptor, $0.user, $0.group) == 0 } ?? true
        let isComplete =
            written == contents.count && isOwned && (mode == 0o600 || fchmod(descriptor, mode_t(mode)) == 0)
            && fsync(descriptor) == 0
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
        DataDirectoryError(
            "Cannot \(action): \(String(cString: strerror(problem))).", isDenied: problem == EACCES || problem == EPERM)
    }
}

/// The error for a file in the data directory that cannot be created, read or used. The description is a message for
/// the operator.
public struct DataDirectoryError: Error, Equatable, Sendable, CustomStringConvertible {
    public let description: String
    /// Whether this user may not do it.
    let isDenied: Bool

    init(_ description: String, isDenied: Bool = false) { (self.description, self.isDenied) = (description, isDenied) }
}
