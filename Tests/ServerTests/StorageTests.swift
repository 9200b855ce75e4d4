import Server
import Signaling
import Testing
import Wire

@Suite("Storage")
struct StorageTests: StorageFixtures {
    @Test func `an unknown person has an empty record`() async throws {
        try await withStorage { storage in
            let record = try await storage.person(alice, at: now)
            #expect(record == PersonRecord())
        }
    }

    @Test func `blocks are returned oldest first and belong to their owner`() async throws {
        try await withStorage { storage in
            try await storage.commit([block(alice, carol), block(alice, bob), block(bob, alice)])
            #expect(try await storage.person(alice, at: now).blocked == [carol, bob])
            #expect(try await storage.person(bob, at: now).blocked == [alice])
            #expect(try await storage.person(carol, at: now).blocked == [])
        }
    }

    @Test func `the order of blocks survives a clock that was set back`() async throws {
        try await withStorage(StorageBounds(blocks: 2)) { storage in
            try await storage.commit([block(alice, person(1)), block(alice, person(2))])
            try await storage.commit([block(alice, person(3), at: now - .seconds(3600))])
            #expect(try await storage.person(alice, at: now).blocked == [person(2), person(3)])
        }
    }

    @Test func `blocking twice keeps the position of the first block`() async throws {
        try await withStorage { storage in
            try await storage.commit([block(alice, bob), block(alice, carol)])
            try await storage.commit([block(alice, bob, at: now + .seconds(9))])
            #expect(try await storage.person(alice, at: now).blocked == [bob, carol])
        }
    }

    @Test func `unblocking removes the block, or does nothing if there is none`() async throws {
        try await withStorage { storage in
            try await storage.commit([block(alice, bob), block(alice, carol)])
            try await storage.commit([.unblock(owner: alice, blocked: bob), .unblock(owner: carol, blocked: bob)])
            #expect(try await storage.person(alice, at: now).blocked == [carol])
            try await storage.commit([block(alice, bob)])
            #expect(try await storage.person(alice, at: now).blocked == [carol, bob])
        }
    }

    @Test func `the 1001st block drops only its owner's oldest`() async throws {
        try await withStorage { storage in
            #expect(StorageLimits.blocksPerOwner == 1000)
            try await storage.commit([block(bob, carol)] + (0..<1000).map { block(alice, person($0)) })
            #expect(try await storage.person(alice, at: now).blocked == (0..<1000).map(person))
            try await storage.commit([block(alice, person(1000))])
            #expect(try await storage.person(alice, at: now).blocked == (1...1000).map(person))
            #expect(try await storage.person(bob, at: now).blocked == [carol])
        }
    }

    @Test func `committing nothing is allowed`() async throws {
        try await withStorage { storage in try await storage.commit([]) }
    }

    @Test func `a ban is active until it expires`() async throws {
        try await withStorage { storage in
            let end = now + .seconds(60)
            let short = Ban(subject: .identity(bob), reason: "spam", createdAt: now, expiresAt: end)
            let long = Ban(subject: .address("2001:db8::/48"), reason: "", createdAt: now)
            try await storage.addBan(short)
            try await storage.addBan(long)
            #expect(try await storage.person(bob, at: end - .milliseconds(1)).ban == short)
            #expect(try await storage.bans(at: end - .milliseconds(1)) == [short, long])
            #expect(try await storage.person(bob, at: end).ban == nil)
            #expect(try await storage.bans(at: end) == [long])
            #expect(try await storage.person(alice, at: now).ban == nil)
        }
    }

    @Test func `a second ban of the same subject replaces the first`() async throws {
        try await withStorage { storage in
            let other = Ban(subject: .address("203.0.113.7"), reason: "flood", createdAt: now)
            let second = Ban(subject: .identity(bob), reason: "again", createdAt: now + .seconds(1))
            try await storage.addBan(Ban(subject: .identity(bob), reason: "once", createdAt: now))
            try await storage.addBan(other)
            try await storage.addBan(second)
            #expect(try await storage.bans(at: now) == [other, second])
        }
    }

    @Test func `removing a ban returns whether there was one`() async throws {
        try await withStorage { storage in
            try await storage.addBan(Ban(subject: .address("203.0.113.7"), reason: "", createdAt: now))
            #expect(try await storage.removeBan(.identity(bob)) == false)
            #expect(try await storage.removeBan(.address("203.0.113.7")) == true)
            #expect(try await storage.removeBan(.address("203.0.113.7")) == false)
            #expect(try await storage.bans(at: now) == [])
        }
    }

    @Test func `bans that have ended are deleted by time only, whatever the clock of a new ban shows`()
        async throws
    {
        try await withStorage { storage in
            let end = now + .seconds(1)
            let ended = Ban(subject: .identity(bob), reason: "", createdAt: now, expiresAt: end)
            let lasting = Ban(subject: .identity(carol), reason: "", createdAt: now + .seconds(366 * 86400))
            try await storage.addBan(ended)
            try await storage.addBan(lasting)
            #expect(try await storage.bans(at: .distantPast) == [ended, lasting])
            #expect(try await storage.deleteOld(.bans, olderThan: end) == 0)
            #expect(try await storage.deleteOld(.bans, olderThan: end + .milliseconds(1)) == 1)
            #expect(try await storage.bans(at: .distantPast) == [lasting])
        }
    }

    @Test func `a report is stored completely, with its lines in order`() async throws {
        try await withStorage { storage in
            let written = report(lines: ["z", "", "a 👋🏽 ' \"; --", "line\nbreak"])
            try await storage.commit([.report(written)])
            let stored = try #require(try await storage.reports(includingClosed: false, limit: 10).first)
            #expect(stored == StoredReport(id: stored.id, report: written))
            #expect(try await storage.report(id: stored.id) == stored)
            #expect(try await storage.report(id: stored.id + 1) == nil)
        }
    }

    @Test func `a report keeps the sample of the reported person's camera, and it is deleted with the report`()
        async throws
    {
        try await withStorage { storage in
            var written = report(lines: [])
            written.sample = ReportedSample(jpeg: [0xFF, 0xD8, 0], at: now, verdict: .blur, warnings: 2, blurs: 1)
            var unjudged = report(lines: [])
            unjudged.sample = ReportedSample(jpeg: [1], at: now)
            try await storage.commit([.report(written), .report(unjudged)])
            let listed = try await storage.reports(includingClosed: false, limit: 10)
            #expect(listed.map { $0.report.sample?.verdict } == [nil, .blur], "the newest first")
            for stored in listed {
                var whole = try #require(try await storage.report(id: stored.id))
                #expect(whole.report.sample == (stored.report.sample?.verdict == nil ? unjudged : written).sample)
                // A list is without images.
                whole.report.sample?.jpeg = []
                #expect(whole == stored)
            }
            #expect(try await storage.deleteOld(.reports, olderThan: now + .seconds(1)) == 2)
            #expect(try await storage.reports(includingClosed: true, limit: 10).isEmpty)
        }
    }

    @Test func `a verdict that ends a chat is in the audit log`() async throws {
        try await withStorage { storage in
            let match = MatchID(high: 1, low: 2)
            try await storage.commit([.endedByCheck(bob, match, text: "No.", at: now)])
            let entries = try await storage.audit(since: .distantPast, limit: 10)
            let expected = AuditEntry(
                at: now, actor: "check", action: "chat.end", subject: "\(bob)", detail: "\(match): No.")
            #expect(entries == [expected])
        }
    }

    @Test func `a NUL in a chat line does not hide the rest`() async throws {
        try await withStorage { storage in
            try await storage.commit([.report(report(lines: ["before\0after"]))])
            let stored = try #require(try await storage.reports(includingClosed: false, limit: 1).first)
            #expect(stored.report.lines.map(\.text) == ["before\u{FFFD}after"])
        }
    }

    @Test func `reports are listed newest first, up to the limit`() async throws {
        try await withStorage { storage in
            for second in [2, 3, 1, 3] { try await storage.commit([.report(report(at: now + .seconds(second)))]) }
            let all = try await storage.reports(includingClosed: false, limit: 10)
            #expect(try await storage.openReportCount() == all.count)
            #expect(all.map { $0.report.createdAt - now } == [.seconds(3), .seconds(3), .seconds(2), .seconds(1)])
            #expect(all[0].id > all[1].id)
            #expect(try await storage.reports(includingClosed: false, limit: 2) == Array(all.prefix(2)))
            #expect(try await storage.reports(includingClosed: false, limit: 0) == [])
            #expect(try await storage.reports(includingClosed: false, limit: -1) == [])
        }
    }

    @Test func `a report can be closed once`() async throws {
        try await withStorage { storage in
            try await storage.commit([.report(report(lines: ["hello"])), .report(report())])
            let ids = try await storage.reports(includingClosed: false, limit: 10).map(\.id)
            #expect(try await storage.closeReport(id: ids[0], at: now) == true)
            #expect(try await storage.closeReport(id: ids[0], at: now + .seconds(1)) == false)
            #expect(try await storage.closeReport(id: 999, at: now) == false)
            #expect(try await storage.report(id: ids[0])?.closedAt == now)
            #expect(try await storage.reports(includingClosed: false, limit: 10).map(\.id) == [ids[1]])
            #expect(try await storage.reports(includingClosed: true, limit: 10).map(\.id) == ids)
        }
    }

    @Test func `old reports are deleted, and their numbers are not reused`() async throws {
        try await withStorage { storage in
            let limit = now - ConfabConfiguration().retention.reports
            let old = report(lines: ["x"], at: limit - .seconds(1))
            try await storage.commit([.report(report(at: limit)), .report(old)])
            let ids = try await storage.reports(includingClosed: true, limit: 10).map(\.id)
            #expect(try await storage.deleteOld(.reports, olderThan: limit) == 1)
            #expect(try await storage.deleteOld(.reports, olderThan: limit) == 0)
            #expect(try await storage.reports(includingClosed: true, limit: 10).map(\.id) == [ids[0]])
            try await storage.commit([.report(report(at: now))])
            let newest = try #require(try await storage.reports(includingClosed: true, limit: 1).first)
            #expect(newest.id > (ids.max() ?? 0))
            #expect(newest.report.lines == [])
        }
    }

    @Test func `the change counter is stable while no ban changes`() async throws {
        try await withStorage { storage in
            let before = try await storage.changeCounter()
            try await storage.commit([block(alice, bob), .report(report())])
            _ = try await storage.bans(at: now)
            #expect(try await storage.changeCounter() == before)
        }
    }

    @Test func `many concurrent commits are all stored`() async throws {
        try await withStorage { storage in
            try await withThrowingTaskGroup(of: Void.self) { group in
                for number in 0..<200 { group.addTask { try await storage.commit([block(alice, person(number))]) } }
                try await group.waitForAll()
            }
            #expect(try await storage.person(alice, at: now).blocked.sorted() == (0..<200).map(person))
        }
    }

    @Test func `closed storage throws, and can be closed again`() async throws {
        try await withStorage { storage in
            try await storage.close()
            await expect(.closed) { try await storage.commit([block(alice, bob)]) }
            await expect(.closed) { _ = try await storage.person(alice, at: now) }
            await expect(.closed) { _ = try await storage.visitor(alice, at: now) }
            await expect(.closed) { _ = try await storage.openCalls() }
            await expect(.closed) { try await storage.removePushEndpoint("x", of: alice) }
            await expect(.closed) { try await storage.removeBan(.identity(bob)) }
            await expect(.closed) { _ = try await storage.changeCounter() }
            try await storage.close()
        }
    }
}
