import Foundation
import Testing

@testable import Confab

@Suite("An identity in a file")
struct IdentityStoreTests {
    @Test("the newest secret is kept in a file that only its owner can read, and nothing else is left")
    func file() throws {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent("confab-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        let file = folder.appendingPathComponent("identity")
        let store = FileIdentity(file)
        #expect(try store.load() == nil)
        try store.save("a_first")
        try store.save("a_second")
        #expect(try store.load() == "a_second")
        let mode = try FileManager.default.attributesOfItem(atPath: file.path)[.posixPermissions] as? Int
        #expect(mode == 0o600)
        #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path) == ["identity"])
    }

    @Test("a secret that cannot be written is an error")
    func unwritable() {
        let store = FileIdentity(URL(filePath: "/nonexistent/identity"))
        #expect(throws: (any Error).self) { try store.save("a_secret") }
    }
}
