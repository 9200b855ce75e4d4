import Dispatch
import Foundation
import Testing
import Wire

@testable import Server

/// What clients see while the server's database is locked, and when it refuses a change.
@Suite("Commits that wait or fail") struct CommitFailureTests {
    private func inDirectory<Result: Sendable>(_ body: (String) async throws -> Result) async throws -> Result {
        let directory = NSTemporaryDirectory() + "confab-commits-\(UUID().uuidString)"
        defer { try? FileManager.default.removeItem(atPath: directory) }
        return try await body(directory)
    }

    private static func answer(_ message: ServerMessage, to request: UInt64) -> Bool { message.re == request }

    @Test("a change that the database rejects is not answered with ok, and other clients are not affected")
    func rejected() async throws {
        try await inDirectory { directory in
            try await TestServer.run(dataDirectory: directory) { server in
                let other = try SQLiteStorage(directory: directory)
                try await other.execute(
                    "CREATE TRIGGER refuse BEFORE INSERT ON profile BEGIN SELECT RAISE(ABORT, 'refused'); END")
                let ann = try await SocketClient.connect(port: server.port)
                let bob = try await SocketClient.connect(port: server.port)
                _ = try await (ann.greet(), bob.greet())
                try await ann.say(.presence(.appear(.init(name: "Ann"))))
                #expect(try await ann.hearClose() == 1012)
                let codes = await ann.heard.compactMap {
                    if case .error(let failure) = $0 { failure.error.code } else { nil }
                }
                #expect(codes == [.storageFailed])
                let count = try await bob.say(.roulette(.count))
                try await bob.hear("an answer") { Self.answer($0, to: count) ? true : nil }
                try await other.execute("DROP TRIGGER refuse")
                try await other.close()
                let again = try await SocketClient.connect(port: server.port)
                _ = try await again.greet()
                let set = try await again.say(.presence(.appear(.init(name: "Ann"))))
                try await again.hear("an answer") { Self.answer($0, to: set) ? true : nil }
            }
        }
    }

    @Test("while another process locks the database, only requests that store something wait")
    func locked() async throws {
        try await inDirectory { directory in
            try await TestServer.run(dataDirectory: directory) { server in
                let other = try SQLiteStorage(directory: directory)
                let ann = try await SocketClient.connect(port: server.port)
                let bob = try await SocketClient.connect(port: server.port)
                _ = try await (ann.greet(), bob.greet())
                let (locked, announce) = AsyncStream<Void>.makeStream()
                let release = DispatchSemaphore(value: 0)
                async let holding: Void = other.holdLock {
                    announce.yield()
                    release.wait()
                }
                var signals = locked.makeAsyncIterator()
                await signals.next()
                let set = try await ann.say(.presence(.appear(.init(name: "Ann"))))
                let count = try await bob.say(.roulette(.count))
                try await bob.hear("an answer during the lock") { Self.answer($0, to: count) ? true : nil }
                release.signal()
                try await holding
                try await ann.hear("an answer after the lock") { Self.answer($0, to: set) ? true : nil }
                try await other.close()
            }
        }
    }
}
