import Signaling
import Testing
import Wire

@testable import Server

@Suite("Storage of projects") struct StorageProjectTests: StorageFixtures {
    private func project(_ name: String, at time: Timestamp? = nil) -> StoredProject {
        var random = SystemRandomNumberGenerator()
        return StoredProject(name: name, createdAt: time ?? now, using: &random)
    }

    private func entry(_ action: String, _ key: String) -> AuditEntry {
        AuditEntry(at: now, actor: AuditEntry.operatorActor, action: "project.\(action)", subject: key)
    }

    @Test("all properties of a project are stored, also those of the main project, which has no secret here")
    func properties() async throws {
        try await withDatabases { open in
            var full = project("Ünï", at: now + .seconds(1))
            var random = SystemRandomNumberGenerator()
            full.rotate(overlap: .seconds(60), now: now, using: &random)
            full.setWebhook("https://hooks.example/x", using: &random)
            (full.applicationID, full.publicKey, full.maxConnections) = ("app", "PEM", 7)
            let main = StoredProject(apiKey: "45000001", secret: nil, createdAt: now)
            let first = try await open()
            #expect(try await first.addProject(full, recording: entry("create", full.apiKey)))
            let set = entry("set", main.apiKey)
            let missing = try await first.changeProject(main.apiKey, or: nil, recording: set) { $0.name = "x" }
            #expect(missing == nil)
            let changed = try await first.changeProject(main.apiKey, or: main, recording: set) { $0.maxConnections = 3 }
            #expect(changed?.maxConnections == 3)
            try await first.close()
            let second = try await open()
            let found = try await second.projects().projects
            #expect(found.map(\.apiKey) == [main.apiKey, full.apiKey], "oldest first")
            #expect(found.last == full)
            #expect(found.first?.secret == nil && found.first?.maxConnections == 3)
            #expect(
                try await second.audit(since: .distantPast, limit: 10).map(\.action) == [
                    "project.set", "project.create",
                ])
            try await second.close()
        }
    }

    @Test("nothing happens to a project without its audit entry")
    func audit() async throws {
        try await withDatabases { open in
            let storage = try await open()
            let (kept, new) = (project("kept"), project("new"))
            #expect(try await storage.addProject(kept, recording: entry("create", kept.apiKey)))
            try await refuse("audit", in: storage)
            await expect(.rejected) { _ = try await storage.addProject(new, recording: entry("create", new.apiKey)) }
            await expect(.rejected) {
                _ = try await storage.changeProject(kept.apiKey, or: nil, recording: entry("set", kept.apiKey)) {
                    $0.name = "changed"
                }
            }
            await expect(.rejected) {
                _ = try await storage.removeProject(kept.apiKey, recording: entry("delete", kept.apiKey))
            }
            #expect(try await storage.projects().projects == [kept])
            try await storage.close()
        }
    }

    @Test("rotations at the same time follow one another, and keep only the secret before the last one")
    func concurrent() async throws {
        try await withDatabases { open in
            let (one, two) = (try await open(), try await open())
            let (made, count, now) = (project("busy"), 16, now)
            #expect(try await one.addProject(made, recording: entry("create", made.apiKey)))
            let rotated = try await withThrowingTaskGroup(of: StoredProject?.self) { group in
                for number in 0..<count {
                    group.addTask {
                        try await (number.isMultiple(of: 2) ? one : two).changeProject(
                            made.apiKey, or: nil, recording: entry("rotate", made.apiKey)
                        ) {
                            var random = SystemRandomNumberGenerator()
                            $0.rotate(overlap: .seconds(60), now: now, using: &random)
                        }
                    }
                }
                return try await group.reduce(into: []) { $0.append($1) }
            }
            #expect(Set(rotated.compactMap { $0?.secret }).count == count)
            #expect(Set(rotated.compactMap { $0?.previousSecret }).count == count)
            let last = try #require(try await two.projects().projects.first)
            #expect(rotated.contains(last))
            try await one.close()
            try await two.close()
        }
    }

    @Test("a project never gets the API key of another one, also not of one that was deleted")
    func usedKeys() async throws {
        try await withDatabases { open in
            let storage = try await open()
            let project = project("first")
            let create = entry("create", project.apiKey)
            #expect(try await storage.addProject(project, recording: create))
            #expect(try await storage.addProject(project, recording: create) == false)
            #expect(try await storage.removeProject(project.apiKey, recording: entry("delete", project.apiKey)))
            try await storage.deleteOld(.audit, olderThan: now + .seconds(1))
            #expect(try await storage.addProject(project, recording: create) == false)
            #expect(try await storage.projects().projects.isEmpty)
            try await storage.close()
        }
    }

    @Test("two projects cannot have the same application")
    func applications() async throws {
        try await withDatabases { open in
            let storage = try await open()
            var (one, other) = (project("one"), project("other"))
            (one.applicationID, one.publicKey) = ("app", "PEM")
            (other.applicationID, other.publicKey) = ("app", "PEM")
            #expect(try await storage.addProject(one, recording: entry("create", one.apiKey)))
            let (refused, set) = (other, entry("set", other.apiKey))
            await expect(.taken) { _ = try await storage.addProject(refused, recording: set) }
            other.applicationID = nil
            let added = other
            #expect(try await storage.addProject(added, recording: entry("create", other.apiKey)))
            await expect(.taken) {
                _ = try await storage.changeProject(added.apiKey, or: nil, recording: set) { $0.applicationID = "app" }
            }
            let main = StoredProject(apiKey: "45000001", secret: nil, createdAt: now)
            await expect(.taken) {
                _ = try await storage.changeProject(main.apiKey, or: main, recording: set) { $0.applicationID = "app" }
            }
            let same = try await storage.changeProject(one.apiKey, or: nil, recording: set) { $0.name = "renamed" }
            #expect(same?.name == "renamed")
            // An older version allowed this.
            try await storage.execute("UPDATE project SET applicationID = 'app' WHERE apiKey = '\(other.apiKey)'")
            let twin = try await storage.changeProject(other.apiKey, or: nil, recording: set) { $0.name = "twin" }
            #expect(twin?.name == "twin")
            try await storage.execute("UPDATE project SET applicationID = NULL WHERE apiKey = '\(other.apiKey)'")
            let owners = try await storage.projects().projects.filter { $0.applicationID == "app" }
            #expect(owners.map(\.apiKey) == [one.apiKey])
            try await storage.close()
        }
    }

    @Test(
        "a damaged project is reported by its key, hides no other, and can be deleted",
        arguments: ["secret = 'short'", "previousSecret = '', previousUntil = 1", "createdAt = 'yesterday'"])
    func damaged(_ damage: String) async throws {
        try await withDirectory { directory in
            let storage = try SQLiteStorage(directory: directory)
            let (good, bad) = (project("good"), project("bad"))
            #expect(try await storage.addProject(good, recording: entry("create", good.apiKey)))
            #expect(try await storage.addProject(bad, recording: entry("create", bad.apiKey)))
            try await storage.execute("UPDATE project SET \(damage) WHERE apiKey = '\(bad.apiKey)'")
            let found = try await storage.projects()
            #expect(found.projects == [good] && found.unreadable.map(\.apiKey) == [bad.apiKey])
            #expect(try found.project(good.apiKey) == good)
            #expect(throws: StorageError.self) { try found.project(bad.apiKey) }
            #expect(try await storage.removeProject(bad.apiKey, recording: entry("delete", bad.apiKey)))
            #expect(try await storage.projects().unreadable.isEmpty)
            try await storage.close()
        }
    }

    @Test(
        "a project whose webhook cannot be used has none anywhere, and the webhooks of others still work",
        arguments: [
            "webhookSecret = 'short'", "webhookSecret = NULL", "webhookSecret = x'ff'", "webhookURL = 'nonsense'",
            "webhookURL = x'ff'", "apiKey = x'ff'",
        ])
    func unusableWebhook(_ damage: String) async throws {
        try await withDirectory { directory in
            let storage = try SQLiteStorage(directory: directory)
            var random = SystemRandomNumberGenerator()
            var (good, bad) = (project("good"), project("bad"))
            good.setWebhook("https://hooks.example/good", using: &random)
            bad.setWebhook("https://hooks.example/bad", using: &random)
            let keys = [good.apiKey, bad.apiKey]
            for project in [good, bad] {
                #expect(try await storage.addProject(project, recording: entry("create", project.apiKey)))
                try await storage.commit(
                    WebhookSamples.visit(1, project: project.apiKey).map { .webhook($0) })
            }
            let targets = StoredWebhookTargets(storage: storage)
            #expect(Set(try await targets.webhooks().keys) == Set(keys))
            try await storage.execute("UPDATE project SET \(damage) WHERE apiKey = '\(keys[1])'")
            #expect(Array(try await targets.webhooks().keys) == [keys[0]])
            #expect(try await targets.webhook(of: keys[0]) != nil)
            #expect(try await targets.webhook(of: keys[1]) == nil)
            let main = try #require(Project(apiKey: "45000001", secret: String(repeating: "s", count: 40)))
            let projects = Projects(main: main, stored: try await storage.projects().projects)
            #expect(projects[keys[0]]?.hasWebhook == true && projects[keys[1]]?.hasWebhook != true)
            for key in keys { try await storage.removeWebhooks(of: key) }
            #expect(Array(try await storage.webhookBacklogs().keys) == [keys[0]])
            try await storage.close()
        }
    }

    @Test("with a project, the revoked tokens and mutes of its sessions are deleted, but not those of other projects")
    func moderation() async throws {
        try await withDatabases { open in
            let storage = try await open()
            var random = SystemRandomNumberGenerator()
            let gone = project("gone")
            var sessions: [SessionID] = []
            for key in [gone.apiKey, gone.apiKey + "0", String(gone.apiKey.dropLast()), "1"] {
                let project = try #require(Project(apiKey: key, secret: String(repeating: "s", count: 40)))
                for mode in [MediaMode.relayed, .routed] {
                    sessions.append(project.makeSessionID(mediaMode: mode, now: now, using: &random))
                }
            }
            for session in sessions {
                let revocation = Revocation(
                    session: session, fingerprint: [1], expiresAt: now + .seconds(60), by: .application("1"), of: bob,
                    at: now)
                try await storage.commit([.revoked(revocation), .muted(session, true, by: .application("1"), at: now)])
            }
            #expect(try await storage.addProject(gone, recording: entry("create", gone.apiKey)))
            #expect(try await storage.moderation(at: now).count == sessions.count)
            #expect(try await storage.removeProject(gone.apiKey, recording: entry("delete", gone.apiKey)))
            #expect(Set(try await storage.moderation(at: now).map(\.session)) == Set(sessions.dropFirst(2)))
            try await storage.close()
        }
    }

    @Test("there are at most as many projects as a server can read every second")
    func bound() async throws {
        try await withDatabases { open in
            let storage = try await open()
            for number in 0..<StoredProject.maxCount {
                let project = StoredProject(apiKey: "\(number)", secret: SecretText("secret"), createdAt: now)
                let isAdded = try await storage.addProject(project, recording: entry("create", project.apiKey))
                #expect(isAdded)
            }
            let another = project("another")
            await expect(.tooMany) {
                _ = try await storage.addProject(another, recording: entry("create", another.apiKey))
            }
            let isRemoved = try await storage.removeProject("0", recording: entry("delete", "0"))
            let isAdded = try await storage.addProject(another, recording: entry("create", another.apiKey))
            #expect(isRemoved && isAdded)
            try await storage.close()
        }
    }
}
