import Wire

/// A person's name and reachability settings, kept until the person is deleted.
public struct Profile: Hashable, Sendable {
    /// The chosen name; empty if there is none.
    public var name: String
    /// Whether other people see this person in lists and as online.
    public var isVisible: Bool
    public var doNotDisturb: Bool
    public var ringable: Ringable

    public init(
        name: String = "", isVisible: Bool = true, doNotDisturb: Bool = false, ringable: Ringable = .everyone
    ) {
        (self.name, self.isVisible, self.doNotDisturb, self.ringable) = (name, isVisible, doNotDisturb, ringable)
    }
}

/// A linked device of a person. The person's first device does not count as linked, because it uses the person's own identity.
public struct LinkedDevice: Hashable, Sendable {
    public var identity: IdentityID
    public var label: String
    public var linkedAt: Timestamp

    public init(identity: IdentityID, label: String, linkedAt: Timestamp) {
        (self.identity, self.label, self.linkedAt) = (identity, label, linkedAt)
    }
}

/// A contact: another person with whom this person agreed to keep in touch.
public struct Contact: Hashable, Sendable {
    public var identity: IdentityID
    /// The contact's name as this person last saw it.
    public var name: String

    public init(identity: IdentityID, name: String) { (self.identity, self.name) = (identity, name) }
}

/// A call in progress, stored so that it survives a server restart. Its times are times of the wall clock, except in
/// the result of `Context.restored(_:)`.
public struct StoredCall: Hashable, Sendable {
    public var id: CallID
    public var session: SessionID
    public var caller: IdentityID
    public var callee: IdentityID
    public var callerName: String
    public var calleeName: String
    public var video: Bool
    public var placedAt: Timestamp
    public var ringsUntil: Timestamp
    /// When the callee accepted; `nil` while the call is ringing.
    public var acceptedAt: Timestamp?

    public init(
        id: CallID, session: SessionID, caller: IdentityID, callee: IdentityID, callerName: String, calleeName: String,
        video: Bool, placedAt: Timestamp, ringsUntil: Timestamp, acceptedAt: Timestamp? = nil
    ) {
        (self.id, self.session, self.caller, self.callee) = (id, session, caller, callee)
        (self.callerName, self.calleeName, self.video) = (callerName, calleeName, video)
        (self.placedAt, self.ringsUntil, self.acceptedAt) = (placedAt, ringsUntil, acceptedAt)
    }
}

/// A call in one person's call log.
public struct CallRecord: Hashable, Sendable {
    public var call: CallID
    public var other: IdentityID
    public var otherName: String
    public var direction: CallDirection
    public var outcome: CallOutcome
    public var video: Bool
    public var at: Timestamp
    public var duration: Duration?
    /// Whether a device has shown this person how the call ended.
    public var isSeen: Bool

    public init(
        call: CallID, other: IdentityID, otherName: String, direction: CallDirection, outcome: CallOutcome, video: Bool,
        at: Timestamp, duration: Duration?, isSeen: Bool
    ) {
        (self.call, self.other, self.otherName, self.direction) = (call, other, otherName, direction)
        (self.outcome, self.video, self.at, self.duration, self.isSeen) = (outcome, video, at, duration, isSeen)
    }
}

/// Everything that is stored about an identity.
public struct PersonRecord: Equatable, Sendable {
    /// The people that this person has blocked, oldest block first.
    public var blocked: [IdentityID]
    public var ban: Ban?
    /// The profile; `nil` if none is stored, as for a person who has only searched in the roulette.
    public var profile: Profile?
    /// The last-used time that is stored with the profile; `nil` without a profile.
    public var profileUsedAt: Timestamp?
    public var devices: [LinkedDevice]
    /// The contacts, oldest first.
    public var contacts: [Contact]
    /// Ended calls whose end no device has shown to this person yet, oldest first.
    public var unseenCalls: [CallRecord]
    /// Whether any device can receive push notifications.
    public var hasPush: Bool
    /// Whether the person's first device was unlinked. If so, only the linked devices belong to this person.
    public var isRetired: Bool

    public init(
        blocked: [IdentityID] = [], ban: Ban? = nil, profile: Profile? = nil, profileUsedAt: Timestamp? = nil,
        devices: [LinkedDevice] = [], contacts: [Contact] = [], unseenCalls: [CallRecord] = [], hasPush: Bool = false,
        isRetired: Bool = false
    ) {
        (self.blocked, self.ban, self.profile, self.devices) = (blocked, ban, profile, devices)
        self.profileUsedAt = profileUsedAt
        (self.contacts, self.unseenCalls, self.hasPush) = (contacts, unseenCalls, hasPush)
        self.isRetired = isRetired
    }
}
