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
    /// The most recent name that this person has seen of the contact.
    public var name: String

    public init(identity: IdentityID, name: String) { (self.identity, self.name) = (identity, name) }
}

/// A call in progress, stored so that it survives a server restart. All its times are absolute.
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

    /// Returns the call with `ringsUntil` and `acceptedAt` converted to the clock of the timers. Stored times are
    /// those of the wall clock, which may be wrong when the server starts. The results are limited: the call never
    /// rings longer than a new call, and its `acceptedAt` is never in the future.
    func restored(at moment: Moment, rules: Rules) -> StoredCall {
        var call = self
        call.ringsUntil = min(moment.time(atWall: ringsUntil), moment.now + rules.ringTimeout)
        call.acceptedAt = acceptedAt.map { min(moment.time(atWall: $0), moment.now) }
        return call
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
    /// The profile; `nil` if this person was never online.
    public var profile: Profile?
    /// When the profile was last stored; `nil` without a profile.
    public var profileUsedAt: Timestamp?
    public var devices: [LinkedDevice]
    /// The contacts, oldest first.
    public var contacts: [Contact]
    /// Calls that ended without this person having seen it, oldest first.
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

/// A durable change, committed before any later effect of the same event is sent.
public enum Change: Hashable, Sendable {
    case block(owner: IdentityID, blocked: IdentityID, at: Timestamp)
    case unblock(owner: IdentityID, blocked: IdentityID)
    case report(Report)
    // People.
    /// The profile of a person who was online at this time.
    case profile(IdentityID, PersonID, Profile, at: Timestamp)
    /// The device's identity becomes a device of the person `to`, who also receives the device's blocks.
    case linked(LinkedDevice, to: IdentityID)
    /// The identity is no longer linked to a person. Its secret belongs to a separate person again.
    case unlinked(IdentityID)
    /// The identity's secret is no longer accepted.
    case retired(IdentityID)
    /// Deletes all data of this person, and retires the identities of the person and of all linked devices. `contacts` are the
    /// people who lose this person as a contact.
    case deleted(IdentityID, contacts: [IdentityID] = [])
    /// Two people became contacts. `names` contains the names of the two in the same order.
    case keptInTouch(IdentityID, IdentityID, names: [String], at: Timestamp)
    case lostTouch(IdentityID, IdentityID)
    // Sessions.
    /// A moderator removed a member from a session: the token no longer admits anyone.
    case revoked(Revocation)
    /// Whether all members of the session are muted. The moderator is nil if the mute ends because the session ended.
    case muted(SessionID, Bool, by: IdentityID?, at: Timestamp)
    // Rooms.
    /// A persistent room was created, changed or used again.
    case roomStored(StoredRoom)
    /// The room ended, or is no longer persistent.
    case roomForgotten(RoomID)
    // Calls.
    case callPlaced(StoredCall)
    case callAccepted(CallID, at: Timestamp, people: [IdentityID])
    case callOver(CallID, people: [IdentityID])
    case callLogged(CallRecord, of: IdentityID)
    case callSeen(CallID, by: IdentityID)
    /// The person deleted this call from their call log, or all calls if nil.
    case callsForgotten(CallID?, by: IdentityID)
}
