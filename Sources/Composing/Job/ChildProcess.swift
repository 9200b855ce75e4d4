import CSpawn
import Foundation
import Synchronization

#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif

/// Runs one command to its end. Unlike Foundation's `Process`, it closes all other descriptors of this process in the child, limits
/// what the child may use, and leaves no child behind if this process is killed.
package final class ChildProcess: Sendable {
    /// What the child may use at most.
    package struct Limits: Sendable {
        /// Seconds of CPU time, after which the kernel kills the child.
        var processor: UInt64
        /// Bytes of address space.
        var memory: UInt64
        /// Seconds of real time, after which this process kills the child.
        var seconds: Double
        /// The priority (0…19), of which 19 is the lowest. The kernel derives the priority of reads and writes from it.
        var nice: Int32

        package init(processor: UInt64, memory: UInt64 = 4 << 30, seconds: Double, nice: Int32) {
            (self.processor, self.memory, self.seconds, self.nice) = (processor, memory, seconds, nice)
        }
    }

    /// How a child has ended.
    package struct Outcome: Sendable {
        /// The exit status; nil if a signal ended the child.
        package var status: Int32?
        /// The first bytes of its standard error, at most `maxStandardError`.
        package var standardError: String

        package var isSuccess: Bool { status == 0 }
        /// The last line of the standard error, or what happened if there is none.
        package var reason: String {
            standardError.split(whereSeparator: \.isNewline).last.map(String.init)
                ?? status.map { "exit status \($0)" } ?? "ended by a signal"
        }
    }

    /// The bytes of a child's standard error that are kept. A damaged file makes ffmpeg print a line for each frame.
    package static let maxStandardError = 16 << 10

    private enum State {
        case waiting
        case running(pid_t)
        case ended
        case cancelled
    }

    private let state = Mutex(State.waiting)

    /// Runs a command. If the task is canceled, the child is killed.
    ///
    /// - Parameters:
    ///   - executable: a path.
    ///   - directory: the child's working directory.
    ///   - input: what the child reads from its standard input, which is empty without it. Belongs to one child.
    ///   - channel: an open descriptor that becomes the child's descriptor 3. It is closed in this process.
    ///   - onLine: called with each line of the standard output, on another thread.
    /// - Throws: `ComposeError.ffmpegMissing` if the command cannot be started, and `CancellationError`.
    package static func run(
        _ executable: String, _ arguments: [String], directory: String, limits: Limits, input: ChildInput? = nil,
        channel: Int32? = nil, onLine: @escaping @Sendable (Substring) -> Void = { _ in }
    ) async throws -> Outcome {
        let child = ChildProcess()
        let outcome = try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                // A thread, because it waits for the child all the time.
                Thread.detachNewThread {
                    continuation.resume(
                        with: Result { try child.run(executable, arguments, directory, limits, input, channel, onLine) }
                    )
                }
            }
        } onCancel: {
            child.cancel()
        }
        try Task.checkCancellation()
        return outcome
    }

    private func cancel() {
        state.withLock { state in
            // The child is not reaped while the state is `running`, so its id is not another process's.
            if case .running(let id) = state { Self.killGroup(id) }
            if case .ended = state { return }
            state = .cancelled
        }
    }

    /// Kills a child and what it has started: `confab_spawn` makes the child the leader of a group. A process that stays would keep
    /// the standard output open, and the child would never count as ended.
    private static func killGroup(_ id: pid_t) {
        kill(-id, SIGKILL)
        kill(id, SIGKILL)
    }

    private func run(
        _ executable: String, _ arguments: [String], _ directory: String, _ limits: Limits, _ input: ChildInput?,
        _ channel: Int32?, _ onLine: (Substring) -> Void
    ) throws -> Outcome {
        defer { input?.end() }
        var channel = channel
        defer { if let channel { close(channel) } }
        var streams = try ChildStreams(input)
        defer { streams.close() }
        let id = state.withLock { state -> pid_t? in
            guard case .waiting = state else { return nil }
            let id = Self.spawn(
                executable, arguments, directory, input: streams.input, output: streams.output.write,
                errors: streams.errors.write, channel: channel, limits)
            if let id { state = .running(id) }
            return id
        }
        streams.closeChildEnds()
        if let descriptor = channel { close(descriptor) }
        channel = nil
        guard let id else {
            if case .cancelled = state.withLock({ $0 }) { throw CancellationError() }
            throw ComposeError.ffmpegMissing(executable)
        }
        // Not the time of day, which jumps when it is set.
        let deadline = limits.seconds.isFinite ? ContinuousClock.now + .seconds(limits.seconds) : nil
        var reader = Reader(deadline: deadline)
        reader.read(output: streams.output.read, errors: streams.errors.read, input, onLine) { Self.killGroup(id) }
        // The child is a zombie or about to be one. Wait without reaping first, so that `cancel` never kills another process.
        var information = siginfo_t()
        while waitid(P_PID, id_t(id), &information, WEXITED | WNOWAIT) != 0, errno == EINTR {}
        state.withLock { $0 = .ended }
        var status: Int32 = 0
        while waitpid(id, &status, 0) < 0, errno == EINTR {}
        let code = status & 0x7f == 0 ? status >> 8 & 0xff : nil
        return Outcome(status: code, standardError: String(decoding: reader.standardError, as: UTF8.self))
    }

    private static func spawn(
        _ executable: String, _ arguments: [String], _ directory: String, input: Int32?, output: Int32, errors: Int32,
        channel: Int32?, _ limits: Limits
    ) -> pid_t? {
        var words: [UnsafeMutablePointer<CChar>?] = ([executable] + arguments).map { strdup($0) }
        var environment: [UnsafeMutablePointer<CChar>?] = [strdup("LC_ALL=C"), nil]
        words.append(nil)
        defer { for word in words + environment { free(word) } }
        var most = confab_spawn_limits(
            processor: limits.processor, memory: limits.memory, nice: limits.nice)
        let id = confab_spawn(
            executable, &words, &environment, directory, input ?? -1, output, errors, channel ?? -1, &most)
        return id > 0 ? id : nil
    }
}

private func readBytes(_ descriptor: Int32, _ buffer: inout [UInt8]) -> Int {
    read(descriptor, &buffer, buffer.count)
}

/// Reads a child's standard output and standard error until both end, and writes its standard input.
private struct Reader {
    /// nil for no limit.
    let deadline: ContinuousClock.Instant?
    private(set) var standardError: [UInt8] = []
    private var line: [UInt8] = []
    /// Lines of progress have at most 40 bytes.
    private static let maxLine = 4_096

    init(deadline: ContinuousClock.Instant?) { self.deadline = deadline }

    mutating func read(
        output: Int32, errors: Int32, _ input: ChildInput?, _ onLine: (Substring) -> Void, stop: () -> Void
    ) {
        var open = [output, errors]
        var buffer = [UInt8](repeating: 0, count: 16 << 10)
        while !open.isEmpty {
            var waiting = open.map { pollfd(fd: $0, events: Int16(POLLIN), revents: 0) }
            waiting += input?.events ?? []
            let ready = poll(&waiting, nfds_t(waiting.count), 1_000)
            if let deadline, ContinuousClock.now > deadline { stop() }
            guard ready > 0 else { continue }
            input?.proceed()
            for item in waiting where item.revents != 0 && open.contains(item.fd) {
                let count = readBytes(item.fd, &buffer)
                if count < 0, errno == EINTR { continue }
                guard count > 0 else {
                    open.removeAll { $0 == item.fd }
                    continue
                }
                if item.fd == errors {
                    standardError += buffer.prefix(
                        min(count, max(0, ChildProcess.maxStandardError - standardError.count)))
                } else {
                    take(buffer.prefix(count), onLine)
                }
            }
        }
    }

    private mutating func take(_ bytes: ArraySlice<UInt8>, _ onLine: (Substring) -> Void) {
        for byte in bytes {
            if byte == UInt8(ascii: "\n") {
                onLine(String(decoding: line, as: UTF8.self)[...])
                line.removeAll(keepingCapacity: true)
            } else if line.count < Self.maxLine {
                line.append(byte)
            }
        }
    }
}
