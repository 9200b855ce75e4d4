import CSpawn
import Foundation
import Synchronization

/// A program that a test starts.
///
/// Foundation's `Process` lists all descriptors of this process when it starts a program. On Linux it reads past the end of its
/// list if there are thousands, as among the tests of the server, and the process crashes.
public final class ChildProgram: Sendable {
    /// What a program that has ended printed.
    public struct Result: Sendable {
        /// The exit status; nil if a signal ended the program.
        public var status: Int32?
        /// What it wrote to its standard output.
        public var output: [UInt8]
        /// What it wrote to its standard error.
        public var standardError: String

        /// The output as UTF-8.
        public var text: String { String(decoding: output, as: UTF8.self) }
        /// The lines of the output that are not empty.
        public var lines: [String] { text.split(whereSeparator: \.isNewline).map(String.init) }
    }

    /// How a program has ended.
    public enum End: Hashable, Sendable {
        /// It exited with this status.
        case exit(status: Int32)
        /// The number of the signal that ended it.
        case signal(Int32)
    }

    /// Why a program could not be started.
    public struct Failure: Error, CustomStringConvertible { public var description: String }

    /// The process id. It may belong to another process after the program has ended.
    public let id: pid_t
    private let outcome = Mutex<End?>(nil)
    private let ended = DispatchSemaphore(value: 0)

    /// How the program has ended; nil while it runs.
    public var end: End? { outcome.withLock { $0 } }
    /// Whether the program has not ended.
    public var isRunning: Bool { end == nil }

    /// The path of an installed program; nil if there is none in the directories of `PATH`.
    public static func path(_ name: String) -> String? {
        (ProcessInfo.processInfo.environment["PATH"] ?? "").split(separator: ":").map { "\($0)/\(name)" }
            .first { FileManager.default.isExecutableFile(atPath: $0) }
    }

    /// Starts a program, which has no descriptors but the three standard ones.
    ///
    /// - Parameters:
    ///   - name: a path, or a name that is looked up in `PATH`.
    ///   - environment: its variables; nil for those of this process.
    ///   - input: becomes the standard input; nil if that is empty.
    ///   - output: becomes the standard output; nil for that of this process. The same holds for `errors`.
    public init(
        _ name: String, _ arguments: [String], environment: [String: String]? = nil, input: Int32? = nil,
        output: Int32? = nil, errors: Int32? = nil
    ) throws {
        let spawned = Self.spawn(name, arguments, environment, input: input, output: output, errors: errors)
        guard case .success(let id) = spawned else {
            throw Failure(description: "\(name) cannot be started: \(spawned)")
        }
        self.id = id
        // A thread, because it waits all the time.
        Thread.detachNewThread { [self] in
            var word: Int32 = 0
            while waitpid(id, &word, 0) < 0, errno == EINTR {}
            let end = word & 0x7f == 0 ? End.exit(status: word >> 8 & 0xff) : .signal(word & 0x7f)
            outcome.withLock { $0 = end }
            ended.signal()
        }
    }

    /// Waits until the program has ended. Returns the exit status; nil if a signal ended it.
    ///
    /// - Parameter seconds: the program is killed if it takes longer.
    @discardableResult
    public func waitForEnd(seconds: Double = 300) -> Int32? {
        if ended.wait(timeout: .now() + seconds) == .timedOut {
            kill(id, SIGKILL)
            ended.wait()
        }
        // For the next caller.
        ended.signal()
        return if case .exit(let status)? = end { status } else { nil }
    }

    /// Runs a program to its end.
    ///
    /// - Parameter name: a path, or a name that is looked up in `PATH`.
    /// - Throws: `Failure` if it cannot be started.
    public static func run(_ name: String, _ arguments: [String]) throws -> Result {
        let (output, errors) = (Pipe(), Pipe())
        let program = try ChildProgram(
            name, arguments, output: output.fileHandleForWriting.fileDescriptor,
            errors: errors.fileHandleForWriting.fileDescriptor)
        for pipe in [output, errors] { try pipe.fileHandleForWriting.close() }
        // Both are read at once, because a program waits if one of them is full.
        let standardError = Mutex(Data())
        let isRead = DispatchSemaphore(value: 0)
        Thread.detachNewThread {
            let data = (try? errors.fileHandleForReading.readToEnd()) ?? Data()
            standardError.withLock { $0 = data }
            isRead.signal()
        }
        let data = try output.fileHandleForReading.readToEnd() ?? Data()
        isRead.wait()
        let status = program.waitForEnd()
        return Result(
            status: status, output: [UInt8](data),
            standardError: String(decoding: standardError.withLock { $0 }, as: UTF8.self))
    }

    private enum Spawned {
        case success(pid_t)
        case failure(String)
    }

    private static func spawn(
        _ name: String, _ arguments: [String], _ environment: [String: String]?, input: Int32?, output: Int32?,
        errors: Int32?
    ) -> Spawned {
        var words: [UnsafeMutablePointer<CChar>?] = ([name] + arguments).map { strdup($0) }
        words.append(nil)
        var variables: [UnsafeMutablePointer<CChar>?] = (environment ?? [:]).map { strdup("\($0.key)=\($0.value)") }
        variables.append(nil)
        defer { for word in words + variables { free(word) } }
        #if canImport(Darwin)
        var actions: posix_spawn_file_actions_t?
        var attributes: posix_spawnattr_t?
        #else
        var actions = posix_spawn_file_actions_t()
        var attributes = posix_spawnattr_t()
        #endif
        posix_spawn_file_actions_init(&actions)
        posix_spawnattr_init(&attributes)
        defer {
            posix_spawn_file_actions_destroy(&actions)
            posix_spawnattr_destroy(&attributes)
        }
        if let input {
            posix_spawn_file_actions_adddup2(&actions, input, 0)
        } else {
            posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0)
        }
        if let output { posix_spawn_file_actions_adddup2(&actions, output, 1) }
        if let errors { posix_spawn_file_actions_adddup2(&actions, errors, 2) }
        // Dispatch's threads block signals, and a shell that inherits a blocked SIGCHLD waits forever.
        var none = sigset_t()
        sigemptyset(&none)
        posix_spawnattr_setsigmask(&attributes, &none)
        #if canImport(Darwin)
        posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_CLOEXEC_DEFAULT))
        #else
        confab_spawn_close_others(&actions)
        posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETSIGMASK))
        #endif
        var id: pid_t = 0
        let error =
            environment == nil
            ? posix_spawnp(&id, name, &actions, &attributes, &words, environ)
            : posix_spawnp(&id, name, &actions, &attributes, &words, &variables)
        return error == 0 ? .success(id) : .failure(String(cString: strerror(error)))
    }
}
