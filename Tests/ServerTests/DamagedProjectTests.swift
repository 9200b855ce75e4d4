import Foundation
import Logging
import Signaling
import Testing
import Wire

@testable import Server

@Suite("Projects whose rows are damaged or unusual", .ownThreads, .timeLimit(.minutes(3))) struct DamagedProjectTests {
    private static let quick: @Sendable (inout ConfabConfiguration) -> Void = {
        $0.storage.pollInterval = .milliseconds(20)
    }

    private func add(_ name: String, to storage: SQLiteStorage, secret: String? = nil) async throws -> StoredProject {
        var random = SystemRandomNumberGenerator()
        var project = StoredProject(name: name, createdAt: RoomsPlace.now, using: &random)
        if let secret { project.secret = SecretText(secret) }
        let added = project
        try #require(try await storage.addProject(added, recording: entry("create", added)))
        return added
    }

    private func entry(_ action: String, _ project: StoredProject) -> AuditEntry {
        AuditEntry(
            at: RoomsPlace.now, actor: AuditEntry.operatorActor, action: "project.\(action)", subject: project.apiKey)
    }

    private func application(_ project: StoredProject, _ server: TestServer) throws -> ProjectsTests.Application {
        try ProjectsTests.Application(
            server,
            JSONObject([
                .init(name: "apiKey", value: .string(project.apiKey)),
                .init(name: "apiSecret", value: .string(project.secret?.revealed ?? "")),
            ]))
    }

    private func expect(_ status: Int, _ application: ProjectsTests.Application) async throws {
        try await eventually {
            let answer = try await application.ask("GET", "~/render")
            return answer.status == status ? nil : answer.text
        }
    }

    @Test(
        "a project that is damaged keeps its sessions, is logged once, and prevents neither other changes nor a start")
    func damage() async throws {
        let directory = NSTemporaryDirectory() + "confab-damaged-\(UUID().uuidString)"
        defer { try? FileManager.default.removeItem(atPath: directory) }
        let lines = LogLines()
        let (bad, good) = try await TestServer.run(dataDirectory: directory, logger: lines.logger, Self.quick) {
            server in
            let storage = try SQLiteStorage(directory: directory)
            let bad = try await add("bad", to: storage)
            let application = try application(bad, server)
            try await expect(200, application)
            let session = try await application.session()
            let (outcome, client) = try await application.join(session)
            #expect(outcome == "joined")
            try await storage.execute("UPDATE project SET secret = 'short' WHERE apiKey = '\(bad.apiKey)'")
            try await eventually { lines.contains(bad.apiKey) ? nil : "nothing is logged" }
            // Each of these changes needs another read of the damaged row.
            var good = bad
            for number in 0..<3 {
                good = try await add("good \(number)", to: storage)
                try await expect(200, try self.application(good, server))
            }
            #expect(try await application.ask("GET", "~/render").status == 200)
            #expect(try await application.join(session).outcome == "joined")
            #expect(lines.all.count { $0.contains(bad.apiKey) } == 1, "\(lines.all)")
            await client.drop()
            let place = try RoomsPlace(server)
            let list = try await place.ask("GET", "/v1/projects")
            #expect(list.text.contains(good.apiKey) && !list.text.contains(bad.apiKey))
            let read = try await place.ask("GET", "/v1/projects/\(bad.apiKey)")
            #expect((read.status, read.code) == (503, "storage_failed"))
            try await storage.close()
            return (bad, good)
        }
        let later = LogLines()
        try await TestServer.run(dataDirectory: directory, logger: later.logger, Self.quick) { server in
            try await expect(200, try application(good, server))
            try await expect(403, try application(bad, server))
            #expect(later.all.count { $0.contains(bad.apiKey) } == 1, "\(later.all)")
            #expect(try await RoomsPlace(server).ask("DELETE", "/v1/projects/\(bad.apiKey)").status == 204)
        }
    }

    @Test("a project that was damaged when the server started keeps its mutes and removed people when it is repaired")
    func repair() async throws {
        let directory = NSTemporaryDirectory() + "confab-repaired-\(UUID().uuidString)"
        defer { try? FileManager.default.removeItem(atPath: directory) }
        let (project, admission) = try await TestServer.run(dataDirectory: directory, Self.quick) { server in
            let storage = try SQLiteStorage(directory: directory)
            let project = try await add("damaged", to: storage)
            let application = try application(project, server)
            try await expect(200, application)
            let session = try await application.session()
            let admission = application.admission(session)
            let (joined, _, _) = try await application.enter(admission)
            #expect(try await application.ask("POST", "~/session/\(session)/mute", #"{"active":true}"#).status == 200)
            let connection = try #require(joined?.connection.id)
            let removal = try await application.ask("DELETE", "~/session/\(session)/connection/\(connection)")
            #expect(removal.status == 204)
            try await storage.execute("UPDATE project SET secret = 'short' WHERE apiKey = '\(project.apiKey)'")
            try await storage.close()
            return (project, admission)
        }
        try await TestServer.run(dataDirectory: directory, Self.quick) { server in
            let application = try application(project, server)
            try await expect(403, application)
            let storage = try SQLiteStorage(directory: directory)
            let secret = try #require(project.secret?.revealed)
            try await storage.execute("UPDATE project SET secret = '\(secret)' WHERE apiKey = '\(project.apiKey)'")
            try await expect(200, application)
            #expect(try await application.enter(admission).refusal == .tokenRevoked)
            let other = try await application.enter(application.admission(admission.session))
            #expect(other.joined?.muted == true)
            try await storage.close()
        }
    }

    @Test("secrets of stored projects that do not look like generated ones are redacted in the log")
    func redaction() async throws {
        let directory = NSTemporaryDirectory() + "confab-redacted-\(UUID().uuidString)"
        defer { try? FileManager.default.removeItem(atPath: directory) }
        let lines = LogLines()
        let secrets = ["correct-horse-battery-staple-and-oxygen", "second-horse-battery-staple-and-oxygen"]
        @Sendable func isKnown(_ secret: String) -> Bool {
            !lines.settings.scrubber.scrubbed("see \(secret) here").contains("horse")
        }
        #expect(!isKnown(secrets[0]))
        let stored = try await TestServer.run(dataDirectory: directory, log: lines.settings, Self.quick) { server in
            let storage = try SQLiteStorage(directory: directory)
            var project = try await add("unusual", to: storage, secret: secrets[0])
            try await eventually { isKnown(secrets[0]) ? nil : "the secret is not redacted" }
            let now = RoomsPlace.now
            project = try #require(
                try await storage.changeProject(project.apiKey, or: nil, recording: entry("rotate", project)) {
                    ($0.previousSecret, $0.previousUntil) = ($0.secret, now + .seconds(60))
                    ($0.secret, $0.webhookSecret) = (SecretText(secrets[1]), SecretText("webhook-horse"))
                })
            try await eventually { isKnown(secrets[1]) ? nil : "the new secret is not redacted" }
            #expect(isKnown(secrets[0]) && isKnown("webhook-horse"))
            try await storage.close()
            return project
        }
        let later = LogLines()
        try await TestServer.run(dataDirectory: directory, logger: later.logger, log: later.settings) { server in
            _ = try await application(stored, server).ask("GET", "~/render")
            later.logger.error("A value", metadata: ["key": "see \(secrets[1])"])
            #expect(later.contains("[redacted]") && !later.contains("horse"), "\(later.all)")
        }
    }
}
