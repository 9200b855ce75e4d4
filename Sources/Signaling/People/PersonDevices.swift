import Wire

/// One person on several devices: linking one, letting one go, and deleting everything.
extension Person {
    // MARK: Linking

    mutating func link(_ request: Request, _ turn: inout Turn) {
        guard !isVouched else {
            let error = WireError(.notPermitted, "Sign in on the other device as you did on this one.")
            return turn.fail(error, request)
        }
        guard deviceCount < turn.rules.devicesPerPerson else { return tooManyDevices(request, &turn) }
        if let wait = linkCodes.take(turn.rules.linkCodes, now: turn.now) {
            let error = WireError(
                .rateLimited, "Too many codes; type the one you have, or wait \(wait.inWords).", retryable: true,
                retryAfter: wait)
            return turn.fail(error, request)
        }
        // Whoever shows a code and closes the page must still be here when it is typed elsewhere.
        codeUntil = turn.now + turn.rules.linkCodeLifetime
        turn.tell(.links(.make(id, request.client, re: request.re)))
    }

    private var deviceCount: Int { linkedDevices.count + (isRetired ? 0 : 1) }

    private func tooManyDevices(_ request: Request, _ turn: inout Turn) {
        let error = WireError(
            .linkInvalid, "A person has at most \(turn.rules.devicesPerPerson) devices; unlink one of them first.")
        turn.fail(error, request)
    }

    mutating func useLink(_ verb: UseLink, _ request: Request, _ turn: inout Turn) {
        guard let device = devices[request.client] else { return }
        var verb = verb
        do throws(WireError) {
            verb.label = try linkable(device, verb.label ?? "")
        } catch {
            return turn.fail(error, request)
        }
        turn.tell(.links(.use(verb, device: device.identity, request.client, address: device.address, re: request.re)))
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

    mutating func linked(_ device: LinkedDevice, _ request: Request, _ turn: inout Turn) {
        codeUntil = nil
        if let error = banError(now: turn.now) { return turn.fail(error, request) }
        guard deviceCount < turn.rules.devicesPerPerson else { return tooManyDevices(request, &turn) }
        linkedDevices.append(device)
        turn.persist(.linked(device, to: id))
        turn.send(.presence(.linked(Linked(re: request.re, person: publicID))), to: request.client)
        turn.tell(.person(device.identity, .presence(.becameDevice(of: id))))
    }

    /// Its clients come back as the other person's.
    mutating func becameDevice(of person: IdentityID, _ turn: inout Turn) {
        turn.tell(.links(.withdraw(id)))
        turn.tell(.lookup(publicID, .void))
        codeUntil = nil
        // Storage has both already, with the link.
        turn.tell(.person(person, .presence(.inherited(blocked: blocked, hasPush: hasPush))))
        hasPush = false
        sendAway(devices.keys.sorted(), "This device is linked now; say hello again.", &turn)
    }

    private func sendAway(_ clients: [ConnectionID], _ text: String, _ turn: inout Turn) {
        for client in clients { turn.tell(.client(client, .expel(WireError(.replaced, text), .replaced))) }
    }

    // MARK: Devices

    func listDevices(_ request: Request, _ turn: inout Turn) {
        let current = devices[request.client]?.identity
        var list: [DeviceInfo] = []
        func add(_ device: IdentityID, _ label: String, _ linkedAt: Timestamp?) {
            let isPresent = devices.values.contains { $0.identity == device && $0.isPresent && !$0.isDropped }
            list.append(
                DeviceInfo(
                    id: device == id ? publicID : turn.project.personID(of: device), label: label,
                    current: device == current, present: isPresent, linkedAt: linkedAt))
        }
        if !isRetired { add(id, "First device", nil) }
        for device in linkedDevices { add(device.identity, device.label, device.linkedAt) }
        turn.send(.presence(.devices(Devices(re: request.re, devices: list))), to: request.client)
    }

    mutating func unlink(_ device: PersonID, _ request: Request, _ turn: inout Turn) {
        let index = linkedDevices.firstIndex { turn.project.personID(of: $0.identity) == device }
        guard index != nil || (device == publicID && !isRetired) else {
            let error = WireError(.notFound, "You have no such device; ask for presence.devices again.")
            return turn.fail(error, request)
        }
        guard deviceCount > 1 else {
            let error = WireError(
                .notPermitted, "This is your only device, and nobody could be you without it; delete yourself instead.")
            return turn.fail(error, request)
        }
        let identity = index.map { linkedDevices.remove(at: $0).identity } ?? id
        if index == nil { isRetired = true }
        turn.persist(index == nil ? .retired(id) : .unlinked(identity))
        // It may have asked for it.
        turn.tell(.links(.withdraw(id)))
        codeUntil = nil
        if hasPush {
            // It may have been the only one that could be woken.
            turn.inquire(Question(identity: id, client: request.client, re: request.re, .wakeable))
        }
        turn.ok(request)
        let clients = devices.filter { $0.value.identity == identity }.keys.sorted()
        for other in clients { turn.send(.presence(.unlinked), to: other) }
        sendAway(clients, "This device is not linked any more; say hello again.", &turn)
    }

    // MARK: Deleting

    /// Everything held of this person, on all devices. What others hold, such as their log of calls, is theirs.
    mutating func delete(_ request: Request, _ turn: inout Turn) {
        turn.tell(.links(.withdraw(id)))
        turn.tell(.lookup(publicID, .void))
        endAllCalls(.deleted, &turn)
        stopSearching(.partnerLeft, &turn)
        loseAllContacts(&turn)
        turn.persist(.deleted(id))
        turn.ok(request)
        let clients = devices.keys.sorted()
        for other in clients { turn.send(.presence(.deleted), to: other) }
        sendAway(clients, "This person is deleted; say hello without an identity.", &turn)
        for other in clients where devices[other]?.isWatching ?? false {
            turn.tell(.directory(.unwatch(other)))
        }
        (profile, isKnown, cell, trail) = (Profile(), false, nil, nil)
        // Before anything that is on its way can have something of it stored again.
        isDeleted = true
    }
}
