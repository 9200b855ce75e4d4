import Wire

/// What other people can know about a person: the public id and the profile.
struct Persona: Equatable, Sendable {
    let id: PersonID
    private(set) var profile: Profile
    /// Whether the profile is stored. Only then can other people find this person by public id.
    private(set) var isKnown: Bool

    init(_ id: PersonID, _ profile: Profile?) {
        (self.id, self.profile, isKnown) = (id, profile ?? Profile(), profile != nil)
    }

    /// The name that other people see.
    var shownName: String { profile.name.isEmpty ? PersonName.generated(id) : profile.name }

    /// Whether the person is online and visible to others.
    func isSeenOnline(with devices: DeviceList) -> Bool { profile.isVisible && devices.isThere }

    /// Returns the profile with these settings applied. A name from a user token takes precedence over the name in the
    /// settings.
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
            // From now on, other people can find this person by public id.
            isKnown = true
            turn.persist(.profile(identity, id, profile))
        }
        return hasChanged
    }

    /// Stores a profile for a person who has so far only used the roulette. From now on, anyone who knows the public id can
    /// find this person.
    mutating func becomeKnown(as name: String, of identity: IdentityID, _ turn: inout Turn) {
        guard !isKnown else { return }
        profile.name = name
        isKnown = true
        turn.persist(.profile(identity, id, profile))
    }

    mutating func forget() { (profile, isKnown) = (Profile(), false) }
}
