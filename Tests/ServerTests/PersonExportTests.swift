import Foundation
import Signaling
import TestSupport
import Testing
import Wire

@testable import Server

@Suite("GET /v1/person", .ownThreads, .timeLimit(.minutes(3)))
struct PersonExportTests: StorageFixtures {
    private let path = "/v1/person"

    /// Stores data about a person with the current time, because the server deletes old data when it starts.
    private func fill(_ directory: String) async throws {
        var configuration = ConfabConfiguration()
        configuration.dataDirectory = directory
        _ = try ProjectFile.open(configuration)
        let storage = try SQLiteStorage(directory: directory)
        let phone = LinkedDevice(identity: carol, label: "Phone", linkedAt: now)
        let call = CallRecord(
            call: CallID(high: 9, low: 9), other: bob, otherName: "Bob \"B\"", direction: .incoming, outcome: .missed,
            video: true, at: .wall, duration: nil, isSeen: false)
        try await storage.commit([
            .profile(alice, PersonID(high: 7, low: 1), Profile(name: "Alice"), at: now), .linked(phone, to: alice),
            block(alice, person(1)), .keptInTouch(alice, bob, names: ["Alice", "Bob"], at: now),
            .callLogged(call, of: alice), .report(report(at: .wall)),
        ])
        let browser = PushRegistration(kind: .web, endpoint: "https://push.example/secret", p256dh: "k", auth: "a")
        try await storage.addPushEndpoint(browser, of: alice, device: carol, at: now)
        try await storage.close()
    }

    @Test("with the secret of any of the person's devices, the export contains all data and no secrets")
    func everything() async throws {
        try await withDirectory { directory in
            try await fill(directory)
            try await TestServer.run(
                dataDirectory: directory, { $0.retention.pushEndpoints = .seconds(3650 * 86400) }
            ) { server in
                let place = try WHIPPlace(server)
                for device in [alice, carol] {
                    let answer = try await place.ask("GET", path, token: place.project.secret(of: device))
                    #expect(answer.status == 200, "\(answer.text)")
                    #expect(answer["Content-Type"] == "application/json")
                    #expect(answer["Content-Disposition"]?.hasPrefix("attachment") == true)
                    #expect(answer["Cache-Control"] == "no-store")
                    #expect(answer["Access-Control-Allow-Origin"] == "*")
                    #expect(!answer.text.contains("/secret"))
                    for identity in [alice, bob, carol, person(1)] { #expect(!answer.text.contains("\(identity)")) }
                    try check(answer.text, place.project)
                }
            }
        }
    }

    private func check(_ text: String, _ project: Project) throws {
        let held = try #require(try JSONSerialization.jsonObject(with: Data(text.utf8)) as? [String: Any])
        func rows(_ name: String) throws -> [String: Any] {
            let rows = try #require(held[name] as? [[String: Any]], "\(name)")
            #expect(rows.count == 1, "\(name)")
            return try #require(rows.first)
        }
        func id(_ identity: IdentityID) -> String { "\(project.personID(of: identity))" }
        #expect(held["personId"] as? String == id(alice))
        #expect((held["profile"] as? [String: Any])?["name"] as? String == "Alice")
        #expect(try rows("devices")["deviceId"] as? String == id(carol))
        #expect(try rows("blocked")["personId"] as? String == "\(project.blockedID(of: person(1), by: alice))")
        #expect(try rows("contacts")["name"] as? String == "Bob")
        #expect(try rows("calls")["name"] as? String == "Bob \"B\"")
        #expect(try rows("calls")["outcome"] as? String == "missed")
        #expect(try rows("push")["service"] as? String == "push.example")
        #expect(try rows("reports")["reason"] as? String == "rude")
        #expect((held["openCalls"] as? [Any])?.isEmpty == true)
    }

    @Test("an invalid secret is answered with 401 and a code")
    func refusals() async throws {
        try await TestServer.run { server in
            let place = try WHIPPlace(server)
            let (none, forged) = (
                try await place.ask("GET", path),
                try await place.ask("GET", path, token: "a_" + String(repeating: "A", count: 43))
            )
            #expect((none.status, none.code) == (401, "token_malformed"))
            #expect((forged.status, forged.code) == (401, "token_signature"))
            #expect(forged["WWW-Authenticate"]?.hasPrefix("Bearer") == true)
            let session = try await place.ask("GET", path, token: place.token())
            #expect((session.status, session.code) == (401, "token_scope"))
            // The export of an unknown identity is empty.
            let stranger = try await place.ask("GET", path, token: place.project.secret(of: alice))
            #expect(stranger.status == 200)
            let user = place.project.makeUserToken(user: "alice", name: nil, now: Timestamp.wall)
            #expect(try await place.ask("GET", path, token: user).status == 200)
            #expect(try await place.ask("POST", path, token: user).status == 404)
        }
    }
}

extension Timestamp {
    fileprivate static var wall: Timestamp { Timestamp(milliseconds: Int64(Date().timeIntervalSince1970 * 1000)) }
}
