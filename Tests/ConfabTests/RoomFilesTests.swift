import Foundation
import TestSupport
import Testing
import Wire

@testable import Confab

@Suite("Files of rooms", .timeLimit(.minutes(3)))
struct RoomFilesTests {
    private let folder: URL

    init() throws {
        folder = FileManager.default.temporaryDirectory.appendingPathComponent("confab-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    }

    /// Runs a test in a room whose server takes files of at most 5000 bytes.
    private func inRoom(_ body: (Room, LoopbackServer) async throws -> Void) async throws {
        let server = LoopbackServer(.relayed, hasRooms: true)
        defer {
            server.finish()
            try? FileManager.default.removeItem(at: folder)
        }
        let client = ConfabClient(
            server: URL(string: "https://chat.example.org/video")!, credential: .anonymous(MemoryIdentity()),
            in: server.dependencies)
        try await body(try await client.rooms.join("garden"), server)
        withExtendedLifetime(client) {}
    }

    private func file(_ size: Int, _ name: String = "notes.txt") throws -> URL {
        let file = folder.appendingPathComponent(name)
        try Data((0..<size).map { UInt8(truncatingIfNeeded: $0) }).write(to: file)
        return file
    }

    private func names() throws -> [String] { try FileManager.default.contentsOfDirectory(atPath: folder.path) }

    private func failure(_ body: () async throws(ConfabError) -> Void) async -> ConfabError.Code? {
        do throws(ConfabError) {
            try await body()
            return nil
        } catch {
            return error.code
        }
    }

    @Test("a file is sent to where the server says, and appears in the chat")
    func sending() async throws {
        try await inRoom { room, server in
            let (source, progress) = (try file(2500), LockedValue<[TransferProgress]>([]))
            #expect(room.maxFileSize == 5000)
            let events = room.events.makeAsyncIterator()
            try await room.send(source) { step in progress.withLock { $0.append(step) } }
            #expect(server.files.stored.keys.sorted() == ["/video/v1/rooms/garden/files/1"])
            #expect(server.files.stored.values.first == [UInt8](try Data(contentsOf: source)))
            #expect(server.files.bearers == ["\(LoopbackServer.uploadSecret)"])
            #expect(progress.withLock { $0.map(\.bytes) } == [1000, 2000, 2500])
            #expect(progress.withLock { $0.last?.fraction } == 1)
            server.post(.tellRoom(.said(LoopbackServer.line(of: "notes.txt", size: 2500))))
            while let event = await events.next() {
                guard case .said(let message) = event else { continue }
                #expect(message.file?.name == "notes.txt" && message.file?.size == 2500)
                break
            }
            #expect(room.files.map(\.name) == ["notes.txt"])
        }
    }

    @Test("a file is downloaded with progress, and appears in one step")
    func downloading() async throws {
        try await inRoom { room, server in
            let shared = SharedFile(LoopbackServer.line(of: "notes.txt", size: 2500).file!, named: "notes.txt")
            let bytes = [UInt8](repeating: 7, count: 2500)
            server.files.store(bytes, at: "/video/v1/rooms/garden/files/\(shared.id)")
            let (target, progress) = (folder.appendingPathComponent("copy"), LockedValue<[Int]>([]))
            try Data("old".utf8).write(to: target)
            try await room.download(shared, to: target) { step in progress.withLock { $0.append(step.bytes) } }
            #expect([UInt8](try Data(contentsOf: target)) == bytes)
            #expect(progress.withLock { $0 } == [1000, 2000, 2500])
            #expect(server.files.bearers == ["\(LoopbackServer.fileKey)"])
            let left = try names()
            #expect(left == ["copy"])
        }
    }

    @Test("a file of another size, a deleted file and an unwritable folder leave nothing behind")
    func failedDownloads() async throws {
        try await inRoom { room, server in
            let shared = SharedFile(LoopbackServer.line(of: "notes.txt", size: 2500).file!, named: "notes.txt")
            let target = folder.appendingPathComponent("copy")
            func download(to target: URL) async -> ConfabError.Code? {
                await failure { () async throws(ConfabError) in try await room.download(shared, to: target) }
            }
            #expect(await download(to: target) == .notFound)
            for size in [2499, 2501, 100_000] {
                server.files.store(Array(repeating: 7, count: size), at: "/video/v1/rooms/garden/files/\(shared.id)")
                #expect(await download(to: target) == .connectFailed, "\(size)")
            }
            let left = try names()
            #expect(left == [])
            #expect(await download(to: folder.appendingPathComponent("none/copy")) == .fileUnwritable)
        }
    }

    @Test("a file that is missing, empty or too large is not sent")
    func refusedFiles() async throws {
        try await inRoom { room, server in
            func send(_ file: URL) async -> ConfabError? {
                do throws(ConfabError) {
                    try await room.send(file)
                    return nil
                } catch {
                    return error
                }
            }
            #expect(await send(folder.appendingPathComponent("none"))?.code == .fileUnreadable)
            let (empty, large, small) = (try file(0, "empty"), try file(5001, "large"), try file(10, "small"))
            #expect(await send(empty)?.code == .fileUnreadable)
            let tooLarge = await send(large)
            #expect(tooLarge?.code == .messageTooLarge)
            #expect(tooLarge?.message.contains("5000 bytes") == true)
            #expect(server.files.bearers == [])
            let body = #"{"code":"storage_quota","message":"The room has no space left."}"#
            server.files.refuse(HTTPResponse(status: 507, body: Array(body.utf8)))
            #expect(await send(small)?.message == "The room has no space left.")
        }
    }

    @Test("a canceled task ends its transfer")
    func canceling() async throws {
        try await inRoom { room, server in
            server.files.stall()
            let source = try file(10)
            let sending = Task { try await room.send(source) }
            try await until("the transfer begins") { !server.files.bearers.isEmpty }
            sending.cancel()
            await #expect(throws: ConfabError.cancelled) { try await sending.value }
            #expect(server.files.cancelled == 1)
            #expect(!server.files.wasClosedEarly)
        }
    }

    @Test("a deleted file leaves the chat, and the application is notified")
    func deleted() async throws {
        try await inRoom { room, server in
            let events = room.events.makeAsyncIterator()
            let line = LoopbackServer.line(of: "notes.txt", size: 1)
            server.post(.tellRoom(.said(line)))
            server.post(.tellRoom(.fileRemoved(.init(id: line.file!.id))))
            while let event = await events.next() {
                guard case .fileRemoved(let id) = event else { continue }
                #expect(id == line.file?.id)
                break
            }
            #expect(room.files.isEmpty)
        }
    }

    @Test(
        "the name of a file leads out of no folder, whatever the server sends",
        arguments: [
            ("notes.txt", "notes.txt"), ("Grüße.pdf", "Grüße.pdf"), ("../../etc/passwd", "_.._etc_passwd"),
            ("..", "file"), ("", "file"), ("a\u{0}b", "a_b"), ("a\u{202E}fdp.exe", "a_fdp.exe"), ("C:\\x", "C__x"),
            (".hidden", "hidden"), (String(repeating: "é", count: 150), String(repeating: "é", count: 100)),
        ])
    func names(_ sent: String, _ safe: String) {
        #expect(SharedFile.safe(sent) == safe)
    }

    @Test(
        "an address that the server names stays on the server",
        arguments: [
            "//evil.example/x", "@evil.example/", ".evil.example/", "", "/a?b", "/a b", "/a\r\nHost: b", "/%zz",
        ])
    func addresses(_ path: String) {
        let client = ConfabClient(server: URL(string: "https://chat.example.org/video")!)
        if let address = try? client.core.address(of: path) {
            #expect(address.absoluteString.hasPrefix("https://chat.example.org/video/"))
        }
    }
}
