import Wire

/// How others know a person: its public id, its profile, and whether storage has that.
struct Persona: Equatable, Sendable {
    let id: PersonID
    private(set) var profile: Profile
    /// Whether storage has the profile, so that others find this person by its id.
    private(set) var isKnown: Bool

    init(_ id: PersonID, _ profile: Profile?) {
        (self.id, self.profile, isKnown) = (id, profile ?? Profile(), profile != nil)
    }

    /// As others see it.
    var shownName: String { profile.name.isEmpty ? PersonName.pleasant(id) : profile.name }

    /// Whether others may know that a device of this person is connected.
    func isSeenOnline(with devices: DeviceList) -> Bool { profile.isVisible && devices.isThere }

    /// The profile with these wishes. A name that a program vouches for goes first.
    func profile(_ wishes: Appearance, vouchedName: String?) throws(WireError) -> Profile {
        var wanted = profile
        if let name = wishes.name {
            guard let name = PersonName.normalised(name) else { throw PersonName.invalid }
            wanted.name = name
        }
        if let vouchedName { wanted.name = vouchedName }
        wanted.isVisible = wishes.visible ?? profile.isVisible
        wanted.doNotDisturb = wishes.doNotDisturb ?? profile.doNotDisturb
        wanted.ringable = wishes.ringable ?? profile.ringable
        return wanted
    }

    /// - Returns: whether anything has changed.
    mutating func become(_ wanted: Profile, of identity: IdentityID, _ turn: inout Turn) -> Bool {
        let hasChanged = wanted != profile
        profile = wanted
        if hasChanged || !isKnown {
            // From now on others find this person by its id, wherever it is.
            isKnown = true
            turn.persist(.profile(identity, id, profile))
        }
        return hasChanged
    }

    /// Somebody from the roulette can be found from now on, by everyone who has its id.
    mutating func becomeKnown(as name: String, of identity: IdentityID, _ turn: inout Turn) {
        guard !isKnown else { return }
        profile.name = name
        isKnown = true
        turn.persist(.profile(identity, id, profile))
    }

    mutating func forget() { (profile, isKnown) = (Profile(), false) }
}
