import Signaling
import Wire

/// People and their calls in `MemoryStorage`.
struct MemoryPeople {
    /// The entry of a linked or retired device.
    private struct Device {
        /// The person that the device belongs to; `nil` if the device is retired: its secret is no longer valid.
        var person: IdentityID?
        var label = ""
        var linkedAt = Timestamp(milliseconds: 0)
    }

    private let bounds: StorageBounds
    private var profiles: [IdentityID: Profile] = [:]
    private var profileUses: [IdentityID: Timestamp] = [:]
    private var identities: [PersonID: IdentityID] = [:]
    private var devices: [IdentityID: Device] = [:]
    /// Each person's contacts, oldest first.
    private var contacts: [IdentityID: [PersonData.KeptContact]] = [:]
    private var open: [CallID: StoredCall] = [:]
    private var log: [IdentityID: [CallID: CallRecord]] = [:]
    /// Each person's push endpoints, oldest first.
    private var endpoints: [IdentityID: [PersonData.KeptEndpoint]] = [:]

    init(_ bounds: StorageBounds) { self.bounds = bounds }

    // MARK: Changes

    mutating func setProfile(_ profile: Profile, of id: IdentityID, knownAs person: PersonID, at: Timestamp) {
        (profiles[id], profileUses[id]) = (profile.withoutNUL, at)
        identities[person] = id
        // Keep the names in other people's contacts if the name is empty: it stands for a generated name, which only
        // the person's state machine can produce.
        guard let name = profiles[id]?.name, !name.isEmpty else { return }
        for owner in contacts.keys {
            guard let index = contacts[owner]?.firstIndex(where: { $0.contact.identity == id }) else { continue }
            contacts[owner]?[index].contact.name = name
        }
    }

    mutating func link(_ device: LinkedDevice, to person: IdentityID) {
        devices[device.identity] = Device(
            person: person, label: device.label.withoutNUL, linkedAt: device.linkedAt)
        for endpoint in endpoints.removeValue(forKey: device.identity) ?? [] { keep(endpoint, of: person) }
    }

    mutating func unlink(_ device: IdentityID) {
        if devices[device]?.person != nil { devices[device] = nil }
        forgetEndpoints(of: device)
    }

    mutating func retire(_ device: IdentityID) {
        devices[device] = Device()
        forgetEndpoints(of: device)
    }

    /// Deletes a person with all linked devices.
    ///
    /// - Returns: the deleted identities, including the person's own.
    mutating func delete(_ person: IdentityID) -> [IdentityID] {
        let all = [person] + devices.filter { $0.value.person == person }.keys
        for id in all {
            forgetProfile(of: id)
            for contact in contacts[id] ?? [] { separate(id, contact.contact.identity) }
            // Search all owners, because a contact entry may exist in one direction only.
            for owner in contacts.keys { forget(id, by: owner) }
            open = open.filter { !$0.value.isOf(id) }
            log[id] = nil
            for owner in log.keys {
                for (call, record) in log[owner] ?? [:] where record.other == id { log[owner]?[call]?.otherName = "" }
            }
            endpoints[id] = nil
            retire(id)
        }
        return all
    }

    mutating func join(_ first: IdentityID, _ second: IdentityID, names: [String], at: Timestamp) {
        guard first != second, names.count == 2 else { return }
        add(Contact(identity: second, name: names[1].withoutNUL), to: first, at)
        add(Contact(identity: first, name: names[0].withoutNUL), to: second, at)
    }

    private mutating func add(_ contact: Contact, to owner: IdentityID, _ at: Timestamp) {
        if let index = contacts[owner]?.firstIndex(where: { $0.contact.identity == contact.identity }) {
            contacts[owner]?[index].contact.name = contact.name
            return
        }
        contacts[owner, default: []].append(PersonData.KeptContact(contact: contact, since: at))
        while let oldest = contacts[owner]?.first, contacts[owner]?.count ?? 0 > bounds.contacts {
            separate(owner, oldest.contact.identity)
        }
    }

    mutating func separate(_ first: IdentityID, _ second: IdentityID) {
        forget(second, by: first)
        forget(first, by: second)
    }

    private mutating func forget(_ other: IdentityID, by owner: IdentityID) {
        contacts[owner]?.removeAll { $0.contact.identity == other }
        if contacts[owner]?.isEmpty == true { contacts[owner] = nil }
    }

    mutating func place(_ call: StoredCall) { open[call.id] = call.withoutNUL }

    mutating func accept(_ call: CallID, at: Timestamp) { open[call]?.acceptedAt = at }

    mutating func end(_ call: CallID) { open[call] = nil }

    mutating func logCall(_ record: CallRecord, of owner: IdentityID) {
        log[owner, default: [:]][record.call] = record.withoutNUL
        for record in newestFirst(owner).dropFirst(bounds.calls) { log[owner]?[record.call] = nil }
    }

    mutating func seeCall(_ call: CallID, by owner: IdentityID) { log[owner]?[call]?.isSeen = true }

    mutating func forgetCalls(_ call: CallID?, by owner: IdentityID) {
        if let call { log[owner]?[call] = nil } else { log[owner] = nil }
    }

    mutating func deleteCalls(olderThan limit: Timestamp) -> Int {
        var count = 0
        for owner in log.keys {
            let old = (log[owner] ?? [:]).values.filter { $0.at < limit }
            for record in old { log[owner]?[record.call] = nil }
            count += old.count
        }
        return count
    }

    // MARK: Endpoints

    mutating func keep(_ endpoint: PersonData.KeptEndpoint, of person: IdentityID) {
        // The device may have been unlinked in the meantime.
        guard resolve(endpoint.device).identity(of: endpoint.device) == person else { return }
        var list = endpoints[person] ?? []
        list.removeAll { $0.registration.endpoint == endpoint.registration.endpoint }
        list.append(endpoint)
        endpoints[person] = list.suffix(bounds.pushEndpoints)
    }

    mutating func removeEndpoint(_ endpoint: String, of person: IdentityID) -> Bool {
        endpoints[person]?.removeAll { $0.registration.endpoint == endpoint }
        return !(endpoints[person] ?? []).isEmpty
    }

    mutating func deleteEndpoints(olderThan moment: Timestamp) -> Int {
        var count = 0
        for person in endpoints.keys {
            let before = endpoints[person]?.count ?? 0
            endpoints[person]?.removeAll { $0.at < moment }
            count += before - (endpoints[person]?.count ?? 0)
        }
        return count
    }

    mutating func deleteUnusedProfiles(since moment: Timestamp) -> Int {
        let unused = profileUses.filter { id, usedAt in
            usedAt < moment && contacts[id] == nil && linkedDevices(of: id).isEmpty && (endpoints[id] ?? []).isEmpty
        }.keys
        for id in unused { forgetProfile(of: id) }
        return unused.count
    }

    private mutating func forgetProfile(of id: IdentityID) {
        (profiles[id], profileUses[id]) = (nil, nil)
        identities = identities.filter { $0.value != id }
    }

    func pushEndpoints(of person: IdentityID) -> [PushRegistration] { (endpoints[person] ?? []).map(\.registration) }

    private mutating func forgetEndpoints(of device: IdentityID) {
        for person in endpoints.keys { endpoints[person]?.removeAll { $0.device == device } }
    }

    // MARK: Queries

    func resolve(_ device: IdentityID) -> DeviceOwner {
        guard let row = devices[device] else { return .itself }
        return row.person.map { .person($0) } ?? .retired
    }

    func identity(of person: PersonID) -> IdentityID? {
        guard let id = identities[person] else { return nil }
        if case .person = resolve(id) { return nil }
        return id
    }

    func fill(_ record: inout PersonRecord, of id: IdentityID) {
        (record.profile, record.profileUsedAt) = (profiles[id], profileUses[id])
        record.devices = linkedDevices(of: id)
        record.contacts = (contacts[id] ?? []).map(\.contact)
        record.unseenCalls = newestFirst(id).filter { !$0.isSeen }.prefix(StorageLimits.unseenCalls).reversed()
        record.hasPush = !(endpoints[id] ?? []).isEmpty
    }

    func fill(_ held: inout PersonData, of id: IdentityID) {
        held.profile = profiles[id]
        held.devices = linkedDevices(of: id)
        held.contacts = contacts[id] ?? []
        held.calls = newestFirst(id)
        held.openCalls = openCalls.filter { $0.isOf(id) }
        held.endpoints = endpoints[id] ?? []
    }

    private func linkedDevices(of person: IdentityID) -> [LinkedDevice] {
        devices.filter { $0.value.person == person }
            .map { LinkedDevice(identity: $0.key, label: $0.value.label, linkedAt: $0.value.linkedAt) }
            .sorted { ($0.linkedAt, $0.identity) < ($1.linkedAt, $1.identity) }
    }

    var openCalls: [StoredCall] { open.values.sorted { ($0.placedAt, $0.id) < ($1.placedAt, $1.id) } }

    private func newestFirst(_ owner: IdentityID) -> [CallRecord] {
        (log[owner] ?? [:]).values.sorted { $0.cursor > $1.cursor }
    }

    func page(of owner: IdentityID, before: CallLogCursor?, limit: Int) -> CallPage {
        let limit = CallPage.limited(limit)
        let rows = newestFirst(owner).drop { row in before.map { row.cursor >= $0 } ?? false }
        return CallPage(rows: Array(rows.prefix(limit + 1)), limit: limit)
    }
}
