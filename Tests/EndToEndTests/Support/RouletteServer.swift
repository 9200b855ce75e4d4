import Foundation
import Server
import TestSupport
import Testing

#if canImport(Glibc)
import Glibc
#else
import Darwin
#endif

/// The server in `Examples/RouletteServer`, as a process that creates sessions and tokens with OpenTok's SDK for Python.
struct RouletteServer: Sendable {
    // Both are less than the time limit of the tests, which cannot end a process.
    /// How many seconds the download of the SDK may take.
    private static let setupLimit = 90
    /// After how many seconds the server ends, whatever the tests do.
    private static let limit = 110

    fileprivate let port: UInt16

    /// Starts the server, runs `body` and ends the server. What the server prints meanwhile, such as an exception, fails the
    /// test.
    static func run(_ server: TestServer, _ body: @Sendable (RouletteServer) async throws -> Void) async throws {
        let root = URL(filePath: #filePath).resolvingSymlinksInPath().appending(path: "../../../..").standardized
        // This downloads the SDK if it is missing.
        let setup = try LimitedProcess(
            ["--kill-after=5", "\(setupLimit)", root.appending(path: "scripts/browser-setup").path, "--opentok"])
        let (said, status) = setup.wait()
        try #require(
            status == 0,
            "scripts/browser-setup did not provide OpenTok's SDK for Python within \(setupLimit) s. It printed: \(said)"
        )
        let python = try #require(said.split(separator: "\n").last.map(String.init))

        let process = try LimitedProcess([
            "--foreground", "--signal=KILL", "\(limit)", python, "-B",
            root.appending(path: "Examples/RouletteServer/server.py").path,
            "http://127.0.0.1:\(server.port)", server.project.apiKey, server.project.apiSecret.revealed, "0",
        ])
        let greeting = "Listening on port "
        var lines: [String] = []
        while let line = process.output.line() {
            lines.append(line)
            if line.hasPrefix(greeting) { break }
        }
        let port = lines.last.flatMap { UInt16($0.dropFirst(greeting.count)) }
        let result: Result<Void, any Error>
        do {
            let port = try #require(port, "The server named no port within \(limit) s. It printed: \(lines)")
            try await body(RouletteServer(port: port))
            result = .success(())
        } catch {
            result = .failure(error)
        }
        process.endTime()
        let rest = process.wait().output
        #expect(rest.isEmpty, "The server printed: \(rest)")
        try result.get()
    }
}

/// A process under `timeout`, which ends it after some time even if the tests crash.
private struct LimitedProcess {
    private let program: ChildProgram
    /// What the process prints, errors too.
    let output: FileHandle

    /// - Parameter arguments: options of `timeout`, the limit in seconds, and the command.
    init(_ arguments: [String]) throws {
        let pipe = Pipe()
        output = pipe.fileHandleForReading
        let end = pipe.fileHandleForWriting
        defer { try? end.close() }
        program = try ChildProgram("timeout", arguments, output: end.fileDescriptor, errors: end.fileDescriptor)
    }

    /// Makes `timeout` act as if the time were over.
    func endTime() { if program.isRunning { kill(program.id, SIGALRM) } }

    /// Waits for the end, and returns what the process printed that has not been read. The status is nil if a signal ended it.
    func wait() -> (output: String, status: Int32?) {
        let text = String(decoding: output.readDataToEndOfFile(), as: UTF8.self)
        return (text, program.waitForEnd())
    }
}

/// A client of `RouletteServer`, which exchanges events over a plain socket.
final class RouletteVisitor: Sendable {
    private struct Event: Decodable {
        var name: String
        var args: [RouletteTokClient.Admission]
    }

    private let socket: FileHandle
    private let queue = DispatchQueue(label: "roulette visitor")

    init(_ server: RouletteServer) throws {
        socket = FileHandle(
            fileDescriptor: try #require(Relay.socketConnected(to: server.port), "The server accepts no connection."),
            closeOnDealloc: true)
    }

    func emit(_ event: String) throws {
        let line = Array("{\"name\": \"\(event)\"}\n".utf8)
        let sent = send(socket.fileDescriptor, line, line.count, Int32(MSG_NOSIGNAL))
        try #require(sent == line.count, "The server closed the connection before \(event) was sent.")
    }

    /// Waits for this event, which must be the next, and returns its argument if it has one.
    @discardableResult func next(_ name: String) async throws -> RouletteTokClient.Admission? {
        let line = await withTaskCancellationHandler {
            await withCheckedContinuation { done in
                queue.async { [socket] in done.resume(returning: socket.line()) }
            }
        } onCancel: {
            // This ends the wait.
            shutdown(socket.fileDescriptor, Int32(SHUT_RDWR))
        }
        let text = try #require(line, "The server sent no \(name) until the connection ended or the time was over.")
        let event = try JSONDecoder().decode(Event.self, from: Data(text.utf8))
        try #require(event.name == name)
        return event.args.first
    }
}

extension FileHandle {
    /// Waits for the next line, and returns it without its end; nil if no whole line follows.
    fileprivate func line() -> String? {
        var line = Data()
        while let byte = (try? read(upToCount: 1))?.first {
            if byte == 10 { return String(decoding: line, as: UTF8.self) }
            line.append(byte)
        }
        return nil
    }
}
