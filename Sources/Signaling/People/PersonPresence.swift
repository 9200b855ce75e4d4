import Wire

/// What reaches a person about being there.
public enum PersonPresenceEvent: Equatable, Sendable {
    /// A device that said a right code is this person's from now on.
    case linked(LinkedDevice, ConnectionID, re: UInt64)
    /// To the device's own person: it is another's now.
    case becameDevice(of: IdentityID)
    /// From a device that was linked: these are not to see its person either, and whether it can be woken.
    case inherited(blocked: [IdentityID], hasPush: Bool)
    /// Whether a device can be woken has changed.
    case pushChanged(isReachable: Bool)
    /// Somebody who has the public id asks who this is.
    case sought(by: IdentityID, ConnectionID, re: UInt64)
}

/// A person's presence: the name it goes by, who sees and may ring it, its devices, where it is.
extension Person {
    mutating func perform(
        _ verb: PresenceVerb, by client: ConnectionID, re: UInt64, now: Timestamp, in surroundings: Surroundings,
        into effects: inout [Effect]
    ) {
        switch verb {
        case .appear(let appearance):
            appear(appearance, client, re, now: now, surroundings.project, into: &effects)
        case .set(let appearance):
            guard isPresent(client, re, into: &effects) else { return }
            become(appearance, client, re, into: &effects)
        case .leave: leave(client, re, into: &effects)
        case .find(let verb): introduce(verb.person, for: .presence(.find(verb)), by: client, re: re, into: &effects)
        case .block(let verb): introduce(verb.person, for: .presence(.block(verb)), by: client, re: re, into: &effects)
        case .unblock(let verb): unblock(verb.person, client, re, surroundings.project, into: &effects)
        case .blocked: listBlocked(client, re, surroundings.project, into: &effects)
        case .link: link(client, re, now: now, surroundings.rules, into: &effects)
        case .useLink(let verb): useLink(verb, client, re, into: &effects)
        case .devices: listDevices(client, re, surroundings.project, into: &effects)
        case .unlink(let verb): unlink(verb.device, client, re, surroundings.project, into: &effects)
        case .delete: delete(client, re, now: now, surroundings.rules, into: &effects)
        }
    }

    mutating func handle(
        _ event: PersonPresenceEvent, now: Timestamp, in surroundings: Surroundings, into effects: inout [Effect]
    ) {
        switch event {
        case .linked(let device, let client, let re):
            linked(device, client, re, now: now, surroundings.rules, into: &effects)
        case .becameDevice(let person): becameDevice(of: person, into: &effects)
        case .inherited(let others, let deviceHasPush):
            if deviceHasPush { hasPush = true }
            for other in others where other != id && shut(out: other, surroundings.rules, into: &effects) {
                dropBlocked(other, now: now, into: &effects)
            }
        case .pushChanged(let isReachable): hasPush = isReachable
        case .sought(let other, let client, let re): tell(other, client, re, into: &effects)
        }
    }

    /// Whether the device said `presence.appear`; tells it otherwise.
    func isPresent(_ client: ConnectionID, _ re: UInt64, into effects: inout [Effect]) -> Bool {
        if devices[client]?.isPresent ?? false { return true }
        effects.fail(WireError(.notPresent, "Say presence.appear first."), re: re, to: client)
        return false
    }

    // MARK: Appearing

    private mutating func appear(
        _ appearance: Appearance, _ client: ConnectionID, _ re: UInt64, now: Timestamp, _ project: Project,
        into effects: inout [Effect]
    ) {
        var appearance = appearance
        if !isKnown, appearance.name == nil, profile.name.isEmpty, case .chosen(let name)? = devices[client]?.name {
            // Told in the hello, and not objectionable there: a bad one is as good as none.
            appearance.name = PersonName.normalised(name)
        }
        guard become(appearance, client, re, isPresent: true, into: &effects) else { return }
        appeared(client, now: now, into: &effects)
        tellUnseenCalls(to: client, project, into: &effects)
        tellWishes(to: client, into: &effects)
    }

    /// Wants to be there in another way. Answers, and tells the other devices.
    ///
    /// - Returns: whether that is a way to be there.
    @discardableResult private mutating func become(
        _ appearance: Appearance, _ client: ConnectionID, _ re: UInt64, isPresent: Bool = false,
        into effects: inout [Effect]
    ) -> Bool {
        var wanted = profile
        if let name = appearance.name {
            guard let name = PersonName.normalised(name) else {
                effects.fail(PersonName.invalid, re: re, to: client)
                return false
            }
            wanted.name = name
        }
        if let vouchedName { wanted.name = vouchedName }
        wanted.isVisible = appearance.visible ?? profile.isVisible
        wanted.doNotDisturb = appearance.doNotDisturb ?? profile.doNotDisturb
        wanted.ringable = appearance.ringable ?? profile.ringable
        let hasChanged = wanted != profile
        profile = wanted
        if hasChanged || !isKnown { becomeKnown(into: &effects) }
        if isPresent { devices[client]?.isPresent = true }
        effects.send(.presence(.own(ownPresence(re: re))), to: client)
        if hasChanged { tellOtherDevices(than: client, into: &effects) }
        return true
    }

    /// From now on others find this person by its id, wherever it is.
    private mutating func becomeKnown(into effects: inout [Effect]) {
        isKnown = true
        effects.append(.persist(.profile(id, publicID, profile)))
    }

    private mutating func leave(_ client: ConnectionID, _ re: UInt64, into effects: inout [Effect]) {
        if devices[client]?.isWatching ?? false { effects.tell(.directory(.unwatch(client))) }
        devices[client]?.isPresent = false
        devices[client]?.isWatching = false
        effects.send(.ok(Answer(re: re)), to: client)
    }

    // MARK: How it is there

    /// What a program vouches for, if one of the devices came with its token.
    private var vouchedName: String? {
        for client in devices.keys.sorted() {
            if case .vouched(let name)? = devices[client]?.name { return PersonName.vouched(name) }
        }
        return nil
    }

    /// Whether a program knows this person: who that is, is then proved by the program alone.
    var isVouched: Bool { vouchedName != nil }

    /// As others see it.
    var shownName: String { profile.name.isEmpty ? PersonName.pleasant(publicID) : profile.name }

    /// In a call or a chat, or not to be disturbed.
    var isBusy: Bool {
        if case .chatting = activity { return true }
        return calls.isBusy || profile.doNotDisturb
    }

    func ownPresence(re: UInt64?) -> OwnPresence {
        var own = OwnPresence()
        (own.re, own.person, own.name) = (re, publicID, shownName)
        (own.visible, own.doNotDisturb) = (profile.isVisible, profile.doNotDisturb)
        (own.ringable, own.hasPosition) = (profile.ringable, cell != nil)
        return own
    }

    func tellOtherDevices(than client: ConnectionID, into effects: inout [Effect]) {
        for other in devices.keys.sorted() where other != client && devices[other]?.isPresent ?? false {
            effects.send(.presence(.own(ownPresence(re: nil))), to: other)
        }
    }
}
