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
    mutating func perform(_ verb: PresenceVerb, _ request: Request, _ turn: inout Turn) {
        switch verb {
        case .appear(let appearance):
            appear(appearance, request, &turn)
        case .set(let appearance):
            guard isPresent(request, &turn) else { return }
            become(appearance, request, &turn)
        case .leave: leave(request, &turn)
        case .find(let verb): introduce(verb.person, for: .presence(.find(verb)), request, &turn)
        case .block(let verb): introduce(verb.person, for: .presence(.block(verb)), request, &turn)
        case .unblock(let verb): unblock(verb.person, request, &turn)
        case .blocked: listBlocked(request, &turn)
        case .link: link(request, &turn)
        case .useLink(let verb): useLink(verb, request, &turn)
        case .devices: listDevices(request, &turn)
        case .unlink(let verb): unlink(verb.device, request, &turn)
        case .delete: delete(request, &turn)
        }
    }

    mutating func handle(_ event: PersonPresenceEvent, _ turn: inout Turn) {
        switch event {
        case .linked(let device, let client, let re):
            linked(device, Request(client, re), &turn)
        case .becameDevice(let person): becameDevice(of: person, &turn)
        case .inherited(let others, let deviceHasPush):
            if deviceHasPush { hasPush = true }
            for other in others where other != id && shut(out: other, &turn) {
                dropBlocked(other, &turn)
            }
        case .pushChanged(let isReachable): hasPush = isReachable
        case .sought(let other, let client, let re): tell(other, Request(client, re), &turn)
        }
    }

    /// Whether the device said `presence.appear`; tells it otherwise.
    func isPresent(_ request: Request, _ turn: inout Turn) -> Bool {
        if devices[request.client]?.isPresent ?? false { return true }
        turn.fail(WireError(.notPresent, "Say presence.appear first."), request)
        return false
    }

    // MARK: Appearing

    private mutating func appear(_ appearance: Appearance, _ request: Request, _ turn: inout Turn) {
        var appearance = appearance
        if !isKnown, appearance.name == nil, profile.name.isEmpty,
            case .chosen(let name)? = devices[request.client]?.name
        {
            // Told in the hello, and not objectionable there: a bad one is as good as none.
            appearance.name = PersonName.normalised(name)
        }
        guard become(appearance, request, isPresent: true, &turn) else { return }
        appeared(request.client, &turn)
        tellUnseenCalls(to: request.client, &turn)
        tellWishes(to: request.client, &turn)
    }

    /// Wants to be there in another way. Answers, and tells the other devices.
    ///
    /// - Returns: whether that is a way to be there.
    @discardableResult private mutating func become(
        _ appearance: Appearance, _ request: Request, isPresent: Bool = false, _ turn: inout Turn
    ) -> Bool {
        var wanted = profile
        if let name = appearance.name {
            guard let name = PersonName.normalised(name) else {
                turn.fail(PersonName.invalid, request)
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
        if hasChanged || !isKnown { becomeKnown(&turn) }
        if isPresent { devices[request.client]?.isPresent = true }
        turn.send(.presence(.own(ownPresence(re: request.re))), to: request.client)
        if hasChanged { tellOtherDevices(than: request.client, &turn) }
        return true
    }

    /// From now on others find this person by its id, wherever it is.
    private mutating func becomeKnown(_ turn: inout Turn) {
        isKnown = true
        turn.persist(.profile(id, publicID, profile))
    }

    private mutating func leave(_ request: Request, _ turn: inout Turn) {
        if devices[request.client]?.isWatching ?? false { turn.tell(.directory(.unwatch(request.client))) }
        devices[request.client]?.isPresent = false
        devices[request.client]?.isWatching = false
        turn.ok(request)
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

    func tellOtherDevices(than client: ConnectionID, _ turn: inout Turn) {
        for other in devices.keys.sorted() where other != client && devices[other]?.isPresent ?? false {
            turn.send(.presence(.own(ownPresence(re: nil))), to: other)
        }
    }
}
