import Wire

/// A person's public side: its public id, its profile, and whether the profile is stored.
struct Persona: Equatable, Sendable {
    let id: PersonID
    private(set) var profile: Profile
    /// Whether the profile is stored, so that others can find this person by its id.
    private(set) var isKnown: Bool

    init(_ id: PersonID, _ profile: Profile?) {
        (self.id, self.profile, isKnown) = (id, profile ?? Profile(), profile != nil)
    }

    /// The name as shown to others.
    var shownName: String { profile.name.isEmpty ? PersonName.generated(id) : profile.name }

    /// Whether the person is online and visible to others.
    func isSeenOnline(with devices: DeviceList) -> Bool { profile.isVisible && devices.isThere }

    /// Returns the profile with these settings applied. A name from a user token takes precedence.
    func profile(_ settings: Appearance, vouchedName: String?) throws(WireError) -> Profile {
        var wanted = profile
        if let name = settings.name {
            guard let name = PersonName.normalized(name) else { throw PersonName.invalid }
            wanted.name = name
        }
        if let vouchedName { wanted.name = vouchedName }
        wanted.isVisible = settings.visible ?? profile.isVisible
        wanted.doNotDisturb = settings.doNotDisturb ?? profile.doNotDisturb
        wanted.ringable = settings.ringable ?? profile.ringable
        return wanted
    }

    /// - Returns: true if the profile changed.
    mutating func become(_ wanted: Profile, of identity: IdentityID, _ turn: inout Turn) -> Bool {
        let hasChanged = wanted != profile
        profile = wanted
        if hasChanged || !isKnown {
            // From now on others can find this person by its id.
            isKnown = true
            turn.persist(.profile(identity, id, profile))
        }
        return hasChanged
    }

    /// Stores a profile for a person who was only in the roulette. From now on anyone with its id can find it.
    mutating func becomeKnown(as name: String, of identity: IdentityID, _ turn: inout Turn) {
        guard !isKnown else { return }
        profile.name = name
        isKnown = true
        turn.persist(.profile(identity, id, profile))
    }

    mutating func forget() { (profile, isKnown) = (Profile(), false) }
}
