import Dispatch
import Foundation
import Signaling
import Testing
import Wire

@testable import Server

/// What clients see while the server's database is locked, and when it refuses a change.
@Suite("Commits that wait or fail") struct CommitFailureTests {
    /// A server, its database as another process has it open, and two people who have said hello.
    private struct Scene: Sendable {
        let server: TestServer
        let other: SQLiteStorage
        let ann: SocketClient
        let bob: SocketClient
        let bobsSecret: String?

        /// Makes the database refuse changes of this kind.
        func refuse(_ change: String) async throws {
            try await other.execute(
                "CREATE TRIGGER refuse BEFORE \(change) BEGIN SELECT RAISE(ABORT, 'refused'); END")
        }
    }

    private func run(_ body: @escaping @Sendable (Scene) async throws -> Void) async throws {
        try await TestServer.run { server in
            let other = try SQLiteStorage(directory: server.dataDirectory)
            let (ann, bob) = (try await server.client(), try await SocketClient.connect(port: server.port))
            let secret = try await bob.greet().identity
            try await body(Scene(server: server, other: other, ann: ann, bob: bob, bobsSecret: secret))
            try await other.close()
        }
    }

    private static func answer(_ message: ServerMessage, to request: UInt64) -> Bool { message.re == request }

    private static func codes(_ messages: [ServerMessage]) -> [WireError.Code] {
        messages.compactMap { if case .error(let failure) = $0 { failure.error.code } else { nil } }
    }

    @Test("a change that the database rejects is not answered with ok, and other clients are not affected")
    func rejected() async throws {
        try await run { scene in
            try await scene.refuse("INSERT ON profile")
            try await scene.ann.say(.presence(.appear(.init(name: "Ann"))))
            #expect(try await scene.ann.hearClose() == 1012)
            #expect(Self.codes(await scene.ann.heard) == [.storageFailed])
            try await scene.bob.ask(.roulette(.count))
            try await scene.other.execute("DROP TRIGGER refuse")
            let again = try await scene.server.client()
            try await again.ask(.presence(.appear(.init(name: "Ann"))))
        }
    }

    @Test("while another process locks the database, only requests that store something wait")
    func locked() async throws {
        try await run { scene in
            let lock = await DatabaseLock(scene.other)
            let set = try await scene.ann.say(.presence(.appear(.init(name: "Ann"))))
            try await scene.bob.ask(.roulette(.count))
            try await lock.release()
            try await scene.ann.hear("an answer after the lock") { Self.answer($0, to: set) ? true : nil }
        }
    }

    @Test("a client that breaks a rule again while its removal waits for a commit hears about the first time only")
    func removal() async throws {
        try await run { scene in
            let lock = await DatabaseLock(scene.other)
            try await scene.ann.say(.presence(.appear(.init(name: "Ann"))))
            let large = [UInt8](repeating: UInt8(ascii: " "), count: ConfabConfiguration().rules.messageSize + 1)
            for _ in 0..<3 { try await scene.ann.sendRaw(large) }
            try await scene.bob.ask(.roulette(.count))
            try await lock.release()
            #expect(try await scene.ann.hearClose() == 4413)
            #expect(Self.codes(await scene.ann.heard) == [.messageTooLarge])
        }
    }

    @Test("a deletion that fails is not announced, although the client's connection has ended in memory")
    func deletion() async throws {
        try await run { scene in
            let ann = scene.ann
            try await ann.ask(.presence(.appear(.init(name: "Ann"))))
            try await scene.refuse("DELETE ON profile")
            let delete = try await ann.say(.presence(.delete))
            #expect(try await ann.hearClose() == 1012)
            #expect(await !ann.heard.contains { if case .ok(let ok) = $0 { ok.re == delete } else { false } })
            #expect(await !ann.heard.contains { $0.type == "presence.deleted" })
        }
    }

    @Test("a deletion that fails leaves the contacts in memory as they are stored")
    func deletionWithContacts() async throws {
        try await run { scene in
            let (ann, bob) = (scene.ann, scene.bob)
            async let first = ann.meet()
            let meeting = MeetingReference(match: try await bob.meet().match)
            _ = try await first
            for client in [ann, bob] { try await client.say(.contact(.keep(meeting))) }
            for client in [ann, bob] {
                try await client.hear("the contact") { if case .contact(.added) = $0 { true } else { nil } }
            }
            try await scene.refuse("DELETE ON contact")
            try await ann.say(.presence(.delete))
            #expect(try await ann.hearClose() == 1012)
            #expect(try await bob.hearClose() == 1012)
            #expect(await !bob.heard.contains { $0.type == "contact.removed" })
            let again = try await scene.server.client(identity: scene.bobsSecret)
            try await again.say(.contact(.list))
            let contacts = try await again.hear("the contacts") {
                if case .contact(.list(let list)) = $0 { list.people.count } else { nil }
            }
            #expect(contacts == 1)
        }
    }

    @Test("a resume during a commit does not tell earlier that something was stored")
    func resume() async throws {
        try await run { scene in
            let ann = scene.ann
            let lock = await DatabaseLock(scene.other)
            let appear = try await ann.say(.presence(.appear(.init(name: "Ann"))))
            try await scene.bob.ask(.roulette(.count))
            await ann.drop()
            async let welcome = ann.reconnect()
            for _ in 0..<3 { try await scene.bob.ask(.roulette(.count)) }
            #expect(await !ann.heard.contains { Self.answer($0, to: appear) })
            try await lock.release()
            #expect(try await welcome.resumed)
            try await ann.hear("the answer after the lock") { Self.answer($0, to: appear) ? true : nil }
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
