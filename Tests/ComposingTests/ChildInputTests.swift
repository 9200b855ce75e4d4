import Foundation
import Synchronization
import Testing

@testable import Composing

/// Small programs of the system as children.
@Suite("The standard input of a child process")
struct ChildInputTests {
    private static let limits = ChildProcess.Limits(processor: 60, seconds: 60, nice: 0)

    /// Runs a program with an input. Calls `onLine` with each line of its output.
    private static func run(
        _ input: ChildInput, _ path: String = "/bin/cat", _ arguments: [String] = [],
        onLine: @escaping @Sendable (Substring) -> Void = { _ in }
    ) async throws -> ChildProcess.Outcome {
        try await ChildProcess.run(
            path, arguments, directory: "/", limits: limits, input: input, onLine: onLine)
    }

    @Test("reaches the child in order, whether it was appended before the start or later, and ends when it is closed")
    func order() async throws {
        let input = ChildInput(maxBytes: 1 << 20)
        #expect(input.append(Array("1\n".utf8)))
        let lines = Mutex<[Int]>([])
        // Each line that the child prints appends the next one.
        let outcome = try await Self.run(input) { line in
            let number = Int(line) ?? -1
            lines.withLock { $0.append(number) }
            if number < 100 { _ = input.append(Array("\(number + 1)\n".utf8)) } else { input.close() }
        }
        #expect(outcome.isSuccess && lines.withLock { $0 } == Array(1...100))
        #expect(input.waiting == 0 && !input.append([1]))
    }

    @Test("is bounded while the child does not read it")
    func bounds() async throws {
        let input = ChildInput(maxBytes: 1 << 20)
        #expect(input.append([UInt8](repeating: 10, count: 1 << 20)) && !input.append([10]))
        #expect(input.waiting == 1 << 20)
        input.close()
        let lines = Atomic(0)
        let outcome = try await Self.run(input) { _ in lines.add(1, ordering: .relaxed) }
        // More than a pipe holds, so it was written in pieces.
        #expect(outcome.isSuccess && lines.load(ordering: .relaxed) == 1 << 20 && input.waiting == 0)
    }

    @Test("ends when the child closes it, and the child is not disturbed")
    func closedByChild() async throws {
        let input = ChildInput(maxBytes: 1 << 20)
        #expect(input.append([UInt8](repeating: 10, count: 1 << 20)))
        let lines = Mutex<[String]>([])
        let outcome = try await Self.run(input, "/bin/sh", ["-c", "exec 0<&-; echo closed; exit 3"]) { line in
            lines.withLock { $0.append(String(line)) }
        }
        #expect(outcome.status == 3 && lines.withLock { $0 } == ["closed"])
        #expect(input.waiting == 0 && !input.append([1]))
    }

    @Test("ends when the task is canceled, and the child is killed")
    func cancellation() async throws {
        let input = ChildInput(maxBytes: 1 << 20)
        #expect(input.append(Array("ready\n".utf8)))
        let (started, continuation) = AsyncStream<Void>.makeStream()
        let task = Task { try await Self.run(input) { _ in continuation.yield() } }
        for await _ in started { break }
        task.cancel()
        await #expect(throws: CancellationError.self) { _ = try await task.value }
        #expect(input.waiting == 0 && !input.append([1]))
    }

    @Test(
        "ends when the task is canceled, also if the child has started a process that keeps its output open",
        .timeLimit(.minutes(3)))
    func canceledGroup() async throws {
        let (started, continuation) = AsyncStream<Void>.makeStream()
        // The shell waits for a process of its own, which outlives it unless it is killed too.
        let task = Task {
            try await Self.run(ChildInput(maxBytes: 1), "/bin/sh", ["-c", "sleep 600 & echo started; wait"]) { _ in
                continuation.yield()
            }
        }
        for await _ in started { break }
        task.cancel()
        await #expect(throws: CancellationError.self) { _ = try await task.value }
    }

    @Test("ends when the child is killed")
    func killed() async throws {
        let input = ChildInput(maxBytes: 1 << 20)
        let outcome = try await Self.run(input, "/bin/sh", ["-c", "echo $$; exec cat"]) { line in
            if let id = pid_t(line) { kill(id, SIGKILL) }
        }
        #expect(outcome.status == nil && outcome.reason == "ended by a signal")
        #expect(input.waiting == 0 && !input.append([1]))
    }

    @Test("ends when the program does not exist, which is an error")
    func missing() async throws {
        let input = ChildInput(maxBytes: 1 << 20)
        #expect(input.append([1]))
        await #expect(throws: ComposeError.ffmpegMissing("/nothing")) { _ = try await Self.run(input, "/nothing") }
        #expect(input.waiting == 0 && !input.append([1]))
    }

    @Test("no descriptor stays open if one of the pipes cannot be made", arguments: 0..<4)
    func pipes(count: Int) throws {
        var made: [(descriptor: Int32, node: UInt64)] = []
        func makePipe() -> ChildStreams.Pipe? {
            guard made.count < 2 * count, let pipe = ChildStreams.makePipe() else { return nil }
            made += [pipe.read, pipe.write].map { ($0, Self.node($0) ?? 0) }
            return pipe
        }
        let input = ChildInput(maxBytes: 1)
        #expect(throws: ComposeError.cannotWrite("A pipe")) { _ = try ChildStreams(input, makePipe) }
        input.end()
        #expect(made.count == 2 * count)
        // Another test may have the same descriptor by now, but for another file.
        #expect(made.allSatisfy { Self.node($0.descriptor) != $0.node })
    }

    /// The number of the file of a descriptor; nil if it is closed.
    private static func node(_ descriptor: Int32) -> UInt64? {
        var status = stat()
        return fstat(descriptor, &status) == 0 ? UInt64(status.st_ino) : nil
    }
}
