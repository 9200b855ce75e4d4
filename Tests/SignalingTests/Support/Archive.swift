import Cluster
import Signaling
import Wire

/// Storage for tests. It applies changes, loads the records of people who connect, and answers queries.
///
/// It behaves like the server's storage, but keeps everything in dictionaries.
struct Archive {
    /// The person to whom a device's secret belongs: the device's own identity, another person, or nobody anymore.
    enum Resolved: Equatable {
        case itself
        case person(IdentityID)
        case retired
    }

    private(set) var openCalls: [CallID: StoredCall] = [:]
    /// The life of a node that has each call; none if the call's node is dead, or if there is no cluster.
    var callHomes: [CallID: NodeTag] = [:]
    /// The persistent rooms.
    private(set) var rooms: [RoomID: StoredRoom] = [:]
    /// The archives of recordings.
    private(set) var archives: [ArchiveID: ArchiveRecord] = [:]
    private(set) var broadcasts: [BroadcastID: BroadcastRecord] = [:]
    /// The events for webhooks, in the order in which they were committed.
    private(set) var outbox: [WebhookEvent] = []
    /// The call log of each person, with the newest call last.
    private(set) var logs: [IdentityID: [CallRecord]] = [:]
    /// Push endpoints of each person, and the device of each endpoint.
    private(set) var endpoints: [IdentityID: [String: IdentityID]] = [:]
    /// Whether to refuse push endpoints, for tests of push services that are not allowed.
    var refusesPush = false
    private var blocked: [IdentityID: [IdentityID]] = [:]
    private var profiles: [IdentityID: Profile] = [:]
    private var profileUses: [IdentityID: Timestamp] = [:]
    private var persons: [PersonID: IdentityID] = [:]
    private var devices: [IdentityID: (person: IdentityID, device: LinkedDevice)] = [:]
    private var retired: Set<IdentityID> = []
    private var contacts: [IdentityID: [Contact]] = [:]

    // MARK: Records

    func resolve(_ device: IdentityID) -> Resolved {
        if retired.contains(device) { return .retired }
        return devices[device].map { .person($0.person) } ?? .itself
    }

    func record(of identity: IdentityID) -> PersonRecord {
        let linked = devices.values.filter { $0.person == identity }.map(\.device)
        return PersonRecord(
            blocked: blocked[identity] ?? [], profile: profiles[identity], profileUsedAt: profileUses[identity],
            devices: linked.sorted { ($0.linkedAt, $0.identity) < ($1.linkedAt, $1.identity) },
            contacts: contacts[identity] ?? [], unseenCalls: (logs[identity] ?? []).filter { !$0.isSeen },
            hasPush: isReachable(identity), isRetired: retired.contains(identity)
        )
    }

    /// Returns the identity with this ID. A linked device is not found by its own ID.
    func identity(of person: PersonID) -> IdentityID? {
        persons[person].flatMap { devices[$0] == nil ? $0 : nil }
    }

    func isReachable(_ identity: IdentityID) -> Bool { !(endpoints[identity] ?? [:]).isEmpty }

    // MARK: Changes

    mutating func apply(_ change: Change) {
        switch change {
        case .block(let owner, let other, _): block(other, by: owner)
        case .unblock(let owner, let other): blocked[owner]?.removeAll { $0 == other }
        case .report, .endedByCheck, .revoked, .muted: break
        case .roomStored(let room): rooms[room.id] = room
        case .roomForgotten(let room): rooms[room] = nil
        case .archiveStored(let archive): archives[archive.id] = archive
        case .archiveForgotten(let archive): archives[archive] = nil
        case .broadcastStored(let broadcast): broadcasts[broadcast.id] = broadcast
        case .webhook(let event): outbox.append(event)
        case .profile(let identity, let person, let profile, let at):
            (profiles[identity], persons[person], profileUses[identity]) = (profile, identity, at)
        case .linked(let device, let person):
            devices[device.identity] = (person, device)
            for other in blocked[device.identity] ?? [] where other != person { block(other, by: person) }
            endpoints[person, default: [:]].merge(endpoints.removeValue(forKey: device.identity) ?? [:]) { $1 }
        case .unlinked(let device):
            devices[device] = nil
            forgetEndpoints(of: device)
        case .retired(let device):
            devices[device] = nil
            retired.insert(device)
            forgetEndpoints(of: device)
        case .deleted(let identity, _): delete(identity)
        case .keptInTouch(let one, let other, let names, _):
            add(Contact(identity: other, name: names.last ?? ""), to: one)
            add(Contact(identity: one, name: names.first ?? ""), to: other)
        case .lostTouch(let one, let other):
            contacts[one]?.removeAll { $0.identity == other }
            contacts[other]?.removeAll { $0.identity == one }
        case .callPlaced, .callAccepted, .callOver, .callLogged, .callSeen, .callsForgotten: applyToCalls(change)
        }
    }

    private mutating func applyToCalls(_ change: Change) {
        switch change {
        case .callPlaced(let call): openCalls[call.id] = call
        case .callAccepted(let call, let at, people: _): openCalls[call]?.acceptedAt = at
        case .callOver(let call, people: _): openCalls[call] = nil
        case .callLogged(let record, let owner):
            let isKnown = logs[owner]?.contains { ($0.call, $0.outcome) == (record.call, .missed) } ?? false
            if isKnown, record.outcome == .missed { return }
            logs[owner]?.removeAll { $0.call == record.call }
            logs[owner, default: []].append(record)
        case .callSeen(let call, let owner):
            guard let index = logs[owner]?.firstIndex(where: { $0.call == call }) else { return }
            logs[owner]?[index].isSeen = true
        case .callsForgotten(let call, let owner):
            logs[owner]?.removeAll { call == nil || $0.call == call }
        default: break
        }
    }

    private mutating func block(_ other: IdentityID, by owner: IdentityID) {
        if !(blocked[owner] ?? []).contains(other) { blocked[owner, default: []].append(other) }
    }

    private mutating func add(_ contact: Contact, to owner: IdentityID) {
        contacts[owner]?.removeAll { $0.identity == contact.identity }
        contacts[owner, default: []].append(contact)
    }

    private mutating func forgetEndpoints(of device: IdentityID) {
        for person in endpoints.keys { endpoints[person] = endpoints[person]?.filter { $0.value != device } }
    }

    private mutating func delete(_ identity: IdentityID) {
        for (device, entry) in devices where entry.person == identity {
            devices[device] = nil
            retired.insert(device)
        }
        retired.insert(identity)
        persons = persons.filter { $0.value != identity }
        (profiles[identity], contacts[identity], blocked[identity]) = (nil, nil, nil)
        profileUses[identity] = nil
        (logs[identity], endpoints[identity]) = (nil, nil)
        for owner in logs.keys {
            for index in (logs[owner] ?? []).indices where logs[owner]?[index].other == identity {
                logs[owner]?[index].otherName = ""
            }
        }
        for owner in contacts.keys { contacts[owner]?.removeAll { $0.identity == identity } }
        openCalls = openCalls.filter { $0.value.caller != identity && $0.value.callee != identity }
    }

    // MARK: Queries

    mutating func answer(_ question: Question) -> Finding {
        switch question.query {
        case .person(let person, _):
            return .person(self.identity(of: person).map { FoundRecord(identity: $0, record: record(of: $0)) })
        case .callHome(let call):
            let isTheirs = openCalls[call].map { [$0.caller, $0.callee].contains(question.identity) } ?? false
            return .callHome(isTheirs ? callHomes[call].map { .node($0) } ?? .changing : nil)
        case .callLog(let page): return logPage(page, of: question.identity)
        case .register(let registration):
            if refusesPush { return .refused(WireError(.pushNotAllowed, "This push service is not on the list.")) }
            endpoints[question.identity, default: [:]][registration.endpoint] = question.device
            return .push(isReachable: true)
        case .unregister(let endpoint):
            endpoints[question.identity]?[endpoint.endpoint] = nil
            return .push(isReachable: isReachable(question.identity))
        case .wakeable: return .push(isReachable: isReachable(question.identity))
        }
    }

    /// Returns a page of the call log. The cursor is the number of rows already returned.
    private func logPage(_ page: CallVerb.LogPage, of owner: IdentityID) -> Finding {
        let newest = Array((logs[owner] ?? []).reversed())
        let start = page.before.flatMap { Int($0) } ?? 0
        let rows = Array(newest.dropFirst(start).prefix(page.limit ?? Limits.callLogRows))
        let end = start + rows.count
        return .callLog(rows, next: end < newest.count ? "\(end)" : nil)
    }
}
