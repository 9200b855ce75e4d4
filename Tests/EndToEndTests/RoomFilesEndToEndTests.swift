import Confab
import Foundation
import Testing

@Suite("Files of rooms over sockets", .ownThreads, .timeLimit(.minutes(3)))
struct RoomFilesEndToEndTests {
    private static let bytes = (0..<300_000).map { UInt8(truncatingIfNeeded: $0 &* 31) }

    /// Collects the progress of a transfer.
    private func steps(
        of transfer: (@escaping @Sendable (TransferProgress) -> Void) async throws -> Void
    ) async throws -> [TransferProgress] {
        let (steps, sink) = AsyncStream.makeStream(of: TransferProgress.self)
        try await transfer { sink.yield($0) }
        sink.finish()
        var all: [TransferProgress] = []
        for await step in steps { all.append(step) }
        return all
    }

    private func expectProgress(_ steps: [TransferProgress]) {
        #expect(steps.count > 1)
        #expect(steps.map(\.bytes) == steps.map(\.bytes).sorted())
        #expect(steps.last?.bytes == Self.bytes.count)
        #expect(steps.allSatisfy { $0.size == Self.bytes.count })
    }

    @Test(
        "a file that one person sends is downloaded by another, until it is deleted, also below a path",
        arguments: ["", "/video"])
    func file(path: String) async throws {
        let source = try Frames.file(Self.bytes, "bin")
        let copy = source.appendingPathExtension("copy")
        defer { for file in [source, copy] { try? FileManager.default.removeItem(at: file) } }
        try await TestServer.run(publicURL: "https://example.org" + path) { server in
            let (ada, bob) = (Guest(port: server.port, path: path), Guest(port: server.port, path: path))
            let here = try await ada.client.rooms.join("garden", displayName: "Ada")
            let there = try await bob.client.rooms.join("garden", displayName: "Bob")
            let events = there.events.makeAsyncIterator()
            expectProgress(try await steps { try await here.send(source, as: "Grüße.bin", progress: $0) })
            let message = try await events.first("file") { event -> RoomMessage? in
                if case .said(let message) = event, message.file != nil { message } else { nil }
            }
            let file = try #require(message.file)
            #expect((message.name, file.name, file.size) == ("Ada", "Grüße.bin", Self.bytes.count))
            #expect(there.files == [file])
            expectProgress(try await steps { try await there.download(file, to: copy, progress: $0) })
            #expect([UInt8](try Data(contentsOf: copy)) == Self.bytes)
            try await here.remove(file)
            let removed = try await events.first("deletion") { event -> RoomFileID? in
                if case .fileRemoved(let id) = event { id } else { nil }
            }
            #expect(removed == file.id)
            await #expect(throws: ConfabError.self) { try await there.download(file, to: copy) }
            #expect([UInt8](try Data(contentsOf: copy)) == Self.bytes)
        }
    }
}
