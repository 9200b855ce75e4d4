import Foundation
import Signaling
import TestSupport
import Testing
import Wire

@testable import Server

@Suite("A rotation while the server runs", .ownThreads, .timeLimit(.minutes(3))) struct RotationServerTests {
    private func configuration(_ directory: String) -> ConfabConfiguration {
        var configuration = ConfabConfiguration()
        configuration.dataDirectory = directory
        return configuration
    }

    private func token(_ project: Project, _ session: SessionID) -> String {
        var random = SystemRandomNumberGenerator()
        let now = Timestamp(milliseconds: Int64(Date().timeIntervalSince1970 * 1000))
        return project.makeSessionToken(
            SessionTokenClaims(session: session, role: .publisher, lifetime: .seconds(3600)), now: now, using: &random)
    }

    private func session(_ project: Project) -> SessionID {
        var random = SystemRandomNumberGenerator()
        return project.makeSessionID(mediaMode: .relayed, now: Timestamp(milliseconds: 0), using: &random)
    }

    private var now: Timestamp { Timestamp(milliseconds: Int64(Date().timeIntervalSince1970 * 1000)) }

    /// Waits until the server answers a token of this project in the expected way.
    private func expect(
        _ outcome: String, of project: Project, in session: SessionID, _ port: Int
    ) async throws {
        try await eventually {
            let client = try await SocketClient.connect(port: port)
            try await client.greet()
            let admission = Admission(session: session, token: token(project, session))
            try await client.say(.session(.join(.init(session: admission.session, token: admission.token))))
            let answer = try await client.hear("an answer") { message -> String? in
                switch message {
                case .session(.joined): "joined"
                case .error(let failure): failure.error.code.rawValue
                default: nil
                }
            }
            // The server may have closed it already, because of the token.
            await client.drop()
            return answer == outcome ? nil : "\(answer), not \(outcome)"
        }
    }

    @Test(
        "nobody is closed, both secrets work during the overlap, and identity, block and session id outlive a restart")
    func rotation() async throws {
        let directory = NSTemporaryDirectory() + "confab-rotation-\(UUID().uuidString)"
        defer { try? FileManager.default.removeItem(atPath: directory) }
        let quick: (inout ConfabConfiguration) -> Void = { $0.storage.pollInterval = .milliseconds(20) }
        let (old, room, secret) = try await TestServer.run(dataDirectory: directory, quick) { server in
            let old = try server.project.project
            let room = session(old)
            let (ann, bob) = (
                try await SocketClient.connect(port: server.port), try await SocketClient.connect(port: server.port)
            )
            let welcome = try await ann.greet()
            try await bob.greet()
            async let annMeets = ann.meet()
            async let bobMeets = bob.meet()
            _ = try await (annMeets, bobMeets)
            try await ann.ask(.roulette(.block(.init())))
            _ = try await bob.join(Admission(session: room, token: token(old, room)))

            let after = try ProjectFile.rotate(configuration(directory), overlap: .seconds(3600), now: now).file.project
            try await expect("joined", of: after, in: room, server.port)
            try await expect("joined", of: old, in: room, server.port)
            // Both are still connected and answered.
            for client in [ann, bob] {
                try await client.ask(.roulette(.count))
            }
            await ann.drop()
            #expect(try await ann.reconnect().resumed)

            let last = try ProjectFile.rotate(configuration(directory), overlap: .zero, now: now).file.project
            try await expect("joined", of: last, in: room, server.port)
            try await expect("token_signature", of: after, in: room, server.port)
            try await expect("token_signature", of: old, in: room, server.port)
            return (old, room, try #require(welcome.identity))
        }
        try await TestServer.run(dataDirectory: directory, quick) { server in
            let ann = try await SocketClient.connect(port: server.port)
            #expect(try await ann.greet(identity: secret).identity == nil, "the identity is still hers")
            let blocked = try await SQLiteStorage(directory: directory)
                .person(try old.verifyIdentitySecret(secret).id, at: now).blocked
            #expect(blocked.count == 1)
            _ = try await ann.join(Admission(session: room, token: token(try server.project.project, room)))
        }
    }

    @Test("a project file of an earlier version works on, and its ids outlive a rotation and a restart")
    func upgrade() async throws {
        let directory = NSTemporaryDirectory() + "confab-upgrade-\(UUID().uuidString)"
        defer { try? FileManager.default.removeItem(atPath: directory) }
        try FileManager.default.createDirectory(atPath: directory, withIntermediateDirectories: true)
        let secret = "00112233445566778899aabbccddeeff0011223344556677"
        try Data("{\n  \"apiKey\": \"45000001\",\n  \"apiSecret\": \"\(secret)\"\n}\n".utf8)
            .write(to: URL(fileURLWithPath: directory + "/project.json"))
        let old = try #require(Project(apiKey: "45000001", secret: secret))
        let identity = old.secret(of: IdentityID(high: 1, low: 2))
        let room = session(old)
        let quick: (inout ConfabConfiguration) -> Void = { $0.storage.pollInterval = .milliseconds(20) }
        try await TestServer.run(dataDirectory: directory, quick) { server in
            try await expect("joined", of: old, in: room, server.port)
            let after = try ProjectFile.rotate(configuration(directory), overlap: .zero, now: now).file.project
            try await expect("joined", of: after, in: room, server.port)
            try await expect("token_signature", of: old, in: room, server.port)
        }
        try await TestServer.run(dataDirectory: directory, quick) { server in
            let client = try await SocketClient.connect(port: server.port)
            #expect(try await client.greet(identity: identity).identity == nil)
            try await expect("joined", of: try server.project.project, in: room, server.port)
        }
    }

    @Test(
        "a project file that is truncated, missing or unreadable changes nothing, is logged once, and works again when restored",
        arguments: ["truncated", "missing", "another project"])
    func broken(how: String) async throws {
        let lines = LogLines()
        try await TestServer.run(
            logger: lines.logger, { $0.storage.pollInterval = .milliseconds(10) }
        ) { server in
            let path = server.dataDirectory + "/project.json"
            let bytes = try #require(FileManager.default.contents(atPath: path))
            let project = try server.project.project
            let room = session(project)
            // Written in one step: a file that is read while it is empty is a second fault, and is logged too.
            switch how {
            case "truncated": try bytes.prefix(20).write(to: URL(fileURLWithPath: path), options: .atomic)
            case "missing": try FileManager.default.removeItem(atPath: path)
            default:
                let other = String(decoding: bytes, as: UTF8.self)
                    .replacing(server.project.apiKey, with: "99999999")
                try Data(other.utf8).write(to: URL(fileURLWithPath: path), options: .atomic)
            }
            try await eventually { lines.contains("secret was not reloaded") ? nil : "nothing was logged" }
            try await expect("joined", of: project, in: room, server.port)
            #expect(lines.all.count { $0.contains("secret was not reloaded") } == 1)
            #expect(!lines.contains(server.project.apiSecret.revealed))
            try bytes.write(to: URL(fileURLWithPath: path), options: .atomic)
            let after = try ProjectFile.rotate(configuration(server.dataDirectory), overlap: .zero, now: now).file
            try await eventually { lines.contains("secret has changed") ? nil : "the rotation was not noticed" }
            try await expect("joined", of: try after.project, in: room, server.port)
            for secret in [after.apiSecret, after.serverKey] { #expect(!lines.contains(secret.revealed)) }
        }
    }
}
