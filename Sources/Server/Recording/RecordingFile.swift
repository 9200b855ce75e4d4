import Foundation
import MediaFiles

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#elseif canImport(Darwin)
import Darwin
#endif

/// A system call on a recording that failed.
struct RecordingError: Error, Equatable {
    /// What could not be done, for the log.
    var action: String
    /// The value of `errno`.
    var code: Int32

    /// Whether the disk, or the quota of the server's user, is full.
    var isDiskFull: Bool { [ENOSPC, EDQUOT, EFBIG].contains(code) }
    var text: String { "\(action): \(String(cString: strerror(code)))" }
}

/// The folder of all archives, or of one.
///
/// Names are relative to an open directory, and links are never followed: nothing outside of the folder can be changed, even if
/// someone can write to it.
final class RecordingFolder: Sendable {
    let descriptor: Int32

    private init(_ descriptor: Int32) { self.descriptor = descriptor }

    deinit { close(descriptor) }

    /// Opens the folder of all archives. Creates it if it does not exist.
    convenience init(path: String) throws {
        try PrivateFiles.makeDirectory(path)
        let descriptor = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard descriptor >= 0 else { throw RecordingError(action: "open the folder of recordings", code: errno) }
        self.init(descriptor)
    }

    /// The free space on the disk of a folder that need not exist yet, in bytes; nil if it cannot be measured.
    static func freeSpace(_ path: String) -> Int64? {
        var path = path
        while true {
            if let free = DiskSpace.freeBytes(of: path) { return Int64(free) }
            guard errno == ENOENT, let slash = path.lastIndex(of: "/"), slash > path.startIndex else { return nil }
            path = String(path[..<slash])
        }
    }

    /// Opens a folder in this one.
    func folder(_ name: String, creating: Bool) throws(RecordingError) -> RecordingFolder {
        if creating, mkdirat(descriptor, name, 0o700) != 0, errno != EEXIST {
            throw RecordingError(action: "create the folder \(name)", code: errno)
        }
        let inner = openat(descriptor, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
        guard inner >= 0 else { throw RecordingError(action: "open the folder \(name)", code: errno) }
        if creating { fsync(descriptor) }
        return RecordingFolder(inner)
    }

    /// Creates a file. Fails if it exists.
    func create(_ name: String) throws(RecordingError) -> RecordingFile {
        let file = try file(name, O_RDWR | O_CREAT | O_EXCL)
        // Without this, a loss of power can remove the name of a file whose data is on the disk.
        fsync(descriptor)
        return file
    }

    /// Opens an existing file.
    func existing(_ name: String) throws(RecordingError) -> RecordingFile { try file(name, O_RDWR) }

    private func file(_ name: String, _ flags: Int32) throws(RecordingError) -> RecordingFile {
        let opened = openat(descriptor, name, flags | O_NOFOLLOW | O_CLOEXEC, 0o600)
        guard opened >= 0 else { throw RecordingError(action: "open the file \(name)", code: errno) }
        return RecordingFile(opened, name: name)
    }

    func contains(_ name: String) -> Bool { faccessat(descriptor, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0 }

    /// Replaces a file atomically.
    func replace(_ name: String, _ contents: [UInt8]) throws(RecordingError) {
        let temporary = name + ".part"
        unlinkat(descriptor, temporary, 0)
        let file = try create(temporary)
        try file.apply(.append(contents))
        try file.sync()
        guard renameat(descriptor, temporary, descriptor, name) == 0 else {
            throw RecordingError(action: "rename \(temporary)", code: errno)
        }
        fsync(descriptor)
    }

    func remove(_ name: String) { unlinkat(descriptor, name, 0) }
}

/// An open file of an archive. It is closed when nothing refers to it, so that a thread can sync it while another ends it.
final class RecordingFile: Sendable {
    let name: String
    private let descriptor: Int32

    fileprivate init(_ descriptor: Int32, name: String) { (self.descriptor, self.name) = (descriptor, name) }

    deinit { close(descriptor) }

    /// The current size in bytes.
    var size: Int64 {
        let end = lseek(descriptor, 0, SEEK_END)
        return max(0, Int64(end))
    }

    func apply(_ edit: FileEdit) throws(RecordingError) {
        switch edit {
        case .append(let bytes): try write(bytes, at: size)
        case .replace(let bytes, let position): try write(bytes, at: position)
        case .truncate(let size):
            guard ftruncate(descriptor, off_t(size)) == 0 else {
                throw RecordingError(action: "shorten \(name)", code: errno)
            }
        }
    }

    private func write(_ bytes: [UInt8], at position: Int64) throws(RecordingError) {
        var (done, problem): (Int, Int32) = (0, 0)
        bytes.withUnsafeBytes { bytes in
            while done < bytes.count, problem == 0 {
                let rest = UnsafeRawBufferPointer(rebasing: bytes[done...])
                let count = pwrite(descriptor, rest.baseAddress, rest.count, off_t(position) + off_t(done))
                if count > 0 { done += count } else if errno != EINTR { problem = count == 0 ? ENOSPC : errno }
            }
        }
        if problem != 0 { throw RecordingError(action: "write \(name)", code: problem) }
    }

    /// Reserves space on the disk.
    func allocate(_ size: Int64) throws(RecordingError) {
        #if canImport(Darwin)
        try apply(.truncate(size))
        #else
        let problem = posix_fallocate(descriptor, 0, off_t(size))
        guard problem == 0 else { throw RecordingError(action: "reserve space for \(name)", code: problem) }
        #endif
    }

    /// Returns at most the bytes of the range; fewer at the end of the file.
    func read(_ range: Range<Int64>) throws(RecordingError) -> [UInt8] {
        var bytes = [UInt8](repeating: 0, count: Int(range.count))
        let count = bytes.withUnsafeMutableBytes {
            pread(descriptor, $0.baseAddress, $0.count, off_t(range.lowerBound))
        }
        guard count >= 0 else { throw RecordingError(action: "read \(name)", code: errno) }
        bytes.removeLast(bytes.count - count)
        return bytes
    }

    /// Waits until everything written is on the disk.
    func sync() throws(RecordingError) {
        #if canImport(Darwin)
        let result = fsync(descriptor)
        #else
        let result = fdatasync(descriptor)
        #endif
        guard result == 0 else { throw RecordingError(action: "sync \(name)", code: errno) }
    }
}
