import Wire

/// A call that somebody asks for, before it has an id.
public struct CallAttempt: Equatable, Sendable {
    public var caller: Counterpart
    /// The device that asks, and the request to answer.
    public var client: ConnectionID
    public var re: UInt64
    public var callee: IdentityID
    public var video: Bool
}

/// One of two people, as the other knows them.
public struct Counterpart: Equatable, Sendable {
    public var identity: IdentityID
    public var person: PersonID
    public var name: String
    public var isOnline: Bool

    var info: PersonInfo { PersonInfo(id: person, name: name, online: isOnline) }
}

public enum CallEvent: Equatable, Sendable {
    case begin(CallAttempt)
    /// It was going on when the server stopped.
    case restore(StoredCall)
    // From the callee.
    /// Asked whether it may ring.
    case answered(CallAnswer)
    /// It rings on so many devices now.
    case rings(devices: Int)
    /// It has no device left that rings or could be woken.
    case outOfReach
    /// It takes the call, with its picture or without.
    case accept(IdentityID, video: Bool)
    // From either.
    case leave(IdentityID, CallLeaving)
    /// Its device's line dropped, or is back.
    case away(IdentityID, Bool)
    /// It turned to a picture, or to sound only.
    case video(IdentityID, Bool)
    /// It is back after a restart, or on another device, and needs to be let in anew.
    case rejoin(IdentityID)
    // From the session.
    case joined(IdentityID)
    // From the call that goes on: the two called each other.
    case merge(into: CallID)
}

/// What the callee says when asked whether it may ring.
public enum CallAnswer: Equatable, Sendable {
    /// It may: a place is kept for it.
    case ready(Counterpart)
    /// This person is calling the caller, by a call of its own. When that one is to be given up, a place is kept for this.
    case mutual(Counterpart, with: CallID)
    /// Busy or unreachable. Whether the callee wants to know that it missed it.
    case refused(Counterpart, CallOutcome, isMissed: Bool)
    /// The callee does not wish to be rung by this person.
    case notAllowed
}

/// How one of the two goes out of a call.
public enum CallLeaving: Equatable, Sendable {
    /// Hung up, cancelled or declined: by a word, or by closing the page.
    case willingly
    /// Its device did not come back.
    case lost
    /// Hung up by being deleted: from now on the call knows no name of it, and so the other's log does not either.
    case deleted
}

/// What reaches a person about calls.
public enum PersonCallEvent: Equatable, Sendable {
    /// It had this call when the server stopped.
    case restored(StoredCall)
    /// May this call ring? Answered by `CallEvent.answered`.
    case asked(CallOffer)
    /// The call that it was asked for is stored, and rings.
    case ring(CallID)
    /// The call that it asked for is stored; or will not be.
    case placed(CallOffer, ConnectionID, re: UInt64)
    case notPlaced(ConnectionID, re: UInt64, WireError)
    case ringing(CallID, devices: Int)
    case accepted(CallAgreement)
    /// The other turned to a picture, or to sound only.
    case changed(CallID, video: Bool)
    case partnerAway(CallID, Bool)
    case over(CallEnd)
}

/// A call as one of the two sees it, before it is accepted.
public struct CallOffer: Equatable, Sendable {
    public var call: CallID
    public var other: Counterpart
    public var video: Bool
    public var placedAt: Timestamp
    public var ringsUntil: Timestamp
}

/// What lets one of the two into an accepted call.
public struct CallAgreement: Equatable, Sendable {
    public var call: CallID
    /// Whether the other has a picture now.
    public var withVideo: Bool
    public var since: Timestamp
    public var admission: Admission
    public var mediaMode: MediaMode
}

/// How a call ended for one of the two.
public struct CallEnd: Equatable, Sendable {
    public var record: CallRecord
    /// Of those that two people placed to each other at the same moment one went on, and only that one is in the log.
    public var into: CallID?
}

extension LoggedCall {
    /// Rows of the log as messages.
    static func list(_ records: [CallRecord], _ project: Project) -> [LoggedCall] {
        records.map { LoggedCall($0, project) }
    }

    /// A call of the log, as its owner is told it.
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
    /// - Parameter outcome: as one of its devices sees it, if that is otherwise.
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
