import Foundation
import Testing

/// A server for tests that check how it starts, use a special log, or open other ports besides the public one.
final class PlainServer: Sendable {
    private let process: RunningProcess
    let directory: String
    private let logFile: String

    /// - Parameter directory: the data directory; nil creates a new one.
    init(_ settings: [String: String] = [:], flags: [String] = [], directory: String? = nil) throws {
        let folder = NSTemporaryDirectory() + "confab-hostile-\(UUID().uuidString)"
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        self.directory = directory ?? folder + "/data"
        logFile = folder + "/log"
        let environment = ProcessInfo.processInfo.environment.filter { !$0.key.hasPrefix("CONFAB_") }
            .merging(["CONFAB_METRICS_ENABLED": "false"]) { $1 }.merging(settings) { $1 }
        process = try RunningProcess(
            try Executable.confab(), ["serve", "--port", "0", "--data-dir", self.directory] + flags,
            environment: environment, logFile: logFile
        )
    }

    /// Stops the server and removes its files.
    func end() {
        process.send(SIGKILL)
        _ = process.waits(within: .seconds(10))
        try? FileManager.default.removeItem(atPath: URL(fileURLWithPath: logFile).deletingLastPathComponent().path)
    }

    var id: Int32 { process.id }
    var log: String { String(decoding: FileManager.default.contents(atPath: logFile) ?? Data(), as: UTF8.self) }

    /// Waits until the server is ready and returns its port.
    func port() throws -> Int {
        try eventually("the server is not ready: \(log)") { readyPort != nil || !process.isRunning }
        guard let port = readyPort else { throw TimedOut("the server did not start: \(log)") }
        return port
    }

    private var readyPort: Int? {
        guard let line = log.split(separator: "\n").first(where: { $0.hasPrefix("Confab is ready: ") }) else {
            return nil
        }
        return line.split(separator: " ").dropFirst(3).first?.split(separator: ":").last.flatMap { Int($0) }
    }

    /// Waits until the server has exited and returns its status.
    func status() throws -> Int32 {
        guard process.waits(within: .seconds(20)) else { throw TimedOut("the server runs: \(log)") }
        return process.status
    }
}

extension Hostile {
    @Suite("Case 24: the operator's secrets") struct AdminAttacks {
        private static func mode(_ path: String) throws -> Int {
            try #require(try FileManager.default.attributesOfItem(atPath: path)[.posixPermissions] as? Int)
        }

        @Test("each data directory has its own secret, and only its owner can read it")
        func secrets() async throws {
            try await Attack(number: 24, name: "built-in secrets, open files").run { first in
                let keys = try await ServerProcess.run { second in
                    [try await Forging(first), try await Forging(second)]
                }
                for key in keys {
                    #expect(key.secret.count == 48 && key.secret.allSatisfy { $0.isHexDigit && !$0.isUppercase })
                    #expect((8...20).contains(key.apiKey.count) && key.apiKey.allSatisfy(\.isNumber))
                }
                #expect(keys[0].secret != keys[1].secret && keys[0].apiKey != keys[1].apiKey)
                #expect(Set(keys[0].secret).count > 4)
                #expect(try Self.mode(first.dataDirectory) == 0o700)
                let files = try FileManager.default.subpathsOfDirectory(atPath: first.dataDirectory)
                #expect(files.contains("project.json") && files.contains("confab.sqlite"))
                for file in files { #expect(try Self.mode(first.dataDirectory + "/" + file) == 0o600, "\(file)") }
                return AttackOutcome(sent: "2 first starts", cameBack: "2 secrets, \(files.count) files of mode 600")
            }
        }

        @Test("a weak secret is refused with a message, and the server does not start")
        func weakSecrets() async throws {
            try await blocking {
                let weak = [
                    "x", "secret", "confab", String(repeating: "a", count: 31), String(repeating: " ", count: 48),
                    String(repeating: "é", count: 15),
                    String(repeating: "a", count: 24) + "\n" + String(repeating: "a", count: 24),
                ]
                for secret in weak {
                    let server = try PlainServer(["CONFAB_API_SECRET": secret, "CONFAB_API_KEY": "45000001"])
                    defer { server.end() }
                    #expect(try server.status() != 0)
                    let said = server.log
                    #expect(said.contains("32 to 1024 bytes"), "\(said)")
                    #expect(!said.contains("Fatal error") && !said.contains("Confab is ready"))
                    // The message must not contain the refused secret, because the operator may still use it elsewhere.
                    if secret.count > 8 { #expect(!said.contains(secret)) }
                }
                let server = try PlainServer([
                    "CONFAB_API_SECRET": String(repeating: "s", count: 32), "CONFAB_API_KEY": "45000001",
                ])
                defer { server.end() }
                _ = try server.port()
                print("hostile 24 | \(weak.count) weak secrets | refused with a sentence")
            }
        }

        @Test("an invalid project file is refused with a message: there is no default")
        func projectFiles() async throws {
            try await blocking {
                let contents = [
                    "", "{}", "{\"apiKey\":\"45000001\"}", "{\"apiKey\":\"45000001\",\"apiSecret\":\"\"}",
                    "{\"apiKey\":\"admin\",\"apiSecret\":\"\(String(repeating: "a", count: 48))\"}", "[]", "\u{0}",
                    String(repeating: "[", count: 60_000), String(repeating: "x", count: 70_000),
                ]
                for text in contents {
                    let data = NSTemporaryDirectory() + "confab-hostile-\(UUID().uuidString)"
                    try FileManager.default.createDirectory(atPath: data, withIntermediateDirectories: true)
                    defer { try? FileManager.default.removeItem(atPath: data) }
                    try Data(text.utf8).write(to: URL(fileURLWithPath: data + "/project.json"))
                    let server = try PlainServer(directory: data)
                    defer { server.end() }
                    #expect(try server.status() != 0, "\(text.prefix(40))")
                    #expect(server.log.contains("project.json") && !server.log.contains("Fatal error"), "\(server.log)")
                    #expect(FileManager.default.contents(atPath: data + "/project.json") == Data(text.utf8))
                }
                print(
                    "hostile 24 | \(contents.count) broken project files | refused with a sentence, left as they were")
            }
        }
    }
}
