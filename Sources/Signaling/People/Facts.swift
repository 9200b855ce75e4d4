import Wire

/// A read-only view of a person that its parts share. Each part changes only itself.
///
/// `Person` makes new facts for each step of an event, so that a step sees the changes of earlier steps. Facts share storage
/// with the parts, so a part that changes meanwhile is copied.
struct Facts: Sendable {
    let id: IdentityID
    let persona: Persona
    let devices: DeviceList
    let blocks: BlockList
    let ban: Ban?
    /// Whether the person is in a call or placing one.
    let isCalling: Bool
    /// The name used in the roulette, while searching or chatting there.
    let searchName: String?

    /// Returns the error for a banned person, or nil.
    func banError(_ now: Timestamp) -> WireError? {
        guard let ban, ban.isActive(at: now) else { return nil }
        return .banned(ban, now: now)
    }

    /// Whether the person is online and visible to others.
    var isSeenOnline: Bool { persona.isSeenOnline(with: devices) }

    /// This person as shown to others.
    var counterpart: Counterpart {
        Counterpart(identity: id, person: persona.id, name: persona.shownName, isOnline: isSeenOnline)
    }

    /// This person as shown to roulette partners. Uses the roulette name if the person was never present and has no other name.
    var acquaintance: Counterpart {
        var own = counterpart
        guard !persona.isKnown, persona.profile.name.isEmpty, let name = searchName.flatMap(PersonName.normalized)
        else {
            return own
        }
        if !name.isEmpty { own.name = name }
        return own
    }

    /// Returns the presence state for the person's own devices.
    func ownPresence(re: UInt64?, hasPosition: Bool) -> PresenceNotice.Own {
        var own = PresenceNotice.Own()
        (own.re, own.person, own.name) = (re, persona.id, persona.shownName)
        (own.visible, own.doNotDisturb) = (persona.profile.isVisible, persona.profile.doNotDisturb)
        (own.ringable, own.hasPosition) = (persona.profile.ringable, hasPosition)
        return own
    }

    /// Looks up the person with this public id. The request continues when the lookup has finished.
    func introduce(_ person: PersonID, for message: ClientMessage, _ request: Request, _ turn: inout Turn) {
        let introduction = Introduction(identity: id, client: request.client, re: request.re, message)
        turn.tell(.lookup(person, .asked(introduction)))
    }
}
