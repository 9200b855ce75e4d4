import Foundation

/// Files and directories that only their owner may read: chats of strangers and the project's data are in them.
enum StorageFiles {
    /// Makes the directory with mode 0700; one that exists is left as its owner set it.
    static func createDirectory(_ path: String) throws {
        do {
            try PrivateFiles.makeDirectory(path)
        } catch {
            throw StorageError(.notAccessible, error.description, cause: error)
        }
    }

    /// Makes an empty file with mode 0600, from the start: changing the mode later would leave a moment to open it.
    ///
    /// A file that exists is not even opened. That matters for a database: closing any descriptor of a file drops all
    /// of this process's POSIX locks on it, SQLite's included (https://www.sqlite.org/howtocorrupt.html §2.2).
    ///
    /// - Returns: `false` when there is something at `path` already.
    static func createFile(_ path: String) throws -> Bool {
        let descriptor = open(path, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0o600)
        if descriptor >= 0 {
            close(descriptor)
            return true
        }
        let reason = errno
        if reason == EEXIST { return false }
        throw StorageError(.notAccessible, "The file \(path) cannot be made: \(text(of: reason)).")
    }

    /// Runs `body` while no other process runs one under the same `path`, an empty file that stays there.
    ///
    /// - Throws: `.busy` when another one takes longer than `timeout`.
    static func withLock<T>(_ path: String, timeout: Duration, _ body: () throws -> T) throws -> T {
        let descriptor = open(path, O_CREAT | O_RDWR | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else {
            throw StorageError(.notAccessible, "The file \(path) cannot be opened: \(text(of: errno)).")
        }
        // Closing gives the lock back, and so does the end of the process, however it ends.
        defer { close(descriptor) }
        let end = ContinuousClock.now + timeout
        // Asking again and again, because a blocking flock has no timeout.
        while flock(descriptor, LOCK_EX | LOCK_NB) != 0 {
            let reason = errno
            guard reason == EWOULDBLOCK || reason == EINTR else {
                throw StorageError(.notAccessible, "The file \(path) cannot be locked: \(text(of: reason)).")
            }
            guard ContinuousClock.now < end else {
                throw StorageError(.busy, "Another program is still opening the database; end it, or try again.")
            }
            usleep(5000)
        }
        return try body()
    }

    private static func text(of reason: Int32) -> String { String(cString: strerror(reason)) }
}
