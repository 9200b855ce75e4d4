import Wire

/// A read-only view of a person, through which each part of the person (such as its calls or its contact book) reads
/// the other parts. A part can change only itself.
///
/// `Person` creates a new snapshot for each step of handling an event, so that a step sees the changes made by earlier
/// steps. A snapshot shares its storage with the parts (copy-on-write), so a part that changes while a snapshot exists
/// is copied.
struct PersonSnapshot: Sendable {
    let id: IdentityID
    let persona: PersonProfile
    let devices: DeviceList
    let blocks: BlockList
    let ban: Ban?
    /// Whether the person is in a call or placing one.
    let isCalling: Bool
    /// The person's name in the roulette while searching or chatting; nil otherwise.
    let searchName: String?

    /// Returns an error if the person is banned, otherwise nil.
    func banError(_ now: Timestamp) -> WireError? {
        guard let ban, ban.isActive(at: now) else { return nil }
        return .banned(ban, now: now)
    }

    /// Whether the person is online and visible to others.
    var isSeenOnline: Bool { persona.isSeenOnline(isThere: devices.isThere) }

    /// This person as other people see them.
    var counterpart: Counterpart {
        Counterpart(identity: id, person: persona.id, name: persona.shownName, isOnline: isSeenOnline)
    }

    /// This person as roulette partners see them. Contains the name from the roulette if the person has no stored
    /// profile and no other name.
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

    /// Starts a lookup of the person with this public id. The request is handled when the lookup has finished.
    func introduce(_ person: PersonID, for message: ClientMessage, _ request: Request, _ context: inout Context) {
        let introduction = Introduction(identity: id, client: request.client, re: request.re, message)
        context.tell(.lookup(person, .asked(introduction)))
    }
}
