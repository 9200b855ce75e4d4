import Foundation
import Signaling
import Wire

/// SQL statements about people: their profiles, devices, contacts and push endpoints. Each runs in the caller's
/// transaction.

// MARK: Changes

extension SQLTransaction {
    func setProfile(_ profile: Profile, of id: IdentityID, knownAs person: PersonID, at: Timestamp) throws {
        try run(
            """
            INSERT INTO profile (identity, person, name, isVisible, doNotDisturb, ringable, usedAt)
            VALUES (?, ?, ?, ?, ?, ?, ?)
            ON CONFLICT (identity) DO UPDATE SET person = excluded.person, name = excluded.name,
                isVisible = excluded.isVisible, doNotDisturb = excluded.doNotDisturb, ringable = excluded.ringable,
                usedAt = excluded.usedAt
            """,
            [
                id.blob, person.blob, profile.name, profile.isVisible, profile.doNotDisturb, profile.ringable.rawValue,
                at.milliseconds,
            ])
        // Keep the names in other people's contacts if the new name is empty: it means that the person has a
        // generated name, which only the person's state machine can produce.
        guard !profile.name.isEmpty else { return }
        try run("UPDATE contact SET name = ?1 WHERE other = ?2 AND name <> ?1", [profile.name, id.blob])
    }

    func link(_ device: LinkedDevice, to person: IdentityID, _ bounds: StorageBounds) throws {
        try upsert(
            "device", key: "identity",
            [
                "identity": device.identity.blob, "person": person.blob, "label": device.label.withoutNUL,
                "linkedAt": device.linkedAt.milliseconds,
            ])
        try mergeBlocks(of: device.identity, into: person, limit: bounds.blocks)
        for endpoint in try endpoints(of: device.identity) {
            try keep(endpoint, of: person, limit: bounds.pushEndpoints)
        }
        try run("DELETE FROM pushEndpoint WHERE identity = ?", [device.identity.blob])
    }

    func unlink(_ device: IdentityID) throws {
        try run("DELETE FROM device WHERE identity = ? AND person IS NOT NULL", [device.blob])
        try run("DELETE FROM pushEndpoint WHERE device = ?", [device.blob])
    }

    func retire(_ device: IdentityID) throws {
        try upsert(
            "device", key: "identity", ["identity": device.blob, "person": nil, "label": "", "linkedAt": nil])
        try run("DELETE FROM pushEndpoint WHERE device = ?", [device.blob])
    }

    /// Deletes a person's data and retires the secrets of the person and of all linked devices. Also deletes the data
    /// that a device stored before it was linked, which no client can access.
    func delete(_ person: IdentityID) throws {
        let devices: [IdentityID] = try rows("SELECT identity FROM device WHERE person = ?", [person.blob])
            .map { try $0.id("identity") }
        for id in [person] + devices {
            try run("DELETE FROM profile WHERE identity = ?", [id.blob])
            try run("DELETE FROM block WHERE owner = ?", [id.blob])
            try run("DELETE FROM contact WHERE owner = ?1 OR other = ?1", [id.blob])
            try run("DELETE FROM openCall WHERE caller = ?1 OR callee = ?1", [id.blob])
            try run("DELETE FROM callLog WHERE owner = ?", [id.blob])
            try run("UPDATE callLog SET otherName = '' WHERE other = ?", [id.blob])
            try run("DELETE FROM pushEndpoint WHERE identity = ?", [id.blob])
            try run("UPDATE room SET creator = NULL WHERE creator = ?", [id.blob])
            try retire(id)
        }
    }

    func join(_ first: IdentityID, _ second: IdentityID, names: [String], at: Timestamp, limit: Int) throws {
        guard first != second, names.count == 2 else { return }
        try addContact(second, named: names[1].withoutNUL, to: first, at: at, limit: limit)
        try addContact(first, named: names[0].withoutNUL, to: second, at: at, limit: limit)
    }

    private func addContact(
        _ other: IdentityID, named name: String, to owner: IdentityID, at: Timestamp, limit: Int
    ) throws {
        try run(
            """
            INSERT INTO contact (owner, other, name, since) VALUES (?, ?, ?, ?)
            ON CONFLICT (owner, other) DO UPDATE SET name = excluded.name
            """,
            [owner.blob, other.blob, name, at.milliseconds])
        let dropped: [IdentityID] = try rows(
            "SELECT other FROM contact WHERE owner = ? ORDER BY id DESC LIMIT \(SQLText.noLimit) OFFSET ?",
            [owner.blob, limit]
        ).map { try $0.id("other") }
        for other in dropped { try separate(owner, other) }
    }

    func separate(_ first: IdentityID, _ second: IdentityID) throws {
        try run(
            "DELETE FROM contact WHERE (owner = ?1 AND other = ?2) OR (owner = ?2 AND other = ?1)",
            [first.blob, second.blob])
    }
}

// MARK: - Queries

extension SQLTransaction {
    func resolve(_ device: IdentityID) throws -> DeviceOwner {
        guard let row = try rows("SELECT person FROM device WHERE identity = ?", [device.blob]).first else {
            return .itself
        }
        let person: Data? = try row.optional("person")
        return person == nil ? .retired : .person(try row.id("person"))
    }

    func visitor(_ device: IdentityID, at now: Timestamp) throws -> FoundRecord? {
        guard let id = try resolve(device).identity(of: device) else { return nil }
        return FoundRecord(identity: id, record: try person(id, at: now))
    }

    func person(_ id: PersonID, at now: Timestamp) throws -> FoundRecord? {
        guard let row = try rows("SELECT identity FROM profile WHERE person = ?", [id.blob]).first else { return nil }
        let identity: IdentityID = try row.id("identity")
        if case .person = try resolve(identity) { return nil }
        return FoundRecord(identity: identity, record: try person(identity, at: now))
    }

    func fill(_ record: inout PersonRecord, of id: IdentityID) throws {
        (record.profile, record.profileUsedAt) = (try profile(of: id), try profileUse(of: id))
        record.devices = try linkedDevices(of: id)
        record.contacts = try contacts(of: id).map(\.contact)
        record.unseenCalls = try unseenCalls(of: id)
        record.hasPush = try hasEndpoint(id)
    }

    func fill(_ held: inout PersonData, of id: IdentityID) throws {
        held.profile = try profile(of: id)
        held.devices = try linkedDevices(of: id)
        held.contacts = try contacts(of: id)
        held.calls = try calls(of: id, before: nil, limit: SQLText.noLimit)
        held.openCalls = try openCalls().filter { $0.isOf(id) }
        held.endpoints = try endpoints(of: id)
    }

    private func profile(of id: IdentityID) throws -> Profile? {
        try rows("SELECT * FROM profile WHERE identity = ?", [id.blob]).first.map { row in
            Profile(
                name: try row.value("name"), isVisible: try row.value("isVisible"),
                doNotDisturb: try row.value("doNotDisturb"), ringable: try row.choice("ringable"))
        }
    }

    private func profileUse(of id: IdentityID) throws -> Timestamp? {
        try rows("SELECT usedAt FROM profile WHERE identity = ?", [id.blob]).first.map { try $0.time("usedAt") }
    }

    private func linkedDevices(of person: IdentityID) throws -> [LinkedDevice] {
        try rows("SELECT * FROM device WHERE person = ? ORDER BY linkedAt, identity", [person.blob]).map { row in
            LinkedDevice(
                identity: try row.id("identity"), label: try row.value("label"), linkedAt: try row.time("linkedAt"))
        }
    }

    private func contacts(of owner: IdentityID) throws -> [PersonData.KeptContact] {
        try rows("SELECT other, name, since FROM contact WHERE owner = ? ORDER BY id", [owner.blob]).map { row in
            PersonData.KeptContact(
                contact: Contact(identity: try row.id("other"), name: try row.value("name")),
                since: try row.time("since"))
        }
    }
}

// MARK: - Push endpoints

extension SQLTransaction {
    /// Stores an endpoint, and deletes the person's oldest ones if there are more than `limit`. Registering an
    /// endpoint again replaces its row and makes it the newest, so endpoints in use are deleted last.
    func keep(_ endpoint: PersonData.KeptEndpoint, of id: IdentityID, limit: Int) throws {
        // Store nothing if the device no longer belongs to the person, because it was unlinked in the meantime.
        guard try resolve(endpoint.device).identity(of: endpoint.device) == id else { return }
        let registration = endpoint.registration
        try removeEndpoint(registration.endpoint, of: id)
        try run(
            """
            INSERT INTO pushEndpoint (identity, device, kind, endpoint, p256dh, auth, sandbox, createdAt)
            VALUES (?, ?, ?, ?, ?, ?, ?, ?)
            """,
            [
                id.blob, endpoint.device.blob, registration.kind.rawValue, registration.endpoint, registration.p256dh,
                registration.auth, registration.sandbox, endpoint.at.milliseconds,
            ])
        try run(
            """
            DELETE FROM pushEndpoint WHERE id IN (
                SELECT id FROM pushEndpoint WHERE identity = ? ORDER BY id DESC LIMIT \(SQLText.noLimit) OFFSET ?)
            """,
            [id.blob, limit])
    }

    func removeEndpoint(_ endpoint: String, of id: IdentityID) throws {
        try run("DELETE FROM pushEndpoint WHERE identity = ? AND endpoint = ?", [id.blob, endpoint])
    }

    func endpoints(of id: IdentityID) throws -> [PersonData.KeptEndpoint] {
        try rows("SELECT * FROM pushEndpoint WHERE identity = ? ORDER BY id", [id.blob]).map { row in
            PersonData.KeptEndpoint(
                device: try row.id("device"),
                registration: PushRegistration(
                    kind: try row.choice("kind"), endpoint: try row.value("endpoint"),
                    p256dh: try row.optional("p256dh"), auth: try row.optional("auth"),
                    sandbox: try row.optional("sandbox")),
                at: try row.time("createdAt"))
        }
    }

    func hasEndpoint(_ id: IdentityID) throws -> Bool {
        try !rows("SELECT 1 FROM pushEndpoint WHERE identity = ? LIMIT 1", [id.blob]).isEmpty
    }
}
