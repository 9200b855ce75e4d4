import Foundation
import NIOCore
import Signaling
import Testing
import Wire

@testable import Server

/// A person in a room of a test server.
private struct Member: Sendable {
    let client: SocketClient
    let place: WHIPPlace
    let files: RoomFileAccess

    static func enter(_ server: TestServer, _ name: String) async throws -> Member {
        let client = try await server.client()
        let joined = try await client.enter(RoomVerb.Join(name: RoomName("Tea"), displayName: name))
        return Member(client: client, place: try WHIPPlace(server), files: try #require(joined.files))
    }

    func announce(_ name: String = "plan.pdf", size: Int) async throws -> RoomNotice.Upload {
        try await client.say(.room(.file(.init(name: name, size: size))))
        return try await client.hear("room.upload") { if case .room(.upload(let upload)) = $0 { upload } else { nil } }
    }

    /// The code with which the server refuses a file.
    func refusal(size: Int) async throws -> WireError.Code {
        try await client.say(.room(.file(.init(name: "plan.pdf", size: size))))
        return try await client.hear("error") { if case .error(let failure) = $0 { failure.error.code } else { nil } }
    }

    func put(_ upload: RoomNotice.Upload, _ text: String) async throws -> WHIPPlace.Answer {
        try await place.ask("PUT", upload.path, token: "\(upload.secret)", [:], text)
    }

    /// Sends a file and returns its id.
    func send(_ text: String) async throws -> RoomFileID {
        let upload = try await announce(size: text.utf8.count)
        let answer = try await put(upload, text)
        try #require(answer.status == 204, "\(answer.text)")
        return upload.id
    }

    func get(_ id: RoomFileID, token: String? = nil) async throws -> WHIPPlace.Answer {
        try await place.ask("GET", "\(files.path)/\(id)", token: token ?? "\(files.key)")
    }

    func hearLine() async throws -> RoomLine {
        try await client.hear("room.said") { if case .room(.said(let line)) = $0 { line } else { nil } }
    }

    func hearRemoved() async throws -> RoomFileID {
        try await client.hear("room.fileRemoved") { message in
            if case .room(.fileRemoved(let file)) = message { file.id } else { nil }
        }
    }
}

extension TestServer {
    /// The names of the stored files.
    fileprivate var storedFiles: [String] {
        (try? FileManager.default.contentsOfDirectory(atPath: dataDirectory + "/files")) ?? []
    }

    fileprivate func expectNoFiles() async throws {
        try await eventually { storedFiles.isEmpty ? nil : "\(storedFiles) are still stored" }
    }
}

@Suite("Files in rooms", .ownThreads, .timeLimit(.minutes(2)))
struct RoomFilesTests {
    @Test("a member sends a file, and another one downloads the same bytes, which a browser can only save")
    func transfer() async throws {
        try await TestServer.run { server in
            let (ada, bob) = (try await Member.enter(server, "Ada"), try await Member.enter(server, "Bob"))
            // Several parts for the disk.
            let text = String(repeating: "Tee für zwei\n\u{0}", count: 20_000)
            let upload = try await ada.announce("Plan für Mai.pdf", size: text.utf8.count)
            #expect(try await ada.put(upload, text).status == 204)
            let line = try await bob.hearLine()
            #expect(line.text == "Plan für Mai.pdf")
            #expect(line.file == RoomFile(id: upload.id, size: text.utf8.count))
            let answer = try await bob.get(upload.id)
            #expect(answer.status == 200)
            #expect(answer.text == text)
            #expect(
                answer["Content-Disposition"]
                    == "attachment; filename=\"download\"; filename*=UTF-8''Plan%20f%C3%BCr%20Mai.pdf")
            #expect(answer["Content-Type"] == "application/octet-stream")
            #expect(answer["X-Content-Type-Options"] == "nosniff")
            #expect(answer["Content-Security-Policy"] == "sandbox; default-src 'none'")
            #expect(answer["Cache-Control"] == "no-store")
            let late = try await Member.enter(server, "Eve")
            #expect(try await late.get(upload.id).text == text)
        }
    }

    @Test("without the right token nothing is stored or sent, and the answer does not tell what exists")
    func refusals() async throws {
        try await TestServer.run { server in
            let (ada, bob) = (try await Member.enter(server, "Ada"), try await Member.enter(server, "Bob"))
            let upload = try await ada.announce(size: 3)
            for token in ["", "x", "\(ada.files.key)", "\(RoomFileKey(high: 1, low: 1))"] {
                let answer = try await ada.place.ask("PUT", upload.path, token: token, [:], "tea")
                #expect((answer.status, answer.code) == (404, "not_found"), "\(token)")
            }
            #expect(try await ada.put(upload, "tea").status == 204, "the refused ones did not use up the upload")
            #expect(try await ada.put(upload, "TEA").status == 404, "an upload works once")
            let wrong = try await bob.get(upload.id, token: "\(RoomFileKey(high: 1, low: 1))")
            #expect((wrong.status, wrong.code) == (404, "not_found"))
            for path in ["/v1/rooms/Other/files/\(upload.id)", "\(bob.files.path)/\(RoomFileID(high: 1, low: 1))"] {
                #expect(try await bob.place.ask("GET", path, token: "\(bob.files.key)").text == wrong.text, "\(path)")
            }
            #expect(try await bob.get(upload.id, token: "\(upload.secret)").text == wrong.text)
            #expect(try await bob.get(upload.id).text == "tea")
        }
    }

    @Test("a file with another size than announced is refused, and what was stored of it is deleted")
    func otherSize() async throws {
        try await TestServer.run { server in
            let (ada, bob) = (try await Member.enter(server, "Ada"), try await Member.enter(server, "Bob"))
            // More than the uploads that a person may have at a time, so each refused one must end.
            for text in ["tea", "tea", "teas!", "teas!"] {
                let upload = try await ada.announce(size: 4)
                let answer = try await ada.put(upload, text)
                #expect((answer.status, answer.code) == (400, "malformed"))
                #expect(try await ada.put(upload, "teas").status == 404)
            }
            try await server.expectNoFiles()
            _ = try await ada.send("last")
            #expect(try await bob.hearLine().file?.size == 4, "the first line is that of the complete file")
        }
    }

    @Test("a file that is too large is refused when it is announced, and when it is sent without that")
    func tooLarge() async throws {
        try await TestServer.run({ $0.rules.roomFileSize = 1000 }) { server in
            let ada = try await Member.enter(server, "Ada")
            #expect(ada.files.maxSize == 1000)
            #expect(try await ada.refusal(size: 1001) == .messageTooLarge)
            let upload = try await ada.announce(size: 1000)
            let answer = try await ada.put(upload, String(repeating: "x", count: 1001))
            #expect((answer.status, answer.code) == (400, "malformed"))
        }
        try await TestServer.run({ $0.rules.roomFileSize = 0 }) { server in
            let client = try await server.client()
            #expect(try await client.enter(RoomVerb.Join(name: RoomName("Tea"), displayName: "Ada")).files == nil)
        }
    }

    @Test("the room and the server take files only as far as they have space, and removed files give it back")
    func space() async throws {
        let configure = { (configuration: inout ConfabConfiguration) in
            configuration.rules.roomFileBytes = 8192
            configuration.rules.roomFiles = 2
        }
        try await TestServer.run(configure) { server in
            let ada = try await Member.enter(server, "Ada")
            let first = try await ada.send(String(repeating: "x", count: 1500))
            #expect(try await ada.refusal(size: 4097) == .storageFull)
            _ = try await ada.send(String(repeating: "x", count: 548))
            #expect(try await ada.refusal(size: 1) == .storageFull)
            try await ada.client.say(.room(.removeFile(.init(id: first))))
            #expect(try await ada.hearRemoved() == first)
            _ = try await ada.send(String(repeating: "x", count: 1500))
        }
    }

    @Test("a file that a host removes is gone for everyone, and its line for those who come later")
    func removal() async throws {
        try await TestServer.run { server in
            let (ada, bob) = (try await Member.enter(server, "Ada"), try await Member.enter(server, "Bob"))
            let file = try await bob.send("tea")
            try await ada.client.say(.room(.removeFile(.init(id: file))))
            #expect(try await bob.hearRemoved() == file)
            #expect(try await bob.get(file).status == 404)
            try await server.expectNoFiles()
            let client = try await server.client()
            #expect(try await client.enter(RoomVerb.Join(name: RoomName("Tea"), displayName: "Eve")).chat == [])
        }
    }

    @Test("the end of a room deletes its files, and ends an upload to it")
    func end() async throws {
        try await TestServer.run { server in
            let ada = try await Member.enter(server, "Ada")
            let file = try await ada.send("tea")
            let upload = try await ada.announce(size: 3)
            #expect(try await RoomsPlace(server).ask("DELETE", "/v1/rooms/Tea").status == 204)
            _ = try await ada.client.hear("room.ended") { if case .room(.ended) = $0 { true } else { nil } }
            #expect(try await ada.get(file).status == 404)
            #expect(try await ada.put(upload, "tea").status == 404)
            try await server.expectNoFiles()
        }
    }

    @Test("who has left the room can no longer download its files")
    func left() async throws {
        try await TestServer.run { server in
            let (ada, bob) = (try await Member.enter(server, "Ada"), try await Member.enter(server, "Bob"))
            let file = try await ada.send("tea")
            #expect(try await bob.get(file).status == 200)
            try await bob.client.say(.room(.leave))
            _ = try await bob.client.hear("ok") { if case .ok = $0 { true } else { nil } }
            #expect(try await bob.get(file).status == 404)
            #expect(try await ada.get(file).status == 200)
        }
    }

    @Test("files that an earlier run left are deleted when the server starts")
    func start() async throws {
        let directory = NSTemporaryDirectory() + "confab-test-\(UUID().uuidString)"
        defer { try? FileManager.default.removeItem(atPath: directory) }
        try FileManager.default.createDirectory(atPath: directory + "/files", withIntermediateDirectories: true)
        try "tea".write(toFile: directory + "/files/\(RoomFileID(high: 1, low: 1))", atomically: true, encoding: .utf8)
        try await TestServer.run(dataDirectory: directory) { server in
            #expect(server.storedFiles == [])
            _ = try await Member.enter(server, "Ada").send("tea")
            #expect(server.storedFiles.count == 1)
        }
    }

    @Test("files have a budget of their own, so that an address that opens many can still connect")
    func rate() async throws {
        let configure = { (configuration: inout ConfabConfiguration) in
            configuration.limits.hellos = Budget.Rate(perSecond: 0.001, burst: 3)
            configuration.limits.files = Budget.Rate(perSecond: 0.001, burst: 5)
        }
        try await TestServer.run(configure) { server in
            let ada = try await Member.enter(server, "Ada")
            let file = try await ada.send("tea")
            for _ in 0..<4 { #expect(try await ada.get(file).status == 200) }
            let refused = try await ada.get(file)
            #expect((refused.status, refused.code) == (429, "rate_limited"))
            #expect(refused["Retry-After"] != nil)
            _ = try await Member.enter(server, "Bob")
        }
    }
}

@Suite("The store of files", .timeLimit(.minutes(2)))
struct RoomFileStoreTests {
    private static let file = RoomFileID(high: 1, low: 1)

    /// Runs the body with a store in a temporary directory, and the path of its one file.
    private func withStore(_ body: (RoomFileStore, String) async throws -> Void) async throws {
        let directory = NSTemporaryDirectory() + "confab-test-\(UUID().uuidString)"
        defer { try? FileManager.default.removeItem(atPath: directory) }
        try await body(RoomFileStore(dataDirectory: directory), "\(directory)/files/\(Self.file)")
    }

    private static func body(_ parts: [String]) -> AsyncStream<ByteBuffer> {
        AsyncStream { continuation in
            for part in parts { continuation.yield(ByteBuffer(string: part)) }
            continuation.finish()
        }
    }

    /// Receives the body, and returns the error.
    private static func receive(
        _ body: AsyncStream<ByteBuffer>, _ store: RoomFileStore, size: Int
    ) async -> WireError? {
        do throws(WireError) {
            try await store.receive(body, as: file, size: size)
            return nil
        } catch {
            return error
        }
    }

    @Test("parts of any size become one file, and are read in parts of limited size")
    func parts() async throws {
        try await withStore { store, path in
            let large = String(repeating: "0123456789", count: 7000)
            let parts = Array(repeating: "a", count: 1000) + [large, "", "b", large]
            let whole = parts.joined()
            try await store.receive(Self.body(parts), as: Self.file, size: whole.utf8.count)
            #expect(try String(contentsOfFile: path, encoding: .utf8) == whole)
            var read: [ByteBuffer] = []
            try await store.read(Self.file, size: whole.utf8.count) { read.append($0) }
            #expect(read.map { String(buffer: $0) }.joined() == whole)
            #expect(read.allSatisfy { $0.readableBytes <= RoomFileStore.chunkSize })
        }
    }

    @Test("an upload whose file was deleted ends with the next part, and takes no more space")
    func deletion() async throws {
        try await withStore { store, path in
            let part = ByteBuffer(repeating: 0x61, count: RoomFileStore.chunkSize)
            let (body, sending) = AsyncStream<ByteBuffer>.makeStream()
            sending.yield(part)
            async let result = Self.receive(body, store, size: 10 * part.readableBytes)
            try await eventually { store.arrivedBytes == part.readableBytes ? nil : "nothing has arrived" }
            store.delete(Self.file)
            #expect(store.arrivedBytes == 0, "its space is free, even if the client sends no more")
            try await eventually { FileManager.default.fileExists(atPath: path) ? "the file still exists" : nil }
            sending.yield(part)
            sending.yield(part)
            let error = await result
            #expect(error?.code == .notFound)
            #expect(!FileManager.default.fileExists(atPath: path))
        }
    }

    @Test("an upload that is no longer wanted when its file exists takes no space")
    func unwanted() async throws {
        try await withStore { store, path in
            await #expect(throws: WireError.noUpload) {
                try await store.receive(Self.body(["tea"]), as: Self.file, size: 3) { throw WireError.noUpload }
            }
            let written = try Data(contentsOf: URL(filePath: path))
            #expect(written.isEmpty)
        }
    }

    @Test("a file that became shorter than promised fails its download")
    func truncated() async throws {
        try await withStore { store, path in
            try await store.receive(Self.body(["tea"]), as: Self.file, size: 3)
            await #expect(throws: WireError.self) { try await store.read(Self.file, size: 4) { _ in } }
            #expect(FileManager.default.fileExists(atPath: path))
        }
    }

    #if os(Linux)
    /// Whether this process has the file open.
    private static func isOpen(_ path: String) throws -> Bool {
        let (files, folder) = (FileManager.default, "/proc/self/fd/")
        return try files.contentsOfDirectory(atPath: folder).contains {
            (try? files.destinationOfSymbolicLink(atPath: folder + $0)) == path
        }
    }

    /// Otherwise a few hundred of them would use up the descriptors of the process.
    @Test("a client that neither reads nor sends holds no file open")
    func descriptors() async throws {
        try await withStore { store, path in
            let part = String(repeating: "x", count: RoomFileStore.chunkSize)
            let (body, sending) = AsyncStream<ByteBuffer>.makeStream()
            async let error = Self.receive(body, store, size: 2 * part.utf8.count)
            sending.yield(ByteBuffer(string: part))
            try await eventually {
                (try? Data(contentsOf: URL(filePath: path)).count) == part.utf8.count ? nil : "no data"
            }
            try await eventually { try Self.isOpen(path) ? "the file is open" : nil }
            sending.yield(ByteBuffer(string: part))
            sending.finish()
            #expect(await error == nil)
            try await store.read(Self.file, size: 2 * part.utf8.count) { _ in try #expect(!Self.isOpen(path)) }
        }
    }
    #endif

    @Test("the same file is never written twice")
    func twice() async throws {
        try await withStore { store, path in
            try await store.receive(Self.body(["tea"]), as: Self.file, size: 3)
            await #expect(throws: WireError.self) {
                try await store.receive(Self.body(["TEA"]), as: Self.file, size: 3)
            }
            #expect(try String(contentsOfFile: path, encoding: .utf8) == "tea")
        }
    }
}
