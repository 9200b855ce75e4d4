import Wire

/// A requested call that has no id yet.
public struct CallAttempt: Equatable, Sendable {
    public var caller: Counterpart
    /// The caller's device, and the request to answer.
    public var client: ConnectionID
    public var re: UInt64
    public var callee: IdentityID
    public var video: Bool
}

/// One of two people, as shown to the other.
public struct Counterpart: Equatable, Sendable {
    public var identity: IdentityID
    public var person: PersonID
    public var name: String
    public var isOnline: Bool

    var info: PersonInfo { PersonInfo(id: person, name: name, online: isOnline) }
}

public enum CallEvent: Equatable, Sendable {
    case begin(CallAttempt)
    /// Restores a call that was active when the server stopped.
    case restore(StoredCall)
    // From the callee.
    /// The callee's decision whether the call may ring.
    case answered(CallAnswer)
    /// The number of devices that now ring.
    case rings(devices: Int)
    /// No device is left that rings or can receive a push notification.
    case outOfReach
    /// The callee accepts, with or without video.
    case accept(IdentityID, video: Bool)
    // From either person.
    case leave(IdentityID, CallLeaving)
    /// The person's device dropped, or reconnected.
    case away(IdentityID, Bool)
    /// The person turned video on or off.
    case video(IdentityID, Bool)
    /// The person returned after a restart or on another device, and needs a new token.
    case rejoin(IdentityID)
    // From the session.
    case joined(IdentityID)
    // From the call that continues, after the two called each other.
    case merge(into: CallID)
}

/// The callee's answer to an incoming call.
public enum CallAnswer: Equatable, Sendable {
    /// The call may ring; a place is reserved for it.
    case ready(Counterpart)
    /// The callee is already calling the caller with its own call `with`. If that call is the one to end, a place is reserved
    /// for this one.
    case mutual(Counterpart, with: CallID)
    /// Busy or unreachable. `isMissed` tells whether to log a missed call for the callee.
    case refused(Counterpart, CallOutcome, isMissed: Bool)
    /// The callee does not allow calls from this person.
    case notAllowed
}

/// How a person leaves a call.
public enum CallLeaving: Equatable, Sendable {
    /// Hung up, canceled, declined, or closed the page.
    case hungUp
    /// The device did not come back.
    case lost
    /// Hung up because the person was deleted. The call drops the person's name, so the other person's log has none.
    case deleted
}

/// What a call, or one of the person's own devices in it, tells the person's machine.
public enum PersonCallEvent: Equatable, Sendable {
    /// This person was in this call when the server stopped.
    case restored(StoredCall)
    /// Requests permission to ring. Answered with `CallEvent.answered`.
    case asked(CallOffer)
    /// The call is stored and may ring.
    case ring(CallID)
    /// The requested call was stored, or could not be placed.
    case placed(CallOffer, ConnectionID, re: UInt64)
    case notPlaced(ConnectionID, re: UInt64, WireError)
    case ringing(CallID, devices: Int)
    case accepted(CallAgreement)
    /// The other person turned video on or off.
    case changed(CallID, video: Bool)
    case partnerAway(CallID, Bool)
    case over(CallEnd)
}

/// A call as one of the two people sees it before it is accepted.
public struct CallOffer: Equatable, Sendable {
    public var call: CallID
    public var other: Counterpart
    public var video: Bool
    public var placedAt: Timestamp
    public var ringsUntil: Timestamp
}

/// What one person needs to join an accepted call.
public struct CallAgreement: Equatable, Sendable {
    public var call: CallID
    /// Whether the other person currently sends video.
    public var withVideo: Bool
    public var since: Timestamp
    public var admission: Admission
    public var mediaMode: MediaMode
}

/// How a call ended for one person.
public struct CallEnd: Equatable, Sendable {
    public var record: CallRecord
    /// If two people called each other at the same time: the call that continues. Only that one is logged.
    public var into: CallID?
}

extension LoggedCall {
    /// Converts log records to messages.
    static func list(_ records: [CallRecord], _ project: Project) -> [LoggedCall] {
        records.map { LoggedCall($0, project) }
    }

    /// Converts a log record for its owner.
    init(_ record: CallRecord, _ project: Project) {
        self.init()
        call = record.call
        direction = record.direction
        outcome = record.outcome
        person = PersonInfo(id: project.personID(of: record.other), name: record.otherName, online: false)
        video = record.video
        at = record.at
        duration = record.duration
        seen = record.isSeen
    }
}

extension CallNotice.Ended {
    /// - Parameter outcome: overrides the record's outcome for one device.
    init(_ record: CallRecord, as outcome: CallOutcome? = nil, into: CallID? = nil, _ other: PersonID) {
        self.init()
        call = record.call
        reason = outcome ?? record.outcome
        direction = record.direction
        person = PersonInfo(id: other, name: record.otherName, online: false)
        video = record.video
        at = record.at
        duration = record.duration
        self.into = reason == .merged ? into : nil
    }
}
