import Dispatch
import Foundation
import Signaling
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
                let lock = await DatabaseLock(other)
                let set = try await ann.say(.presence(.appear(.init(name: "Ann"))))
                let count = try await bob.say(.roulette(.count))
                try await bob.hear("an answer during the lock") { Self.answer($0, to: count) ? true : nil }
                try await lock.release()
                try await ann.hear("an answer after the lock") { Self.answer($0, to: set) ? true : nil }
                try await other.close()
            }
        }
    }

    @Test("a client that breaks a rule again while its removal waits for a commit hears about the first time only")
    func removal() async throws {
        try await inDirectory { directory in
            try await TestServer.run(dataDirectory: directory) { server in
                let other = try SQLiteStorage(directory: directory)
                let ann = try await SocketClient.connect(port: server.port)
                let bob = try await SocketClient.connect(port: server.port)
                _ = try await (ann.greet(), bob.greet())
                let lock = await DatabaseLock(other)
                try await ann.say(.presence(.appear(.init(name: "Ann"))))
                let large = [UInt8](repeating: UInt8(ascii: " "), count: ConfabConfiguration().rules.messageSize + 1)
                for _ in 0..<3 { try await ann.sendRaw(large) }
                let count = try await bob.say(.roulette(.count))
                try await bob.hear("an answer during the lock") { Self.answer($0, to: count) ? true : nil }
                try await lock.release()
                #expect(try await ann.hearClose() == 4413)
                let codes = await ann.heard.compactMap {
                    if case .error(let failure) = $0 { failure.error.code } else { nil }
                }
                #expect(codes == [.messageTooLarge])
                try await other.close()
            }
        }
    }

    @Test("a deletion that fails is not announced, although the client's connection has ended in memory")
    func deletion() async throws {
        try await inDirectory { directory in
            try await TestServer.run(dataDirectory: directory) { server in
                let other = try SQLiteStorage(directory: directory)
                let ann = try await SocketClient.connect(port: server.port)
                _ = try await ann.greet()
                let appear = try await ann.say(.presence(.appear(.init(name: "Ann"))))
                try await ann.hear("an answer") { Self.answer($0, to: appear) ? true : nil }
                try await other.execute(
                    "CREATE TRIGGER refuse BEFORE DELETE ON profile BEGIN SELECT RAISE(ABORT, 'refused'); END")
                let delete = try await ann.say(.presence(.delete))
                #expect(try await ann.hearClose() == 1012)
                #expect(await !ann.heard.contains { if case .ok(let ok) = $0 { ok.re == delete } else { false } })
                #expect(await !ann.heard.contains { $0.type == "presence.deleted" })
                try await other.close()
            }
        }
    }

    @Test("a deletion that fails leaves the contacts in memory as they are stored")
    func deletionWithContacts() async throws {
        try await inDirectory { directory in
            try await TestServer.run(dataDirectory: directory) { server in
                let other = try SQLiteStorage(directory: directory)
                let ann = try await SocketClient.connect(port: server.port)
                let bob = try await SocketClient.connect(port: server.port)
                let secret = try await bob.greet().identity
                _ = try await ann.greet()
                async let first = ann.meet()
                let meeting = MeetingReference(match: try await bob.meet().match)
                _ = try await first
                for client in [ann, bob] { try await client.say(.contact(.keep(meeting))) }
                for client in [ann, bob] {
                    try await client.hear("the contact") { if case .contact(.added) = $0 { true } else { nil } }
                }
                try await other.execute(
                    "CREATE TRIGGER refuse BEFORE DELETE ON contact BEGIN SELECT RAISE(ABORT, 'refused'); END")
                try await ann.say(.presence(.delete))
                #expect(try await ann.hearClose() == 1012)
                #expect(try await bob.hearClose() == 1012)
                #expect(await !bob.heard.contains { $0.type == "contact.removed" })
                let again = try await SocketClient.connect(port: server.port)
                try await again.greet(identity: secret)
                try await again.say(.contact(.list))
                let contacts = try await again.hear("the contacts") {
                    if case .contact(.list(let list)) = $0 { list.people.count } else { nil }
                }
                #expect(contacts == 1)
                try await other.close()
            }
        }
    }

    @Test("a resume during a commit does not tell earlier that something was stored")
    func resume() async throws {
        try await inDirectory { directory in
            try await TestServer.run(dataDirectory: directory) { server in
                let other = try SQLiteStorage(directory: directory)
                let ann = try await SocketClient.connect(port: server.port)
                let bob = try await SocketClient.connect(port: server.port)
                _ = try await (ann.greet(), bob.greet())
                let lock = await DatabaseLock(other)
                let appear = try await ann.say(.presence(.appear(.init(name: "Ann"))))
                let first = try await bob.say(.roulette(.count))
                try await bob.hear("an answer") { Self.answer($0, to: first) ? true : nil }
                await ann.drop()
                async let welcome = ann.reconnect()
                for _ in 0..<3 {
                    let count = try await bob.say(.roulette(.count))
                    try await bob.hear("an answer during the lock") { Self.answer($0, to: count) ? true : nil }
                }
                #expect(await !ann.heard.contains { Self.answer($0, to: appear) })
                try await lock.release()
                #expect(try await welcome.resumed)
                try await ann.hear("the answer after the lock") { Self.answer($0, to: appear) ? true : nil }
                try await other.close()
            }
        }
    }
}

/// Keeps a server's database locked, as another process could.
private final class DatabaseLock: Sendable {
    private let unlock = DispatchSemaphore(value: 0)
    private let holding: Task<Void, any Error>

    /// Returns when the database is locked.
    init(_ storage: SQLiteStorage) async {
        let (locked, announce) = AsyncStream<Void>.makeStream()
        holding = Task { [unlock] in
            try await storage.holdLock {
                announce.yield()
                unlock.wait()
            }
        }
        var signals = locked.makeAsyncIterator()
        await signals.next()
    }

    func release() async throws {
        unlock.signal()
        try await holding.value
    }
}
