import Wire

/// A person's name and reachability settings, kept until the person is deleted.
public struct Profile: Hashable, Sendable {
    /// The chosen name; empty if there is none.
    public var name: String
    /// Whether others see this person in lists.
    public var isVisible: Bool
    public var doNotDisturb: Bool
    public var ringable: Ringable

    public init(
        name: String = "", isVisible: Bool = true, doNotDisturb: Bool = false, ringable: Ringable = .everyone
    ) {
        (self.name, self.isVisible, self.doNotDisturb, self.ringable) = (name, isVisible, doNotDisturb, ringable)
    }
}

/// A linked device of a person. The first device is not linked: it uses the person's own identity.
public struct LinkedDevice: Hashable, Sendable {
    public var identity: IdentityID
    public var label: String
    public var linkedAt: Timestamp

    public init(identity: IdentityID, label: String, linkedAt: Timestamp) {
        (self.identity, self.label, self.linkedAt) = (identity, label, linkedAt)
    }
}

/// A person who agreed to keep in touch.
public struct Contact: Hashable, Sendable {
    public var identity: IdentityID
    /// The name as last seen.
    public var name: String

    public init(identity: IdentityID, name: String) { (self.identity, self.name) = (identity, name) }
}

/// A call that is not over, stored so that it survives a restart. Its times are absolute.
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
    /// `nil` while the call rings.
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
    /// Whether the person has seen how the call ended.
    public var isSeen: Bool

    public init(
        call: CallID, other: IdentityID, otherName: String, direction: CallDirection, outcome: CallOutcome, video: Bool,
        at: Timestamp, duration: Duration?, isSeen: Bool
    ) {
        (self.call, self.other, self.otherName, self.direction) = (call, other, otherName, direction)
        (self.outcome, self.video, self.at, self.duration, self.isSeen) = (outcome, video, at, duration, isSeen)
    }
}

/// What storage knows about an identity.
public struct PersonRecord: Equatable, Sendable {
    /// Oldest first.
    public var blocked: [IdentityID]
    public var ban: Ban?
    /// `nil` if this person was never present.
    public var profile: Profile?
    public var devices: [LinkedDevice]
    /// Oldest first.
    public var contacts: [Contact]
    /// Calls whose end this person has not seen, oldest first.
    public var unseenCalls: [CallRecord]
    /// Whether any device can receive push notifications.
    public var hasPush: Bool
    /// Whether the first device was unlinked. Then only the linked devices belong to this person.
    public var isRetired: Bool

    public init(
        blocked: [IdentityID] = [], ban: Ban? = nil, profile: Profile? = nil, devices: [LinkedDevice] = [],
        contacts: [Contact] = [], unseenCalls: [CallRecord] = [], hasPush: Bool = false,
        isRetired: Bool = false
    ) {
        (self.blocked, self.ban, self.profile, self.devices) = (blocked, ban, profile, devices)
        (self.contacts, self.unseenCalls, self.hasPush) = (contacts, unseenCalls, hasPush)
        self.isRetired = isRetired
    }
}

/// A durable change, committed before any later effect of the same event is sent.
public enum Change: Hashable, Sendable {
    case block(owner: IdentityID, blocked: IdentityID, at: Timestamp)
    case unblock(owner: IdentityID, blocked: IdentityID)
    case report(Report)
    // People.
    case profile(IdentityID, PersonID, Profile)
    /// The identity becomes a device of that person, who also takes over its blocks.
    case linked(LinkedDevice, to: IdentityID)
    /// The identity is no longer linked; its secret is a separate person again.
    case unlinked(IdentityID)
    /// The identity's secret is no longer accepted.
    case retired(IdentityID)
    /// Deletes all data of this person and retires its identity and those of its devices.
    case deleted(IdentityID)
    /// Two people became contacts. `names` has their names in the same order.
    case keptInTouch(IdentityID, IdentityID, names: [String], at: Timestamp)
    case lostTouch(IdentityID, IdentityID)
    // Calls.
    case callPlaced(StoredCall)
    case callAccepted(CallID, at: Timestamp)
    case callOver(CallID)
    case callLogged(CallRecord, of: IdentityID)
    case callSeen(CallID, by: IdentityID)
    /// One call, or all of them if nil.
    case callsForgotten(CallID?, by: IdentityID)
}
