import Wire

/// How somebody wants to be known and reached: kept until deleted.
public struct Profile: Hashable, Sendable {
    /// As it was chosen; empty when nothing was.
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

/// A device of a person beside the first, which is the person's own identity.
public struct LinkedDevice: Hashable, Sendable {
    public var identity: IdentityID
    public var label: String
    public var linkedAt: Timestamp

    public init(identity: IdentityID, label: String, linkedAt: Timestamp) {
        (self.identity, self.label, self.linkedAt) = (identity, label, linkedAt)
    }
}

/// Somebody who agreed to be reached again.
public struct Contact: Hashable, Sendable {
    public var identity: IdentityID
    /// As it was when last heard of.
    public var name: String

    public init(identity: IdentityID, name: String) { (self.identity, self.name) = (identity, name) }
}

/// A call that is not over, as it is kept for a restart. Its times are absolute.
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
    /// `nil` while it rings.
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

/// One call in the log of one of the two.
public struct CallRecord: Hashable, Sendable {
    public var call: CallID
    public var other: IdentityID
    public var otherName: String
    public var direction: CallDirection
    public var outcome: CallOutcome
    public var video: Bool
    public var at: Timestamp
    public var duration: Duration?
    /// Whether its person knows how it ended.
    public var isSeen: Bool

    public init(
        call: CallID, other: IdentityID, otherName: String, direction: CallDirection, outcome: CallOutcome, video: Bool,
        at: Timestamp, duration: Duration?, isSeen: Bool
    ) {
        (self.call, self.other, self.otherName, self.direction) = (call, other, otherName, direction)
        (self.outcome, self.video, self.at, self.duration, self.isSeen) = (outcome, video, at, duration, isSeen)
    }
}

/// What storage knows about one identity when it comes back.
public struct PersonRecord: Equatable, Sendable {
    /// Oldest first.
    public var blocked: [IdentityID]
    public var ban: Ban?
    /// `nil` when this person was never present.
    public var profile: Profile?
    public var devices: [LinkedDevice]
    /// Oldest first.
    public var contacts: [Contact]
    /// Calls whose end this person was not told of, oldest first.
    public var unseenCalls: [CallRecord]
    /// Whether some device can be woken.
    public var hasPush: Bool
    /// Whether the first device was unlinked: only the linked ones are this person's then.
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
    /// From now on this identity's secret is a device of that person; its blocks become that person's too.
    case linked(LinkedDevice, to: IdentityID)
    /// It is its own person again.
    case unlinked(IdentityID)
    /// Its secret proves nobody any more.
    case retired(IdentityID)
    /// Everything held of this person; its identity and those of its devices are retired.
    case deleted(IdentityID)
    /// Two agreed to keep in touch; `names` are theirs, in order.
    case keptInTouch(IdentityID, IdentityID, names: [String], at: Timestamp)
    case lostTouch(IdentityID, IdentityID)
    // Calls.
    case callPlaced(StoredCall)
    case callAccepted(CallID, at: Timestamp)
    case callOver(CallID)
    case callLogged(CallRecord, of: IdentityID)
    case callSeen(CallID, by: IdentityID)
    /// One, or all of them.
    case callsForgotten(CallID?, by: IdentityID)
}
