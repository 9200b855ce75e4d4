import Wire

/// One person on several devices: linking one, letting one go, and deleting everything.
extension Person {
    // MARK: Linking

    mutating func link(
        _ client: ConnectionID, _ re: UInt64, now: Timestamp, _ rules: Rules, into effects: inout [Effect]
    ) {
        guard !isVouched else {
            let error = WireError(.notPermitted, "Sign in on the other device as you did on this one.")
            return effects.fail(error, re: re, to: client)
        }
        guard deviceCount < rules.devicesPerPerson else { return tooManyDevices(re, client, rules, into: &effects) }
        if let wait = linkCodes.take(rules.linkCodes, now: now) {
            let error = WireError(
                .rateLimited, "Too many codes; type the one you have, or wait \(wait.inWords).", retryable: true,
                retryAfter: wait)
            return effects.fail(error, re: re, to: client)
        }
        // Whoever shows a code and closes the page must still be here when it is typed elsewhere.
        codeUntil = now + rules.linkCodeLifetime
        effects.tell(.links(.make(id, client, re: re)))
    }

    private var deviceCount: Int { linkedDevices.count + (isRetired ? 0 : 1) }

    private func tooManyDevices(
        _ re: UInt64, _ client: ConnectionID, _ rules: Rules, into effects: inout [Effect]
    ) {
        let error = WireError(
            .linkInvalid, "A person has at most \(rules.devicesPerPerson) devices; unlink one of them first.")
        effects.fail(error, re: re, to: client)
    }

    mutating func useLink(
        _ verb: UseLink, _ client: ConnectionID, _ re: UInt64, into effects: inout [Effect]
    ) {
        guard let device = devices[client] else { return }
        var verb = verb
        do throws(WireError) {
            verb.label = try linkable(device, verb.label ?? "")
        } catch {
            return effects.fail(error, re: re, to: client)
        }
        effects.tell(.links(.use(verb, device: device.identity, client, address: device.address, re: re)))
    }

    /// What the device is called, if it may become another person's.
    private func linkable(_ device: Device, _ label: String) throws(WireError) -> String {
        guard device.identity == id else {
            throw WireError(.linkInvalid, "This device is linked to another already; unlink it there first.")
        }
        guard linkedDevices.isEmpty else {
            throw WireError(.linkInvalid, "Other devices are linked to this one; unlink them first.")
        }
        guard !isVouched else {
            throw WireError(.linkInvalid, "You are signed in here; sign in on the other device as well.")
        }
        guard let label = PersonName.normalised(label) else { throw PersonName.invalid }
        return label.isEmpty ? "Linked device" : label
    }

    mutating func linked(
        _ device: LinkedDevice, _ client: ConnectionID, _ re: UInt64, now: Timestamp, _ rules: Rules,
        into effects: inout [Effect]
    ) {
        codeUntil = nil
        if let error = banError(now: now) { return effects.fail(error, re: re, to: client) }
        guard deviceCount < rules.devicesPerPerson else { return tooManyDevices(re, client, rules, into: &effects) }
        linkedDevices.append(device)
        effects.append(.persist(.linked(device, to: id)))
        effects.send(.presence(.linked(Linked(re: re, person: publicID))), to: client)
        effects.tell(.person(device.identity, .presence(.becameDevice(of: id))))
    }

    /// Its clients come back as the other person's.
    mutating func becameDevice(of person: IdentityID, into effects: inout [Effect]) {
        effects.tell(.links(.withdraw(id)))
        codeUntil = nil
        // Storage has both already, with the link.
        effects.tell(.person(person, .presence(.inherited(blocked: blocked, hasPush: hasPush))))
        hasPush = false
        sendAway(devices.keys.sorted(), "This device is linked now; say hello again.", into: &effects)
    }

    private func sendAway(_ clients: [ConnectionID], _ text: String, into effects: inout [Effect]) {
        for client in clients { effects.tell(.client(client, .expel(WireError(.replaced, text), .replaced))) }
    }

    // MARK: Devices

    func listDevices(_ client: ConnectionID, _ re: UInt64, _ project: Project, into effects: inout [Effect]) {
        let current = devices[client]?.identity
        var list: [DeviceInfo] = []
        func add(_ device: IdentityID, _ label: String, _ linkedAt: Timestamp?) {
            let isPresent = devices.values.contains { $0.identity == device && $0.isPresent && !$0.isDropped }
            list.append(
                DeviceInfo(
                    id: device == id ? publicID : project.personID(of: device), label: label,
                    current: device == current, present: isPresent, linkedAt: linkedAt))
        }
        if !isRetired { add(id, "First device", nil) }
        for device in linkedDevices { add(device.identity, device.label, device.linkedAt) }
        effects.send(.presence(.devices(Devices(re: re, devices: list))), to: client)
    }

    mutating func unlink(
        _ device: PersonID, _ client: ConnectionID, _ re: UInt64, _ project: Project, into effects: inout [Effect]
    ) {
        let index = linkedDevices.firstIndex { project.personID(of: $0.identity) == device }
        guard index != nil || (device == publicID && !isRetired) else {
            let error = WireError(.notFound, "You have no such device; ask for presence.devices again.")
            return effects.fail(error, re: re, to: client)
        }
        guard deviceCount > 1 else {
            let error = WireError(
                .notPermitted, "This is your only device, and nobody could be you without it; delete yourself instead.")
            return effects.fail(error, re: re, to: client)
        }
        let identity = index.map { linkedDevices.remove(at: $0).identity } ?? id
        if index == nil { isRetired = true }
        effects.append(.persist(index == nil ? .retired(id) : .unlinked(identity)))
        // It may have asked for it.
        effects.tell(.links(.withdraw(id)))
        codeUntil = nil
        if hasPush {
            // It may have been the only one that could be woken.
            effects.append(.inquire(Question(identity: id, client: client, re: re, .wakeable)))
        }
        effects.send(.ok(Answer(re: re)), to: client)
        let clients = devices.filter { $0.value.identity == identity }.keys.sorted()
        for client in clients { effects.send(.presence(.unlinked), to: client) }
        sendAway(clients, "This device is not linked any more; say hello again.", into: &effects)
    }

    // MARK: Deleting

    /// Everything held of this person, on all devices. What others hold, such as their log of calls, is theirs.
    mutating func delete(
        _ client: ConnectionID, _ re: UInt64, now: Timestamp, _ rules: Rules, into effects: inout [Effect]
    ) {
        effects.tell(.links(.withdraw(id)))
        endAllCalls(.deleted, into: &effects)
        stopSearching(.partnerLeft, now: now, rules, into: &effects)
        loseAllContacts(into: &effects)
        effects.append(.persist(.deleted(id)))
        effects.send(.ok(Answer(re: re)), to: client)
        let clients = devices.keys.sorted()
        for client in clients { effects.send(.presence(.deleted), to: client) }
        sendAway(clients, "This person is deleted; say hello without an identity.", into: &effects)
        for client in clients where devices[client]?.isWatching ?? false {
            effects.tell(.directory(.unwatch(client)))
        }
        (profile, isKnown, cell, trail) = (Profile(), false, nil, nil)
        // Before anything that is on its way can have something of it stored again.
        isDeleted = true
    }
}
