import Wire

/// What other people can know about a person: the public id and the profile.
struct PersonProfile: Equatable, Sendable {
    let id: PersonID
    private(set) var profile: Profile
    /// Whether the profile is stored. Only then can other people find this person by public id.
    private(set) var isKnown: Bool
    /// The last-used time that is stored with the profile; nil if the profile has never been stored, or if the time is
    /// unknown. Profiles that have not been used for a long time are deleted.
    private var usedAt: Timestamp?
    /// The minimum time between two updates of the stored last-used time (`usedAt`) of an unchanged profile.
    static let useInterval: Duration = .seconds(86400)

    init(_ id: PersonID, _ profile: Profile?, usedAt: Timestamp?) {
        (self.id, self.profile, isKnown, self.usedAt) = (id, profile ?? Profile(), profile != nil, usedAt)
    }

    /// The name that other people see: the profile's name, or a generated one if that is empty.
    var shownName: String { profile.name.isEmpty ? PersonName.generated(id) : profile.name }

    /// Returns whether other people see the person as online. `isThere` is true if a connected device is online.
    func isSeenOnline(isThere: Bool) -> Bool { profile.isVisible && isThere }

    /// Returns the profile with these settings applied. A name from a user token takes precedence over the name in the
    /// settings. Throws if the name in the settings is invalid.
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

    /// Returns an error if this profile must be stored but currently cannot be; otherwise nil.
    func refusal(of wanted: Profile, _ context: Context) -> WireError? {
        wanted != profile || !isKnown ? context.permit.refusal(of: .optional) : nil
    }

    /// Adopts this profile. Stores it if it changed or was not stored yet. Unless the permit is restricted, also
    /// stores it if it was last stored at least `useInterval` ago.
    ///
    /// - Returns: true if the profile changed.
    mutating func become(_ wanted: Profile, of identity: IdentityID, _ context: inout Context) -> Bool {
        let hasChanged = wanted != profile
        profile = wanted
        if hasChanged || !isKnown || (isUseUnrecorded(context.wallNow) && context.permit == .all) {
            store(identity, &context)
        }
        return hasChanged
    }

    private func isUseUnrecorded(_ now: Timestamp) -> Bool { usedAt.map { now - $0 >= Self.useInterval } ?? false }

    private mutating func store(_ identity: IdentityID, _ context: inout Context) {
        // Other people can now find this person by public id.
        isKnown = true
        // Never set an earlier time: a clock that is temporarily behind must not make the profile look unused.
        let now = max(usedAt ?? context.wallNow, context.wallNow)
        usedAt = now
        context.persist(.profile(identity, id, profile, at: now))
    }

    /// Stores a profile with this name if the person has none because they have only used the roulette so far. Anyone
    /// who knows the public ID can then find this person.
    mutating func becomeKnown(as name: String, of identity: IdentityID, _ context: inout Context) {
        guard !isKnown else { return }
        profile.name = name
        store(identity, &context)
    }

    mutating func forget() { (profile, isKnown, usedAt) = (Profile(), false, nil) }
}
