import Wire

/// A connected device of a person.
struct Device: Equatable, Sendable {
    var address: String
    var name: DeviceName
    /// The session in which a legacy client publishes with every partner; nil for other clients.
    var home: SessionID?
    /// The identity whose secret the device presented.
    var identity: IdentityID
    /// Whether the device shows warnings to the person.
    var showsWarnings = false
    /// A number that is higher for devices that connected later.
    var order: UInt64 = 0
    var isDropped = false
    /// Whether the device sent `presence.appear`.
    var hasAppeared = false
    /// Whether the device is watching a page of people nearby.
    var isWatching = false
    /// Whether its connection is being closed, because the person has too many.
    var isClosing = false

    /// Whether the device is online (it sent `presence.appear`) and connected.
    var isThere: Bool { hasAppeared && !isDropped }
}

/// The devices of a person: which are connected, which are linked, and whether any can receive push notifications.
struct DeviceList: Equatable, Sendable {
    /// A connection of this person, and the device on it.
    private struct Connected: Equatable, Sendable {
        let client: ConnectionID
        var device: Device
    }

    /// The connected devices, ordered by their connections. An array, because most people have one device, and a
    /// dictionary of one takes twice the memory.
    private var connected: [Connected] = []
    private var lastOrder: UInt64 = 0
    /// The budget that all devices share for their requests; nil until it is first used.
    private var requests: Budget?
    var ownPresence = OwnPresence()
    private var linked: [LinkedDevice]
    /// True if the person's first device was unlinked.
    private var isRetired: Bool
    /// Whether any device can receive push notifications.
    private(set) var hasPush: Bool
    /// When this person's pairing code expires; nil if there is none.
    private(set) var codeUntil: Timestamp?
    /// The budget for creating pairing codes; nil until it is first used.
    private var codes: Budget?

    init(_ record: PersonRecord) {
        (linked, isRetired, hasPush) = (record.devices, record.isRetired, record.hasPush)
    }

    // MARK: Connected devices

    private func index(of client: ConnectionID) -> Int? { connected.firstIndex { $0.client == client } }

    subscript(client: ConnectionID) -> Device? { index(of: client).map { connected[$0].device } }

    func contains(where matches: (Device) -> Bool) -> Bool { connected.contains { matches($0.device) } }

    var isEmpty: Bool { connected.isEmpty }
    /// All client connections, sorted so that their order is deterministic.
    var clients: [ConnectionID] { connected.map(\.client) }
    /// The devices that can ring now: those that are online and connected.
    var present: [ConnectionID] { connected.filter(\.device.isThere).map(\.client) }
    /// The identities of the linked devices. Each differs from the identity of the person.
    var linkedIdentities: [IdentityID] { linked.map(\.identity) }
    /// Whether the person is online on any device.
    var isThere: Bool { connected.contains(where: \.device.isThere) }
    /// Whether any device has sent `presence.appear`, including devices that have lost their connection.
    var hasAppeared: Bool { connected.contains(where: \.device.hasAppeared) }

    func isLive(_ client: ConnectionID) -> Bool { !(self[client]?.isDropped ?? true) }
    func hasAppeared(_ client: ConnectionID) -> Bool { self[client]?.hasAppeared ?? false }
    func isWatching(_ client: ConnectionID) -> Bool { self[client]?.isWatching ?? false }
    var watching: [ConnectionID] { connected.filter(\.device.isWatching).map(\.client) }

    func checkAppeared(_ client: ConnectionID) throws(WireError) {
        guard hasAppeared(client) else { throw WireError(.notPresent, "Send presence.appear first.") }
    }

    /// The name from a user token; nil if no device presented a user token with a name.
    var vouchedName: String? {
        for entry in connected {
            if case .vouched(let name) = entry.device.name { return PersonName.vouched(name) }
        }
        return nil
    }

    /// Whether the person signed in with a user token that contains a name. Devices of such a person cannot be linked
    /// with pairing codes, because the application that issues the tokens decides who signs in.
    private var isVouched: Bool { vouchedName != nil }

    mutating func insert(_ device: Device, _ client: ConnectionID) {
        lastOrder += 1
        var device = device
        device.order = lastOrder
        _ = remove(client)
        let index = connected.firstIndex { client < $0.client } ?? connected.count
        connected.insert(Connected(client: client, device: device), at: index)
    }

    /// Closes as many connections as exceed the limit: first those that dropped, then the oldest. The number is
    /// limited because every change to a person is sent to all of their connections.
    mutating func closeExcess(_ context: inout Context) {
        let open = connected.filter { !$0.device.isClosing }
        let excess = open.count - context.rules.connectionsPerPerson
        guard excess > 0 else { return }
        let oldest = open.sorted {
            ($0.device.isDropped ? 0 : 1, $0.device.order) < ($1.device.isDropped ? 0 : 1, $1.device.order)
        }.prefix(excess).map(\.client)
        for client in oldest { change(client) { $0.isClosing = true } }
        disconnect(oldest, "Too many open connections. The oldest one was closed. Close some tabs or apps.", &context)
    }

    /// Charges one request to the shared budget. Returns an error if the budget is exhausted, otherwise nil.
    mutating func takeRequest(_ context: Context) -> WireError? {
        let rate = context.rules.personVerbs
        return requests.take(rate, now: context.now).map { wait in
            WireError(
                .rateLimited, "Too many requests from your devices. Try again in \(wait.roundedText).", retryable: true,
                retryAfter: wait)
        }
    }

    /// Records the new address of a connected device.
    ///
    /// - Returns: false if the device already had this address or is not connected.
    mutating func move(_ client: ConnectionID, to address: String) -> Bool {
        guard let index = index(of: client), connected[index].device.address != address else { return false }
        connected[index].device.address = address
        return true
    }

    mutating func remove(_ client: ConnectionID) -> Device? {
        index(of: client).map { connected.remove(at: $0).device }
    }

    /// Changes a device; does nothing if it is not connected.
    private mutating func change(_ client: ConnectionID, _ body: (inout Device) -> Void) {
        if let index = index(of: client) { body(&connected[index].device) }
    }

    mutating func setDropped(_ client: ConnectionID, _ isDropped: Bool) { change(client) { $0.isDropped = isDropped } }
    mutating func setAppeared(_ client: ConnectionID) { change(client) { $0.hasAppeared = true } }
    mutating func setWatching(_ client: ConnectionID, _ watches: Bool) { change(client) { $0.isWatching = watches } }

    /// Handles `presence.leave`: the device no longer counts as online, and stops watching people nearby. It stays
    /// connected.
    mutating func leave(_ client: ConnectionID, _ context: inout Context) {
        if isWatching(client) { context.tell(.directory(.unwatch(client))) }
        change(client) { ($0.hasAppeared, $0.isWatching) = (false, false) }
    }

    func disconnect(_ clients: [ConnectionID], _ text: String, _ context: inout Context) {
        for client in clients { context.tell(.client(client, .expel(WireError(.replaced, text), .replaced))) }
    }

    // MARK: Push

    mutating func setPush(_ isReachable: Bool) { hasPush = isReachable }

    // MARK: Linking

    mutating func checkCode(_ now: Timestamp) {
        if let until = codeUntil, until <= now { codeUntil = nil }
    }

    /// Makes this person's pairing code invalid.
    mutating func withdrawCode(of id: IdentityID, _ context: inout Context) {
        guard codeUntil != nil else { return }
        codeUntil = nil
        context.tell(.deviceCodes(.withdraw(id)))
    }

    mutating func link(_ request: Request, of id: IdentityID, _ context: inout Context) {
        guard !isVouched else {
            let error = WireError(
                .notPermitted, "You are signed in, so no pairing code is needed. Sign in on the other device instead.")
            return context.fail(error, request)
        }
        guard count < context.rules.devicesPerPerson else { return tooMany(request, &context) }
        if let wait = codes.take(context.rules.linkCodes, now: context.now) {
            let error = WireError(
                .rateLimited,
                "Too many pairing codes. Use the most recent one, or try again in \(wait.roundedText).",
                retryable: true, retryAfter: wait)
            return context.fail(error, request)
        }
        // Keep the person in memory until the code expires, even if the page is closed, because the code may be entered on
        // another device.
        codeUntil = context.now + context.rules.linkCodeLifetime
        context.tell(.deviceCodes(.make(id, request.client, re: request.re)))
    }

    private var count: Int { linked.count + (isRetired ? 0 : 1) }

    private func tooMany(_ request: Request, _ context: inout Context) {
        let error = WireError(
            .linkInvalid,
            "You can have at most \(context.rules.devicesPerPerson) devices. Unlink one first.")
        context.fail(error, request)
    }

    func useLink(_ verb: PresenceVerb.UseLink, _ request: Request, of id: IdentityID, _ context: inout Context) {
        guard let device = self[request.client] else { return }
        var verb = verb
        do throws(WireError) {
            verb.label = try linkable(device, verb.label ?? "", of: id)
        } catch {
            return context.fail(error, request)
        }
        context.tell(
            .deviceCodes(
                .use(verb, device: device.identity, request.client, address: device.address, re: request.re)))
    }

    /// Returns the label for the new device. Throws if the device may not be linked.
    private func linkable(_ device: Device, _ label: String, of id: IdentityID) throws(WireError) -> String {
        guard device.identity == id else {
            throw WireError(
                .linkInvalid,
                "This device is already linked to another account. Unlink it from that account first.")
        }
        guard linked.isEmpty else {
            throw WireError(.linkInvalid, "Other devices are linked to this one. Unlink them first.")
        }
        guard !isVouched else {
            throw WireError(
                .linkInvalid, "You are signed in on this device. Sign in on the other device instead of linking.")
        }
        guard let label = PersonName.normalized(label) else { throw PersonName.invalid }
        return label.isEmpty ? "Linked device" : label
    }

    mutating func add(_ device: LinkedDevice, _ request: Request, _ snapshot: PersonSnapshot, _ context: inout Context)
    {
        codeUntil = nil
        if let error = snapshot.banError(context.wallNow) { return context.fail(error, request) }
        guard count < context.rules.devicesPerPerson else { return tooMany(request, &context) }
        linked.append(device)
        context.persist(.linked(device, to: snapshot.id))
        context.send(
            .presence(.linked(.init(re: request.re, person: snapshot.persona.id))), to: request.client)
        context.tell(.person(device.identity, .presence(.becameDevice(of: snapshot.id))))
    }

    /// Turns this person into a device of another person. This person's clients are disconnected and must reconnect as
    /// that person.
    mutating func handOver(to person: IdentityID, _ snapshot: PersonSnapshot, _ context: inout Context) {
        context.tell(.deviceCodes(.withdraw(snapshot.id)))
        context.tell(.lookup(snapshot.persona.id, .void))
        codeUntil = nil
        // Storage has already moved the blocks and push registrations together with the link.
        let inheritance = PersonPresenceEvent.inherited(blocked: snapshot.blocks.oldestFirst, hasPush: hasPush)
        context.tell(.person(person, .presence(inheritance)))
        hasPush = false
        disconnect(clients, "This device is now linked to another account. Send hello again.", &context)
    }

    // MARK: Listing and unlinking

    func list(_ request: Request, _ snapshot: PersonSnapshot, _ context: inout Context) {
        let (current, project) = (self[request.client]?.identity, context.project)
        var list: [DeviceInfo] = []
        func add(_ device: IdentityID, _ label: String, _ linkedAt: Timestamp?) {
            let isThere = connected.contains { $0.device.identity == device && $0.device.isThere }
            list.append(
                DeviceInfo(
                    id: device == snapshot.id ? snapshot.persona.id : project.personID(of: device), label: label,
                    current: device == current, present: isThere, linkedAt: linkedAt))
        }
        if !isRetired { add(snapshot.id, "First device", nil) }
        for device in linked { add(device.identity, device.label, device.linkedAt) }
        context.send(.presence(.devices(.init(re: request.re, devices: list))), to: request.client)
    }

    mutating func unlink(_ device: PersonID, _ request: Request, _ snapshot: PersonSnapshot, _ context: inout Context) {
        let (id, project) = (snapshot.id, context.project)
        let index = linked.firstIndex { project.personID(of: $0.identity) == device }
        guard index != nil || (device == snapshot.persona.id && !isRetired) else {
            let error = WireError(.notFound, "No linked device has this ID. Request presence.devices again.")
            return context.fail(error, request)
        }
        guard count > 1 else {
            let error = WireError(
                .notPermitted, "You cannot unlink your only device. Delete your account instead (presence.delete).")
            return context.fail(error, request)
        }
        let identity = index.map { linked.remove(at: $0).identity } ?? id
        if index == nil { isRetired = true }
        context.persist(index == nil ? .retired(id) : .unlinked(identity))
        // Withdraw the pairing code, because the unlinked device may have created it.
        context.tell(.deviceCodes(.withdraw(id)))
        codeUntil = nil
        if hasPush {
            // Check for push registrations again, because the unlinked device may have had the only one.
            context.query(Question(identity: id, client: request.client, re: request.re, .wakeable))
        }
        context.ok(request)
        let clients = connected.filter { $0.device.identity == identity }.map(\.client)
        for other in clients { context.send(.presence(.unlinked), to: other) }
        disconnect(clients, "This device was unlinked. Send hello again.", &context)
    }
}
