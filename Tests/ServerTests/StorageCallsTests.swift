import Server
import Signaling
import Testing
import Wire

@Suite("Calls in storage")
struct StorageCallsTests: StorageFixtures {
    private func call(_ number: Int) -> CallID { CallID(high: 9, low: UInt64(number)) }

    private func going(_ number: Int, from caller: IdentityID, to callee: IdentityID) -> StoredCall {
        StoredCall(
            id: call(number), session: SessionID("1_session\(number)") ?? .unset, caller: caller, callee: callee,
            callerName: "Caller", calleeName: "Callee", video: number.isMultiple(of: 2),
            placedAt: now + .seconds(number), ringsUntil: now + .seconds(number + 45))
    }

    private func logged(
        _ number: Int, with other: IdentityID, _ outcome: CallOutcome = .hungUp, seen: Bool = true,
        after seconds: Int? = nil
    ) -> CallRecord {
        CallRecord(
            call: call(number), other: other, otherName: "Other \(number)", direction: .outgoing, outcome: outcome,
            video: true, at: now + .seconds(seconds ?? number),
            duration: outcome == .hungUp ? .milliseconds(1234) : nil,
            isSeen: seen)
    }

    private func log(_ storage: any Storage, of owner: IdentityID) async throws -> [CallRecord] {
        try await storage.callLog(of: owner, before: nil, limit: 50).calls
    }

    @Test func `ongoing calls are returned until they end`() async throws {
        try await withStorage { storage in
            let (first, second) = (going(1, from: alice, to: bob), going(2, from: carol, to: alice))
            try await storage.commit([.callPlaced(second), .callPlaced(first)])
            #expect(try await storage.openCalls() == [first, second])
            try await storage.commit([
                .callAccepted(second.id, at: now + .seconds(9), people: []), .callOver(first.id, people: []),
            ])
            var accepted = second
            accepted.acceptedAt = now + .seconds(9)
            #expect(try await storage.openCalls() == [accepted])
            try await storage.commit([.callOver(first.id, people: []), .callAccepted(first.id, at: now, people: [])])
            #expect(try await storage.openCalls() == [accepted])
        }
    }

    @Test func `a log is read page by page, newest first`() async throws {
        try await withStorage { storage in
            // Several calls have the same millisecond, and a page ends among them.
            let records = (0..<120).map { logged($0, with: bob, after: $0 / 7) }
            try await storage.commit(records.map { .callLogged($0, of: alice) })
            try await storage.commit([.callLogged(logged(500, with: alice), of: bob)])
            var read: [CallRecord] = []
            var sizes: [Int] = []
            var next: CallLogCursor?
            repeat {
                let page = try await storage.callLog(of: alice, before: next, limit: 1000)
                read += page.calls
                sizes.append(page.calls.count)
                next = try page.next.map { try #require(CallLogCursor($0.text)) }
                // New calls must not change what the cursor refers to.
                try await storage.commit([.callLogged(logged(600 + sizes.count, with: bob), of: alice)])
            } while next != nil
            #expect(sizes == [50, 50, 20])
            #expect(read == records.reversed())
            #expect(try await storage.callLog(of: alice, before: nil, limit: 0).calls.count == 1)
            #expect(try await storage.callLog(of: carol, before: nil, limit: 50) == CallPage())
        }
    }

    @Test func `invalid cursors are rejected`() {
        let id = "\(call(1))"
        #expect(CallLogCursor("1f-" + id) == CallLogCursor(at: Timestamp(milliseconds: 31), call: call(1)))
        for text in ["", "-", "x-y", "1", "1-", "-1-" + id, "1-" + id + "-", "99999999999999999-" + id, "g-" + id] {
            #expect(CallLogCursor(text) == nil, "\(text)")
        }
    }

    @Test func `a call is logged once per person, with its latest data`() async throws {
        try await withStorage { storage in
            let missed = logged(1, with: bob, .missed, seen: false)
            try await storage.commit([.callLogged(logged(1, with: bob), of: alice), .callLogged(missed, of: alice)])
            try await storage.commit([.callLogged(logged(1, with: alice), of: bob)])
            #expect(try await log(storage, of: alice) == [missed])
            #expect(try await log(storage, of: bob) == [logged(1, with: alice)])
        }
    }

    @Test func `a missed call that was seen stays seen when it is logged again`() async throws {
        try await withStorage { storage in
            let missed = logged(1, with: bob, .missed, seen: false)
            try await storage.commit([.callLogged(missed, of: alice), .callSeen(call(1), by: alice)])
            try await storage.commit([.callLogged(missed, of: alice)])
            #expect(try await log(storage, of: alice).map(\.isSeen) == [true])
            #expect(try await storage.person(alice, at: now).unseenCalls.isEmpty)
        }
    }

    @Test func `unseen calls are returned oldest first until they are seen`() async throws {
        try await withStorage { storage in
            let missed = [3, 1, 2].map { logged($0, with: bob, .missed, seen: false) }
            try await storage.commit(missed.map { .callLogged($0, of: alice) })
            try await storage.commit([.callLogged(logged(4, with: bob), of: alice)])
            #expect(try await storage.person(alice, at: now).unseenCalls.map(\.call) == [1, 2, 3].map(call))
            try await storage.commit([.callSeen(call(2), by: alice), .callSeen(call(1), by: bob)])
            #expect(try await storage.person(alice, at: now).unseenCalls.map(\.call) == [1, 3].map(call))
            #expect(try await log(storage, of: alice).map(\.isSeen) == [true, false, true, false])
            let many = (10..<10 + StorageLimits.unseenCalls + 5).map { logged($0, with: bob, .missed, seen: false) }
            try await storage.commit(many.map { .callLogged($0, of: alice) })
            #expect(try await storage.person(alice, at: now).unseenCalls == Array(many.dropFirst(5)))
        }
    }

    @Test func `an owner can delete one call or all of them`() async throws {
        try await withStorage { storage in
            try await storage.commit((1...3).map { .callLogged(logged($0, with: bob), of: alice) })
            try await storage.commit([.callLogged(logged(2, with: alice), of: bob)])
            try await storage.commit([.callsForgotten(call(2), by: alice)])
            #expect(try await log(storage, of: alice).map(\.call) == [call(3), call(1)])
            try await storage.commit([.callsForgotten(nil, by: alice)])
            #expect(try await log(storage, of: alice) == [])
            #expect(try await log(storage, of: bob).count == 1)
        }
    }

    @Test func `the 1001st call drops the oldest of its owner's log`() async throws {
        try await withStorage { storage in
            #expect(StorageLimits.callsPerOwner == 1000)
            try await storage.commit((0...1000).map { .callLogged(logged($0, with: bob), of: alice) })
            let held = try await storage.everything(of: alice, at: now)
            #expect(held.calls.count == 1000)
            #expect(held.calls.last?.call == call(1))
        }
    }

    @Test func `old calls are deleted from all logs`() async throws {
        try await withStorage { storage in
            try await storage.commit([1, 2, 3].map { .callLogged(logged($0, with: bob), of: alice) })
            try await storage.commit([.callLogged(logged(2, with: alice), of: bob)])
            #expect(try await storage.deleteOld(.calls, olderThan: now + .seconds(3)) == 3)
            #expect(try await storage.deleteOld(.calls, olderThan: now + .seconds(3)) == 0)
            #expect(try await log(storage, of: alice).map(\.call) == [call(3)])
        }
    }

    // MARK: Export and deletion

    private func fill(_ storage: any Storage) async throws {
        let phone = LinkedDevice(identity: carol, label: "Phone", linkedAt: now)
        try await storage.commit([
            .profile(alice, PersonID(high: 7, low: 1), Profile(name: "Alice"), at: now),
            .profile(carol, PersonID(high: 7, low: 3), Profile(name: "Phone's own"), at: now),
            .linked(phone, to: alice), block(alice, person(1)), block(bob, alice),
            .keptInTouch(alice, bob, names: ["Alice", "Bob"], at: now),
            .keptInTouch(carol, person(2), names: ["Carol", "Two"], at: now),
            .callPlaced(going(1, from: alice, to: bob)), .callPlaced(going(2, from: bob, to: person(1))),
            .callLogged(logged(3, with: bob), of: alice), .callLogged(logged(3, with: alice), of: bob),
            .report(report()),
        ])
        let endpoint = PushRegistration(kind: .apns, endpoint: "ab")
        try await storage.addPushEndpoint(endpoint, of: alice, device: carol, at: now)
    }

    @Test func `the export has all data of a person`() async throws {
        try await withStorage { storage in
            #expect(try await storage.everything(of: alice, at: now) == PersonData())
            try await fill(storage)
            let held = try await storage.everything(of: alice, at: now)
            #expect(held.profile?.name == "Alice")
            #expect(held.devices.map(\.identity) == [carol])
            #expect(held.blocks.map(\.person) == [person(1)])
            #expect(held.contacts.map(\.contact) == [Contact(identity: bob, name: "Bob")])
            #expect(held.calls == [logged(3, with: bob)])
            #expect(held.openCalls == [going(1, from: alice, to: bob)])
            #expect(held.endpoints.map(\.registration.endpoint) == ["ab"])
            #expect(held.reports.map(\.reason) == ["rude"])
        }
    }

    @Test func `a deleted person is removed everywhere, with all devices`() async throws {
        try await withStorage { storage in
            try await fill(storage)
            try await storage.commit([.deleted(alice)])
            for id in [alice, carol] {
                #expect(try await storage.resolve(id) == .retired)
                #expect(try await storage.visitor(id, at: now) == nil)
                var held = try await storage.everything(of: id, at: now)
                // Reports by the deleted person are kept until they expire, because they are about other people.
                held.reports = []
                #expect(held == PersonData())
            }
            #expect(try await storage.person(PersonID(high: 7, low: 1), at: now) == nil)
            #expect(try await storage.person(PersonID(high: 7, low: 3), at: now) == nil)
            #expect(try await storage.openCalls().map(\.id) == [call(2)])
            let bobs = try await storage.everything(of: bob, at: now)
            #expect(bobs.contacts == [])
            #expect(bobs.blocks.map(\.person) == [alice], "blocks of other people are kept")
            #expect(bobs.calls.map(\.otherName) == [""], "other people keep the call without the name")
            #expect(try await storage.person(person(2), at: now).contacts == [])
        }
    }
}
