import Foundation
import Signaling
import Testing
import Wire

@testable import Server

@Suite("The project's files and the rotation of its secret") struct ProjectRotationTests {
    /// A temporary data directory that is removed when this value is released.
    private final class Directory {
        let path = NSTemporaryDirectory() + "/confab-test-" + UUID().uuidString
        var configuration: ConfabConfiguration {
            var configuration = ConfabConfiguration()
            configuration.dataDirectory = path
            return configuration
        }
        var project: String { path + "/project.json" }
        var key: String { path + "/server.key" }
        deinit { try? FileManager.default.removeItem(atPath: path) }

        func write(_ text: String, to file: String) throws {
            try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
            try Data(text.utf8).write(to: URL(fileURLWithPath: file))
        }
    }

    private static let oldSecret = "00112233445566778899aabbccddeeff0011223344556677"
    /// A project file of a version without server keys.
    private static let oldFile = "{\n  \"apiKey\": \"45000001\",\n  \"apiSecret\": \"\(oldSecret)\"\n}\n"
    private let now = Timestamp(milliseconds: 1_790_000_000_000)

    private func mode(_ path: String) throws -> Int {
        try #require(FileManager.default.attributesOfItem(atPath: path)[.posixPermissions] as? Int)
    }

    private func refusal(_ body: () throws -> Void) -> String {
        do {
            try body()
            return "nothing was refused"
        } catch {
            return "\(error)"
        }
    }

    @Test("a new project has a server key of 32 random bytes that is not its secret, for its owner only")
    func first() throws {
        let (one, two) = (Directory(), Directory())
        let files = try [one, two].map { try ProjectFile.open($0.configuration) }
        #expect(files[0].serverKey != files[1].serverKey)
        #expect(ServerKeyFile.bytes(of: files[0].serverKey)?.count == 32)
        #expect(try mode(one.key) == 0o600)
        let alone = try #require(Project(apiKey: files[0].apiKey, secret: files[0].apiSecret.revealed))
        #expect(try files[0].project.serverKey != alone.serverKey)
        var dumped = ""
        dump(files[0], to: &dumped)
        #expect(!dumped.contains(files[0].serverKey.revealed) && !dumped.contains(files[0].apiSecret.revealed))
    }

    @Test("a command makes no second project for a server that gets its key and secret from its environment")
    func databaseWithoutProject() async throws {
        let directory = Directory()
        try await SQLiteStorage(directory: directory.configuration.dataDirectory).close()
        let refused = refusal { _ = try ProjectFile.open(directory.configuration) }
        #expect(refused.contains("has a database but no project.json") && refused.contains("CONFAB_API_SECRET"))
        #expect(!FileManager.default.fileExists(atPath: directory.key))
        #expect(!FileManager.default.fileExists(atPath: directory.project))
        var configuration = directory.configuration
        (configuration.apiKey, configuration.apiSecret) = ("45000001", SecretText(Self.oldSecret))
        #expect(try ProjectFile.open(configuration).apiKey == "45000001")
    }

    @Test("the secret of a project of an earlier version makes the ids, before and after it is rotated")
    func upgrade() throws {
        let directory = Directory()
        try directory.write(Self.oldFile, to: directory.project)
        let old = try #require(Project(apiKey: "45000001", secret: Self.oldSecret))
        let opened = try ProjectFile.open(directory.configuration)
        #expect(try opened.project == old)
        #expect(!FileManager.default.fileExists(atPath: directory.key), "a command stores no key")

        #expect(
            refusal { _ = try ProjectFile.rotate(directory.configuration, overlap: .seconds(60), now: now) }
                .contains("Start this version"))
        #expect(try String(contentsOfFile: directory.project, encoding: .utf8) == Self.oldFile)

        try opened.keepServerKey(in: directory.path)
        #expect(try mode(directory.key) == 0o600)
        #expect(try String(contentsOfFile: directory.project, encoding: .utf8) == Self.oldFile)
        let rotated = try ProjectFile.rotate(directory.configuration, overlap: .seconds(60), now: now).file
        #expect(rotated.apiSecret != opened.apiSecret)
        #expect(try rotated.project.serverKey == old.serverKey)
        #expect(try ProjectFile.open(directory.configuration) == rotated)
        #expect(try mode(directory.project) == 0o600)
    }

    @Test("the end of the overlap is an absolute time in the file, and 0s refuses the previous secret at once")
    func overlap() throws {
        let directory = Directory()
        let made = try ProjectFile.open(directory.configuration)
        let rotation = try ProjectFile.rotate(directory.configuration, overlap: .seconds(3600), now: now)
        #expect(rotation.cutShort == nil)
        #expect(rotation.file.previous?.secret == made.apiSecret)
        #expect(rotation.file.previous?.acceptedUntil == now + .seconds(3600))
        #expect(
            try String(contentsOfFile: directory.project, encoding: .utf8).contains("\"2026-09-21T15:13:20Z\""))
        #expect(rotation.file.apiKey == made.apiKey && rotation.file.serverKey == made.serverKey)

        let later = now + .seconds(10)
        let second = try ProjectFile.rotate(directory.configuration, overlap: .zero, now: later)
        #expect(second.cutShort == now + .seconds(3600), "the first secret's overlap ends with the second rotation")
        #expect(second.file.previous?.secret == rotation.file.apiSecret)
        #expect(second.file.previous.map { $0.acceptedUntil <= later } == true)
        let third = try ProjectFile.rotate(directory.configuration, overlap: .seconds(1), now: later + .seconds(10))
        #expect(third.cutShort == nil, "that overlap was over already")
    }

    @Test("rotations at the same time follow one another")
    func concurrent() async throws {
        let directory = Directory()
        let configuration = directory.configuration
        _ = try ProjectFile.open(configuration)
        let (now, count) = (now, 16)
        let made = try await withThrowingTaskGroup(of: ProjectFile.self) { group in
            for _ in 0..<count {
                group.addTask { try ProjectFile.rotate(configuration, overlap: .seconds(60), now: now).file }
            }
            return try await group.reduce(into: []) { $0.append($1) }
        }
        let secrets = Set(made.map(\.apiSecret))
        #expect(secrets.count == count)
        let last = try ProjectFile.open(configuration)
        #expect(secrets.contains(last.apiSecret))
        // Each rotation but the last is the one before exactly one other.
        #expect(Set(made.compactMap(\.previous?.secret)).count == count)
        #expect(
            Set(try FileManager.default.contentsOfDirectory(atPath: directory.path)) == ["project.json", "server.key"])
    }

    @Test("with a secret from the configuration, the ids stay valid when that secret changes, and rotate refuses")
    func overridden() throws {
        let directory = Directory()
        var configuration = directory.configuration
        (configuration.apiKey, configuration.apiSecret) = ("45000001", SecretText(Self.oldSecret))
        let old = try #require(Project(apiKey: "45000001", secret: Self.oldSecret))
        let opened = try ProjectFile.open(configuration)
        #expect(try opened.project == old)
        try opened.keepServerKey(in: directory.path)

        configuration.apiSecret = SecretText(String(repeating: "b", count: 40))
        let changed = try ProjectFile.open(configuration).project
        #expect(changed.serverKey == old.serverKey && changed != old)
        #expect(
            refusal { _ = try ProjectFile.rotate(configuration, overlap: .zero, now: now) }.contains(
                "CONFAB_API_SECRET"))
        #expect(!FileManager.default.fileExists(atPath: directory.project))
        // A command without the variables must not make a project that the server does not use.
        #expect(
            refusal { _ = try ProjectFile.rotate(directory.configuration, overlap: .zero, now: now) }
                .contains("does not exist"))
        #expect(!FileManager.default.fileExists(atPath: directory.project))
    }

    @Test("a secret that overrides the one of an earlier version's file makes the ids, as it did")
    func overriddenFile() throws {
        let directory = Directory()
        try directory.write(Self.oldFile, to: directory.project)
        var configuration = directory.configuration
        configuration.apiSecret = SecretText(String(repeating: "b", count: 40))
        let opened = try ProjectFile.open(configuration)
        #expect(try opened.project == Project(apiKey: "45000001", secret: String(repeating: "b", count: 40)))
        try opened.keepServerKey(in: directory.path)
        #expect(try ProjectFile.open(directory.configuration).serverKey == opened.serverKey)
    }

    @Test(
        "a missing or damaged server key is refused with a sentence and left as it is",
        arguments: [nil, "", "AAAA", "!", String(repeating: "A", count: 6000)])
    func damaged(text: String?) throws {
        let directory = Directory()
        _ = try ProjectFile.open(directory.configuration)
        try FileManager.default.removeItem(atPath: directory.key)
        if let text { try directory.write(text, to: directory.key) }
        let said = refusal { _ = try ProjectFile.open(directory.configuration) }
        #expect(said.contains("server.key"), "\(said)")
        #expect(FileManager.default.contents(atPath: directory.key) == text.map { Data($0.utf8) })
        #expect(refusal { _ = try ProjectFile.rotate(directory.configuration, overlap: .zero, now: now) } == said)
    }

    @Test(
        "a previous secret that cannot be used is refused with a sentence",
        arguments: [
            "\"previousSecret\": \"short\", \"previousSecretUntil\": \"2026-01-31T12:00:00Z\"",
            "\"previousSecret\": \"\(oldSecret)\"", "\"previousSecretUntil\": \"2026-01-31T12:00:00Z\"",
            "\"previousSecret\": \"\(oldSecret)\", \"previousSecretUntil\": \"tomorrow\"",
        ])
    func previous(members: String) throws {
        let directory = Directory()
        try directory.write(
            "{\"apiKey\": \"45000001\", \"apiSecret\": \"\(Self.oldSecret)\", \(members)}", to: directory.project)
        let said = refusal { _ = try ProjectFile.open(directory.configuration) }
        #expect(said.contains("previousSecret"), "\(said)")
        #expect(!said.contains(Self.oldSecret))
    }

    @Test("reading the files again creates nothing")
    func reopening() throws {
        let directory = Directory()
        #expect(refusal { _ = try ProjectFile.reopen(directory.configuration) }.contains("is missing"))
        #expect(!FileManager.default.fileExists(atPath: directory.path))
        let made = try ProjectFile.open(directory.configuration)
        #expect(try ProjectFile.reopen(directory.configuration) == made)
    }
}
