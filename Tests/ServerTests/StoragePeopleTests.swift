import Server
import Signaling
import Testing
import Wire

@Suite("People in storage")
struct StoragePeopleTests: StorageFixtures {
    private var loud: Profile { Profile(name: "Alice", isVisible: false, doNotDisturb: true, ringable: .contacts) }

    private func known(_ number: UInt64) -> PersonID { PersonID(high: 7, low: number) }

    private func profile(_ id: IdentityID, _ person: PersonID, _ profile: Profile) -> Change {
        .profile(id, person, profile, at: now)
    }

    private func device(_ id: IdentityID, _ label: String, after seconds: Int = 0) -> LinkedDevice {
        LinkedDevice(identity: id, label: label, linkedAt: now + .seconds(seconds))
    }

    private func keep(_ first: IdentityID, _ second: IdentityID, _ names: [String] = ["Alice", "Bob"]) -> Change {
        .keptInTouch(first, second, names: names, at: now)
    }

    private func contacts(_ storage: any Storage, _ id: IdentityID) async throws -> [Contact] {
        try await storage.person(id, at: now).contacts
    }

    // MARK: Profiles

    @Test func `profiles that were not used again are deleted, unless something depends on them`() async throws {
        try await withStorage { storage in
            let (dan, eve, fay) = (person(4), person(5), person(6))
            for (number, id) in [alice, bob, carol, dan, eve, fay].enumerated() {
                try await storage.commit([profile(id, known(UInt64(number)), Profile(name: "P\(number)"))])
            }
            // Alice returns later. Bob and Carol are contacts, Dan has a second device, Eve a push endpoint.
            let later = now + .seconds(100)
            try await storage.commit([.profile(alice, known(0), Profile(name: "P0"), at: later)])
            try await storage.commit([keep(bob, carol), .linked(device(person(9), "Phone"), to: dan)])
            let push = PushRegistration(kind: .apns, endpoint: "ab")
            try await storage.addPushEndpoint(push, of: eve, device: eve, at: now)
            #expect(try await storage.deleteOld(.profiles, olderThan: now) == 0)
            #expect(try await storage.deleteOld(.profiles, olderThan: later) == 1)
            var left: [String] = []
            for number in 0..<6 {
                if let found = try await storage.person(known(UInt64(number)), at: now) {
                    left.append(found.record.profile?.name ?? "")
                }
            }
            #expect(left == ["P0", "P1", "P2", "P3", "P4"])
            #expect(try await storage.person(alice, at: now).profileUsedAt == later)
            #expect(try await storage.person(fay, at: now).profileUsedAt == nil)
        }
    }

    @Test func `the latest profile is found by the person ID`() async throws {
        try await withStorage { storage in
            #expect(try await storage.person(known(1), at: now) == nil)
            try await storage.commit([profile(alice, known(1), Profile(name: "A")), block(alice, bob)])
            try await storage.commit([profile(alice, known(1), loud)])
            let found = try #require(try await storage.person(known(1), at: now))
            #expect(found.identity == alice)
            #expect(found.record == PersonRecord(blocked: [bob], profile: loud, profileUsedAt: now))
            #expect(try await storage.person(alice, at: now) == found.record)
            #expect(try await storage.person(known(2), at: now) == nil)
        }
    }

    @Test func `a NUL in a name does not hide the rest`() async throws {
        try await withStorage { storage in
            try await storage.commit([
                profile(alice, known(1), Profile(name: "a\0b")), .linked(device(bob, "c\0d"), to: alice),
                keep(alice, carol, ["x", "e\0f"]),
            ])
            let record = try await storage.person(alice, at: now)
            #expect(record.profile?.name == "a\u{FFFD}b")
            #expect(record.devices.map(\.label) == ["c\u{FFFD}d"])
            #expect(record.contacts.map(\.name) == ["e\u{FFFD}f"])
        }
    }

    // MARK: Devices

    @Test func `a linked device belongs to its person until it is unlinked`() async throws {
        try await withStorage { storage in
            #expect(try await storage.resolve(bob) == .itself)
            #expect(try await storage.visitor(bob, at: now) == FoundRecord(identity: bob, record: PersonRecord()))
            let (phone, tablet) = (device(bob, "Phone", after: 1), device(carol, "Tablet"))
            try await storage.commit([
                profile(alice, known(1), loud), profile(bob, known(2), Profile(name: "Bob")),
                .linked(phone, to: alice), .linked(tablet, to: alice),
            ])
            #expect(try await storage.resolve(bob) == .person(alice))
            let found = try #require(try await storage.visitor(bob, at: now))
            #expect(found.identity == alice)
            #expect(found.record == PersonRecord(profile: loud, profileUsedAt: now, devices: [tablet, phone]))
            #expect(try await storage.person(known(2), at: now) == nil, "a linked device is not a separate person")
            try await storage.commit([.unlinked(bob)])
            #expect(try await storage.resolve(bob) == .itself)
            #expect(try await storage.person(known(2), at: now)?.record.profile?.name == "Bob")
            #expect(try await storage.person(alice, at: now).devices == [tablet])
        }
    }

    @Test func `the blocks of a linked device are appended to those of its person`() async throws {
        try await withStorage { storage in
            try await storage.commit([
                block(alice, person(1)), block(bob, person(2)), block(bob, person(1)), block(bob, alice),
                block(bob, person(3)), .linked(device(bob, ""), to: alice),
            ])
            #expect(try await storage.person(alice, at: now).blocked == [1, 2, 3].map(person))
            try await storage.commit([.unlinked(bob)])
            #expect(try await storage.person(bob, at: now).blocked == [person(2), person(1), alice, person(3)])
        }
    }

    @Test func `a retired secret is invalid, while the person keeps the other devices`() async throws {
        try await withStorage { storage in
            let phone = device(bob, "Phone")
            try await storage.commit([profile(alice, known(1), loud), .linked(phone, to: alice), .retired(alice)])
            #expect(try await storage.resolve(alice) == .retired)
            #expect(try await storage.person(alice, at: now).isRetired)
            #expect(try await !storage.person(bob, at: now).isRetired)
            #expect(try await storage.visitor(alice, at: now) == nil)
            #expect(try await storage.visitor(bob, at: now)?.identity == alice)
            #expect(try await storage.person(known(1), at: now)?.record.devices == [phone])
            try await storage.commit([.unlinked(alice)])
            #expect(try await storage.resolve(alice) == .retired, "unlinking does not change a retired device")
        }
    }

    // MARK: Contacts

    @Test func `contacts are mutual, with the latest names`() async throws {
        try await withStorage { storage in
            try await storage.commit([keep(alice, carol, ["Alice", "Carol"]), keep(alice, bob)])
            #expect(
                try await contacts(storage, alice) == [
                    Contact(identity: carol, name: "Carol"), Contact(identity: bob, name: "Bob"),
                ])
            #expect(try await contacts(storage, bob) == [Contact(identity: alice, name: "Alice")])
            try await storage.commit([keep(carol, alice, ["Caroline", "Al"])])
            try await storage.commit([profile(bob, known(2), Profile(name: "Bobby"))])
            try await storage.commit([profile(bob, known(2), Profile(name: ""))])
            #expect(try await contacts(storage, alice).map(\.name) == ["Caroline", "Bobby"])
            try await storage.commit([.lostTouch(bob, alice), .lostTouch(bob, person(1))])
            #expect(try await contacts(storage, alice).map(\.identity) == [carol])
            #expect(try await contacts(storage, bob) == [])
        }
    }

    @Test func `a contact beyond the limit drops the oldest on both sides`() async throws {
        try await withStorage(StorageBounds(contacts: 2)) { storage in
            for number in 1...3 { try await storage.commit([keep(person(number), alice)]) }
            #expect(try await contacts(storage, alice).map(\.identity) == [person(2), person(3)])
            #expect(try await contacts(storage, person(1)) == [])
            #expect(try await contacts(storage, person(2)).map(\.identity) == [alice])
        }
    }

    // MARK: Push endpoints

    private func browser(_ name: String, key: String = "k") -> PushRegistration {
        PushRegistration(kind: .web, endpoint: "https://push.example/\(name)", p256dh: key, auth: "a")
    }

    @Test func `push endpoints are stored completely, with renewed ones last`() async throws {
        try await withStorage { storage in
            let app = PushRegistration(kind: .apns, endpoint: "00ff", sandbox: true)
            #expect(try await storage.person(alice, at: now).hasPush == false)
            try await storage.addPushEndpoint(app, of: alice, device: bob, at: now)
            #expect(try await storage.pushEndpoints(of: alice) == [], "the device does not belong to that person")
            try await storage.commit([.linked(device(bob, "Phone"), to: alice)])
            try await storage.addPushEndpoint(browser("1"), of: alice, device: alice, at: now)
            try await storage.addPushEndpoint(app, of: alice, device: bob, at: now)
            try await storage.addPushEndpoint(browser("1", key: "new"), of: alice, device: alice, at: now)
            try await storage.addPushEndpoint(browser("1"), of: carol, device: carol, at: now)
            #expect(try await storage.pushEndpoints(of: alice) == [app, browser("1", key: "new")])
            #expect(try await storage.person(alice, at: now).hasPush)
            #expect(try await storage.removePushEndpoint("https://push.example/1", of: alice))
            #expect(try await storage.removePushEndpoint("https://push.example/2", of: alice))
            #expect(try await storage.removePushEndpoint("00ff", of: alice) == false)
            #expect(try await storage.person(alice, at: now).hasPush == false)
            #expect(try await storage.pushEndpoints(of: carol) == [browser("1")])
        }
    }

    @Test func `the 21st push endpoint drops the oldest`() async throws {
        try await withStorage { storage in
            #expect(StorageLimits.pushEndpointsPerPerson == 20)
            for number in 0...20 {
                try await storage.addPushEndpoint(browser("\(number)"), of: alice, device: alice, at: now)
            }
            #expect(try await storage.pushEndpoints(of: alice) == (1...20).map { browser("\($0)") })
        }
    }

    @Test func `push endpoints move with a device to its person and are removed with it`() async throws {
        try await withStorage { storage in
            try await storage.addPushEndpoint(browser("root"), of: alice, device: alice, at: now)
            try await storage.addPushEndpoint(browser("phone"), of: bob, device: bob, at: now)
            try await storage.commit([.linked(device(bob, ""), to: alice)])
            #expect(try await storage.pushEndpoints(of: alice) == [browser("root"), browser("phone")])
            #expect(try await storage.pushEndpoints(of: bob) == [])
            try await storage.commit([.unlinked(bob)])
            #expect(try await storage.pushEndpoints(of: alice) == [browser("root")])
            try await storage.commit([.retired(alice)])
            #expect(try await storage.pushEndpoints(of: alice) == [])
        }
    }
}
