import Wire

/// What the parts of a person may know of each other. They read it and change only themselves.
///
/// Person makes new facts for each step of an event, so that a step sees what the steps before it changed. It shares storage
/// with the parts; a part that changes meanwhile is copied.
struct Facts: Sendable {
    let id: IdentityID
    let persona: Persona
    let devices: DeviceList
    let blocks: BlockList
    let ban: Ban?
    /// In a call, or placing one.
    let isCalling: Bool
    /// Searching or chatting in the roulette, under this name.
    let searchName: String?

    /// What the person is told if it is banned.
    func banError(_ now: Timestamp) -> WireError? {
        guard let ban, ban.isActive(at: now) else { return nil }
        return .banned(ban, now: now)
    }

    /// Whether others may know that a device of this person is connected.
    var isSeenOnline: Bool { persona.isSeenOnline(with: devices) }

    /// The person as others know it.
    var counterpart: Counterpart {
        Counterpart(identity: id, person: persona.id, name: persona.shownName, isOnline: isSeenOnline)
    }

    /// The person as a partner of the roulette knows it, if it never appeared anywhere else.
    var acquaintance: Counterpart {
        var own = counterpart
        guard !persona.isKnown, persona.profile.name.isEmpty, let name = searchName.flatMap(PersonName.normalised)
        else {
            return own
        }
        if !name.isEmpty { own.name = name }
        return own
    }

    /// What the person's own devices are told of it.
    func ownPresence(re: UInt64?, hasPosition: Bool) -> PresenceNotice.Own {
        var own = PresenceNotice.Own()
        (own.re, own.person, own.name) = (re, persona.id, persona.shownName)
        (own.visible, own.doNotDisturb) = (persona.profile.isVisible, persona.profile.doNotDisturb)
        (own.ringable, own.hasPosition) = (persona.profile.ringable, hasPosition)
        return own
    }

    /// Asks who is known by this id. The request goes on when the answer is here.
    func introduce(_ person: PersonID, for message: ClientMessage, _ request: Request, _ turn: inout Turn) {
        let introduction = Introduction(identity: id, client: request.client, re: request.re, message)
        turn.tell(.lookup(person, .asked(introduction)))
    }
}
