import Foundation

/// Files and directories that only their owner can read. They contain private chats and the project's data.
enum StorageFiles {
    /// Creates a directory with mode 0700. Does not change an existing one.
    static func createDirectory(_ path: String) throws {
        do {
            try PrivateFiles.makeDirectory(path)
        } catch {
            throw StorageError(.notAccessible, error.description, cause: error)
        }
    }

    /// Creates an empty file with mode 0600. Sets the mode at creation, so that other users can never open it.
    ///
    /// Does not open an existing file. For a database this matters: closing any descriptor of a file releases all POSIX locks
    /// of this process on it, including SQLite's (https://www.sqlite.org/howtocorrupt.html §2.2).
    ///
    /// - Returns: `false` if `path` already exists.
    static func createFile(_ path: String) throws -> Bool {
        let descriptor = open(path, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0o600)
        if descriptor >= 0 {
            close(descriptor)
            return true
        }
        let reason = errno
        if reason == EEXIST { return false }
        throw StorageError(.notAccessible, "Cannot create \(path): \(text(of: reason)).")
    }

    static func exists(_ path: String) -> Bool { access(path, F_OK) == 0 }

    /// Runs `body` under a lock that is shared by all processes. The lock is an empty file at `path`, which is kept.
    ///
    /// - Throws: `.busy` if another process holds the lock for longer than `timeout`, `.notAccessible` if the file
    ///   cannot be opened or locked, and the errors of `body`.
    static func withLock<T>(_ path: String, timeout: Duration, _ body: () throws -> T) throws -> T {
        let descriptor = open(path, O_CREAT | O_RDWR | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else {
            throw StorageError(.notAccessible, "Cannot open \(path): \(text(of: errno)).")
        }
        // Closing the descriptor releases the lock. So does the end of the process, even after a crash.
        defer { close(descriptor) }
        let end = ContinuousClock.now + timeout
        // Poll, because a blocking flock has no timeout.
        while flock(descriptor, LOCK_EX | LOCK_NB) != 0 {
            let reason = errno
            guard reason == EWOULDBLOCK || reason == EINTR else {
                throw StorageError(.notAccessible, "Cannot lock \(path): \(text(of: reason)).")
            }
            guard ContinuousClock.now < end else {
                throw StorageError(
                    .busy,
                    "Another process is opening the database. Try again in a moment, or stop that process.")
            }
            usleep(5000)
        }
        return try body()
    }

    private static func text(of reason: Int32) -> String { String(cString: strerror(reason)) }
}
