import Foundation

/// Ensures that only one server uses a data directory.
///
/// Two servers would each keep separate people and sessions in memory, without access to those of the other. The lock
/// on the file `confab.lock` is held as long as this object lives and is released when the process ends, even after a
/// crash. Commands such as `confab ban` do not take the lock, because they may run beside the server.
final class DirectoryLock: Sendable {
    static let fileName = "confab.lock"

    private let descriptor: Int32

    /// - Parameters:
    ///   - timeout: how long to wait for a server that is stopping. Blocks the thread, so call it only at startup.
    ///   - onWait: called once if another server holds the lock, before waiting.
    /// - Throws: `DataDirectoryError` if another server still holds the lock after `timeout`, or if the directory or
    ///   the file cannot be created or locked.
    init(
        directory: String, timeout: Duration = .zero, onWait: (String) -> Void = { _ in }
    ) throws(DataDirectoryError) {
        try PrivateFiles.makeDirectory(directory)
        let path = directory + "/" + Self.fileName
        let descriptor = open(path, O_CREAT | O_RDWR | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else {
            throw DataDirectoryError("Cannot open \(path): \(String(cString: strerror(errno))). Check its permissions.")
        }
        self.descriptor = descriptor
        try Self.lock(descriptor, path, directory, timeout, onWait)
        let text = Array("\(getpid())\n".utf8)
        _ = ftruncate(descriptor, 0)
        _ = text.withUnsafeBytes { pwrite(descriptor, $0.baseAddress, $0.count, 0) }
    }

    private static func lock(
        _ descriptor: Int32, _ path: String, _ directory: String, _ timeout: Duration, _ onWait: (String) -> Void
    ) throws(DataDirectoryError) {
        let end = ContinuousClock.now + timeout
        var isWaiting = false
        // Poll, because a blocking flock has no timeout.
        while flock(descriptor, LOCK_EX | LOCK_NB) != 0 {
            guard errno == EWOULDBLOCK || errno == EINTR else {
                throw DataDirectoryError(
                    "Cannot lock \(path): \(String(cString: strerror(errno))). Put the data directory on a local disk.")
            }
            let holder = Self.process(in: descriptor).map { " (process \($0))" } ?? ""
            guard ContinuousClock.now < end else {
                throw DataDirectoryError(
                    "Another server\(holder) is using the data directory \(directory). Stop it, or choose another "
                        + "directory with --data-dir.")
            }
            if !isWaiting { onWait("Waiting for another server\(holder) to release the data directory \(directory).") }
            isWaiting = true
            usleep(20_000)
        }
    }

    deinit { close(descriptor) }

    /// Returns the process ID that the lock's holder wrote into the file; nil if there is none.
    private static func process(in descriptor: Int32) -> Int32? {
        var bytes = [UInt8](repeating: 0, count: 16)
        let count = bytes.withUnsafeMutableBytes { pread(descriptor, $0.baseAddress, $0.count, 0) }
        guard count > 0 else { return nil }
        return Int32(String(decoding: bytes.prefix(count), as: UTF8.self).prefix { $0.isNumber })
    }
}
