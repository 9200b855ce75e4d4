import Wire

/// A connected device of a person.
struct Device: Equatable, Sendable {
    var address: String
    var name: DeviceName
    /// Where it publishes in every match, on RouletteTok's wire.
    var home: SessionID?
    /// Whose secret it came with.
    var identity: IdentityID
    var isDropped = false
    /// Whether it said `presence.appear`.
    var hasAppeared = false
    /// Whether it looks at a page of people nearby.
    var isWatching = false

    /// Whether it has appeared and is not dropped.
    var isThere: Bool { hasAppeared && !isDropped }
}

/// The devices of a person: which are connected, which are linked, and whether any can be woken.
struct DeviceList: Equatable, Sendable {
    private var connected: [ConnectionID: Device] = [:]
    private var linked: [LinkedDevice]
    /// Whether the first device was unlinked.
    private var isRetired: Bool
    /// Whether some device can be woken.
    private(set) var hasPush: Bool
    /// Until then a code of this person may be typed on another device.
    private(set) var codeUntil: Timestamp?
    /// Codes to link devices by that are left.
    private var codes: Budget?

    init(_ record: PersonRecord) {
        (linked, isRetired, hasPush) = (record.devices, record.isRetired, record.hasPush)
    }

    // MARK: Connected devices

    subscript(client: ConnectionID) -> Device? { connected[client] }

    var isEmpty: Bool { connected.isEmpty }
    /// In an order that is the same on every run.
    var clients: [ConnectionID] { connected.keys.sorted() }
    /// Devices that can be rung now.
    var present: [ConnectionID] { connected.filter(\.value.isThere).keys.sorted() }
    /// Whether the person is there on some device.
    var isThere: Bool { connected.values.contains(where: \.isThere) }
    /// Whether some device has appeared, dropped or not.
    var hasAppeared: Bool { connected.values.contains(where: \.hasAppeared) }

    func isLive(_ client: ConnectionID) -> Bool { !(connected[client]?.isDropped ?? true) }
    func hasAppeared(_ client: ConnectionID) -> Bool { connected[client]?.hasAppeared ?? false }
    func isWatching(_ client: ConnectionID) -> Bool { connected[client]?.isWatching ?? false }
    var watching: [ConnectionID] { connected.filter(\.value.isWatching).keys.sorted() }

    func checkAppeared(_ client: ConnectionID) throws(WireError) {
        guard hasAppeared(client) else { throw WireError(.notPresent, "Say presence.appear first.") }
    }

    /// What a program vouches for, if one of the devices came with its token.
    var vouchedName: String? {
        for client in clients {
            if case .vouched(let name)? = connected[client]?.name { return PersonName.vouched(name) }
        }
        return nil
    }

    /// Whether a program knows this person: who that is, is then proved by the program alone.
    private var isVouched: Bool { vouchedName != nil }

    mutating func insert(_ device: Device, _ client: ConnectionID) { connected[client] = device }
    mutating func remove(_ client: ConnectionID) -> Device? { connected.removeValue(forKey: client) }
    mutating func setDropped(_ client: ConnectionID, _ isDropped: Bool) { connected[client]?.isDropped = isDropped }
    mutating func setAppeared(_ client: ConnectionID) { connected[client]?.hasAppeared = true }
    mutating func setWatching(_ client: ConnectionID, _ watches: Bool) { connected[client]?.isWatching = watches }

    /// The device is not present any more. It stays connected.
    mutating func leave(_ client: ConnectionID, _ turn: inout Turn) {
        if isWatching(client) { turn.tell(.directory(.unwatch(client))) }
        connected[client]?.hasAppeared = false
        connected[client]?.isWatching = false
    }

    private func sendAway(_ clients: [ConnectionID], _ text: String, _ turn: inout Turn) {
        for client in clients { turn.tell(.client(client, .expel(WireError(.replaced, text), .replaced))) }
    }

    // MARK: Waking

    mutating func setPush(_ isReachable: Bool) { hasPush = isReachable }

    // MARK: Linking

    mutating func checkCode(_ now: Timestamp) {
        if let until = codeUntil, until <= now { codeUntil = nil }
    }

    mutating func link(_ request: Request, of id: IdentityID, _ turn: inout Turn) {
        guard !isVouched else {
            let error = WireError(.notPermitted, "Sign in on the other device as you did on this one.")
            return turn.fail(error, request)
        }
        guard count < turn.rules.devicesPerPerson else { return tooMany(request, &turn) }
        if let wait = codes.take(turn.rules.linkCodes, now: turn.now) {
            let error = WireError(
                .rateLimited, "Too many codes; type the one you have, or wait \(wait.inWords).", retryable: true,
                retryAfter: wait)
            return turn.fail(error, request)
        }
        // The person must stay in memory after closing the page, until the code is typed elsewhere.
        codeUntil = turn.now + turn.rules.linkCodeLifetime
        turn.tell(.deviceCodes(.make(id, request.client, re: request.re)))
    }

    private var count: Int { linked.count + (isRetired ? 0 : 1) }

    private func tooMany(_ request: Request, _ turn: inout Turn) {
        let error = WireError(
            .linkInvalid,
            "A person has at most \(turn.rules.devicesPerPerson) devices; unlink one of them first.")
        turn.fail(error, request)
    }

    func useLink(_ verb: PresenceVerb.UseLink, _ request: Request, of id: IdentityID, _ turn: inout Turn) {
        guard let device = connected[request.client] else { return }
        var verb = verb
        do throws(WireError) {
            verb.label = try linkable(device, verb.label ?? "", of: id)
        } catch {
            return turn.fail(error, request)
        }
        turn.tell(
            .deviceCodes(
                .use(verb, device: device.identity, request.client, address: device.address, re: request.re)))
    }

    /// Returns the device's label; throws if it may not be linked.
    private func linkable(_ device: Device, _ label: String, of id: IdentityID) throws(WireError) -> String {
        guard device.identity == id else {
            throw WireError(.linkInvalid, "This device is linked to another already; unlink it there first.")
        }
        guard linked.isEmpty else {
            throw WireError(.linkInvalid, "Other devices are linked to this one; unlink them first.")
        }
        guard !isVouched else {
            throw WireError(.linkInvalid, "You are signed in here; sign in on the other device as well.")
        }
        guard let label = PersonName.normalised(label) else { throw PersonName.invalid }
        return label.isEmpty ? "Linked device" : label
    }

    mutating func add(_ device: LinkedDevice, _ request: Request, _ facts: Facts, _ turn: inout Turn) {
        codeUntil = nil
        if let error = facts.banError(turn.now) { return turn.fail(error, request) }
        guard count < turn.rules.devicesPerPerson else { return tooMany(request, &turn) }
        linked.append(device)
        turn.persist(.linked(device, to: facts.id))
        turn.send(
            .presence(.linked(.init(re: request.re, person: facts.persona.id))), to: request.client)
        turn.tell(.person(device.identity, .presence(.becameDevice(of: facts.id))))
    }

    /// This person becomes a device of the other: its clients come back as the other's.
    mutating func handOver(to person: IdentityID, _ facts: Facts, _ turn: inout Turn) {
        turn.tell(.deviceCodes(.withdraw(facts.id)))
        turn.tell(.lookup(facts.persona.id, .void))
        codeUntil = nil
        // Storage has both already, with the link.
        let inheritance = PersonPresenceEvent.inherited(blocked: facts.blocks.oldestFirst, hasPush: hasPush)
        turn.tell(.person(person, .presence(inheritance)))
        hasPush = false
        sendAway(clients, "This device is linked now; say hello again.", &turn)
    }

    // MARK: Listing and unlinking

    func list(_ request: Request, _ facts: Facts, _ turn: inout Turn) {
        let (current, project) = (connected[request.client]?.identity, turn.project)
        var list: [DeviceInfo] = []
        func add(_ device: IdentityID, _ label: String, _ linkedAt: Timestamp?) {
            let isThere = connected.values.contains { $0.identity == device && $0.isThere }
            list.append(
                DeviceInfo(
                    id: device == facts.id ? facts.persona.id : project.personID(of: device), label: label,
                    current: device == current, present: isThere, linkedAt: linkedAt))
        }
        if !isRetired { add(facts.id, "First device", nil) }
        for device in linked { add(device.identity, device.label, device.linkedAt) }
        turn.send(.presence(.devices(.init(re: request.re, devices: list))), to: request.client)
    }

    mutating func unlink(_ device: PersonID, _ request: Request, _ facts: Facts, _ turn: inout Turn) {
        let (id, project) = (facts.id, turn.project)
        let index = linked.firstIndex { project.personID(of: $0.identity) == device }
        guard index != nil || (device == facts.persona.id && !isRetired) else {
            let error = WireError(.notFound, "You have no such device; ask for presence.devices again.")
            return turn.fail(error, request)
        }
        guard count > 1 else {
            let error = WireError(
                .notPermitted, "This is your only device, and nobody could be you without it; delete yourself instead.")
            return turn.fail(error, request)
        }
        let identity = index.map { linked.remove(at: $0).identity } ?? id
        if index == nil { isRetired = true }
        turn.persist(index == nil ? .retired(id) : .unlinked(identity))
        // It may have asked for it.
        turn.tell(.deviceCodes(.withdraw(id)))
        codeUntil = nil
        if hasPush {
            // It may have been the only one that could be woken.
            turn.inquire(Question(identity: id, client: request.client, re: request.re, .wakeable))
        }
        turn.ok(request)
        let clients = connected.filter { $0.value.identity == identity }.keys.sorted()
        for other in clients { turn.send(.presence(.unlinked), to: other) }
        sendAway(clients, "This device is not linked any more; say hello again.", &turn)
    }

    // MARK: Deleting

    /// The person is deleted, and its devices come back as others.
    func delete(_ turn: inout Turn) {
        for client in clients { turn.send(.presence(.deleted), to: client) }
        sendAway(clients, "This person is deleted; say hello without an identity.", &turn)
        for client in watching { turn.tell(.directory(.unwatch(client))) }
    }
}
