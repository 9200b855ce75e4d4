import Server
import Signaling
import Testing
import Wire

@Suite("Storage of moderation") struct StorageModerationTests: StorageFixtures {
    private var session: SessionID { SessionID("1_session")! }

    private func revocation(_ byte: UInt8, until: Timestamp) -> Revocation {
        Revocation(
            session: session, fingerprint: Array(repeating: byte, count: 16), expiresAt: until, by: .member(alice),
            of: bob,
            at: now)
    }

    @Test("revoked tokens are kept until they expire, and mutes until they end")
    func moderation() async throws {
        try await withStorage { storage in
            try await storage.commit([
                .revoked(revocation(1, until: now + .seconds(10))), .revoked(revocation(2, until: now + .seconds(20))),
                .muted(session, true, by: .member(alice), at: now),
            ])
            let early = try await storage.moderation(at: now)
            #expect(early.map(\.session) == [session])
            #expect(early.first?.revoked.count == 2)
            #expect(early.first?.isMuted == true)
            #expect(try await storage.moderation(at: now + .seconds(15)).first?.revoked.count == 1)
            try await storage.commit([.muted(session, false, by: .server, at: now)])
            #expect(try await storage.moderation(at: now + .seconds(30)) == [])
        }
    }

    @Test("the moderation of one session is found by its id, with tokens that have expired")
    func oneSession() async throws {
        try await withStorage { storage in
            let other = try #require(SessionID("1_other"))
            try await storage.commit([
                .revoked(revocation(1, until: now - .seconds(10))), .muted(other, true, by: .server, at: now),
            ])
            let all = try await storage.moderation(at: .distantPast)
            #expect(all.count == 2)
            for moderation in all {
                #expect(try await storage.moderation(of: moderation.session) == moderation)
            }
            #expect(try await storage.moderation(of: try #require(SessionID("1_nothing"))) == nil)
        }
    }

    @Test("revoked tokens are deleted by time only, whatever the clock of a new removal shows")
    func expiredTokens() async throws {
        try await withStorage { storage in
            var late = revocation(2, until: now + .seconds(400 * 86400))
            late.at = now + .seconds(366 * 86400)
            try await storage.commit([.revoked(revocation(1, until: now + .seconds(10))), .revoked(late)])
            #expect(try await storage.moderation(at: .distantPast).first?.revoked.count == 2)
            #expect(try await storage.deleteOld(.revokedTokens, olderThan: now + .seconds(10)) == 0)
            #expect(try await storage.deleteOld(.revokedTokens, olderThan: now + .seconds(11)) == 1)
            #expect(try await storage.moderation(at: .distantPast).first?.revoked.count == 1)
        }
    }

    @Test("the audit log has what moderators did, newest first, and forgets what is old")
    func audit() async throws {
        try await withStorage { storage in
            try await storage.record(
                AuditEntry(
                    at: now - .seconds(100), actor: AuditEntry.operatorActor, action: "ban.add", subject: "192.0.2.1"))
            try await storage.commit([
                .revoked(revocation(1, until: now + .seconds(10))),
                .muted(session, true, by: .member(alice), at: now), .muted(session, false, by: .server, at: now),
            ])
            let all = try await storage.audit(since: Timestamp(milliseconds: 0), limit: 10)
            #expect(all.map(\.action) == ["session.mute", "session.remove", "ban.add"])
            #expect(all[1].actor == "\(alice)")
            #expect(all[1].detail == "\(bob)")
            #expect(try await storage.audit(since: now, limit: 10).count == 2)
            #expect(try await storage.deleteOld(.audit, olderThan: now) == 1)
            #expect(try await storage.audit(since: Timestamp(milliseconds: 0), limit: 10).count == 2)
        }
    }

    @Test("an application's mutes and removals are recorded with its API key, and a token that needs no row gets none")
    func applications() async throws {
        try await withStorage { storage in
            let project = try #require(Project(apiKey: "45000007", secret: String(repeating: "s", count: 40)))
            var random = SystemRandomNumberGenerator()
            let session = project.makeSessionID(mediaMode: .routed, now: now, using: &random)
            var revocation = Revocation(
                session: session, fingerprint: [1], expiresAt: now + .seconds(60), by: .application(project.apiKey),
                of: bob, at: now)
            revocation.isKept = false
            try await storage.commit([
                .revoked(revocation), .muted(session, false, by: .application(project.apiKey), at: now),
            ])
            let entries = try await storage.audit(since: now, limit: 10)
            #expect(entries.map(\.action) == ["session.unmute", "session.remove"])
            #expect(entries.map(\.actor) == ["45000007", "45000007"])
            #expect(try await storage.moderation(at: now) == [])
        }
    }

    private func entry(_ action: String, _ subject: String) -> AuditEntry {
        AuditEntry(at: now, actor: AuditEntry.operatorActor, action: action, subject: subject)
    }

    @Test("a command's change comes with its audit entry, and what changes nothing adds none")
    func recorded() async throws {
        try await withStorage { storage in
            try await storage.commit([.report(report())])
            let id = try #require(try await storage.reports(includingClosed: false, limit: 1).first?.id)
            let subject = BanSubject.address("192.0.2.1")
            let (add, remove, close) = (entry("ban.add", "a"), entry("ban.remove", "a"), entry("report.close", "1"))
            try await storage.addBan(Ban(subject: subject, reason: "", createdAt: now), recording: add)
            for _ in 0..<2 {
                try await storage.removeBan(subject, recording: remove)
                try await storage.closeReport(id: id, at: now, recording: close)
            }
            #expect(try await storage.audit(since: now, limit: 10) == [close, remove, add])
        }
    }

    @Test(
        "a ban of an IPv6 address is one of its whole /64",
        arguments: [
            ("203.0.113.7", "203.0.113.7/32"), ("203.0.113.0/24", "203.0.113.0/24"), ("2001:db8::7", "2001:db8::/64"),
            ("2001:db8::/96", "2001:db8::/64"), ("2001:db8::/48", "2001:db8::/48"),
        ])
    func subjects(_ text: String, _ address: String) { #expect(BanSubject(text: text) == .address(address)) }

    @Test("a text is banned only if it is an identity, an address or a block")
    func noSubject() {
        #expect(BanSubject(text: "\(alice)") == .identity(alice))
        for text in ["", "alice", "203.0.113", "203.0.113.7/24", "2001:db8::/129"] {
            #expect(BanSubject(text: text) == nil)
        }
    }

    @Test("a report bans the reported device, the account to which it was linked later, and the address")
    func reported() async throws {
        try await withStorage { storage in
            var report = report()
            #expect(try await storage.banSubjects(of: report) == [.identity(report.against)])
            report.againstAddress = "2001:db8::"
            let device = LinkedDevice(identity: report.against, label: "", linkedAt: now)
            try await storage.commit([.linked(device, to: carol)])
            #expect(
                try await storage.banSubjects(of: report)
                    == [.identity(report.against), .identity(carol), .address("2001:db8::/64")])
        }
    }

    @Test("a report keeps both addresses")
    func addresses() async throws {
        try await withStorage { storage in
            var report = report()
            (report.byAddress, report.againstAddress) = ("192.0.2.1", "2001:db8::")
            try await storage.commit([.report(report)])
            let stored = try await storage.reports(includingClosed: false, limit: 1).first?.report
            #expect(stored?.byAddress == "192.0.2.1")
            #expect(stored?.againstAddress == "2001:db8::")
        }
    }

    @Test("push endpoints that were not registered again are deleted")
    func endpoints() async throws {
        try await withStorage { storage in
            for number in 1...2 {
                try await storage.addPushEndpoint(
                    PushRegistration(
                        kind: .web, endpoint: "https://push.example.org/\(number)", p256dh: "p", auth: "a"), of: alice,
                    device: alice,
                    at: now + .seconds(number * 10))
            }
            #expect(try await storage.deleteOld(.pushEndpoints, olderThan: now + .seconds(15)) == 1)
            #expect(try await storage.pushEndpoints(of: alice).count == 1)
        }
    }
}
