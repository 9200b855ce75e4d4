import Cluster
import Wire

/// A request to place a call, before the call has an id.
public struct CallAttempt: Equatable, Sendable {
    public var caller: Counterpart
    /// The caller's device.
    public var client: ConnectionID
    public var re: UInt64
    public var callee: IdentityID
    /// The callee's name, if the callee's machine cannot be asked, because it is on another node of the cluster.
    public var calleeName: String
    /// The callee's node, if it is another node on which the call can ring; nil if the callee is on this node or cannot be reached.
    public var calleeNode: NodeTag?
    public var video: Bool
}

/// One of two people, as the other person sees them.
public struct Counterpart: Equatable, Sendable {
    public var identity: IdentityID
    public var person: PersonID
    public var name: String
    public var isOnline: Bool

    var info: PersonInfo { PersonInfo(id: person, name: name, online: isOnline) }
}

/// Events for a call's state machine.
public enum CallEvent: Equatable, Sendable {
    case begin(CallAttempt)
    /// Restores a call that was in progress when the server stopped.
    case restore(StoredCall)
    // From the callee.
    /// The callee's decision whether the call may ring.
    case answered(CallAnswer)
    /// The number of the callee's devices that are now ringing.
    case rings(devices: Int)
    /// No device of the callee is still ringing, and none can receive a push notification.
    case outOfReach
    /// The callee has missed this call, because the former node was lost. This node has restored it, and nobody can accept it.
    case missed
    /// The callee is on another node than the one that has restored the call, so the callee cannot accept it. A device that was accepting
    /// the call when the former node died connects here soon.
    case calleeElsewhere
    /// The callee accepts the call, with or without video.
    case accept(IdentityID, video: Bool)
    // From either person.
    case leave(IdentityID, CallLeaving)
    /// The person's device lost its connection (true) or reconnected (false).
    case away(IdentityID, Bool)
    /// The person turned video on or off.
    case video(IdentityID, Bool)
    /// The person returned after a server restart or on another device, and needs a new session token.
    case rejoin(IdentityID)
    /// The person came to this node after the call, and asks to rejoin it: this node restored the call when they were on another
    /// one. Answered with `PersonCallEvent.readmitted`.
    case returned(IdentityID, ConnectionID, re: UInt64)
    // From the session.
    case joined(IdentityID)
    // From another call, when two people called each other at the same time. This call ends in favor of that one.
    case merge(into: CallID)
    // From the hub.
    /// The callee's node is lost, or letters between it and this one were.
    case nodeLost(NodeTag)
}

/// The answer of the callee's state machine to an incoming call.
public enum CallAnswer: Equatable, Sendable {
    /// The call may ring. The callee has reserved a place for it in their list of calls.
    case ready(Counterpart)
    /// The callee is already calling the caller, in the call `with`. Only one of the two calls continues. If that is
    /// the call that asked, the callee has reserved a place for it.
    case mutual(Counterpart, with: CallID)
    /// The callee is busy or unreachable. `isMissed` is true if a missed call is to be logged for the callee.
    case refused(Counterpart, CallOutcome, isMissed: Bool)
    /// The callee does not allow calls from the caller.
    case notAllowed
    /// The callee is on another node of the cluster, so nobody can be asked. Nothing is logged for the callee, who may have
    /// blocked the caller.
    case elsewhere
}

/// How a person leaves a call.
public enum CallLeaving: String, Equatable, Sendable {
    /// Hung up, canceled, declined, or closed the page.
    case hungUp
    /// The device did not reconnect in time.
    case lost
    /// The person was deleted. The call also deletes the person's name, so that the name does not appear in the other
    /// person's call log.
    case deleted
}

/// Events about calls, sent to a person's state machine.
public enum PersonCallEvent: Equatable, Sendable {
    /// This person was in this call when the server stopped.
    case restored(StoredCall)
    /// This person is in this call, which was restored while they were on another node. This device asks to rejoin it.
    case readmitted(StoredCall, ConnectionID, re: UInt64)
    /// Where the call is that this device asks to rejoin; nil if nowhere.
    case located(CallID, CallHome?, ConnectionID, re: UInt64)
    /// An incoming call requests permission to ring. Answered with `CallEvent.answered`.
    case asked(CallOffer)
    /// The call is stored and may ring.
    case ring(CallID)
    /// The requested call now has an id (`placed`), or could not be placed (`notPlaced`).
    case placed(CallOffer, ConnectionID, re: UInt64)
    case notPlaced(ConnectionID, re: UInt64, WireError)
    case ringing(CallID, devices: Int)
    case accepted(CallAgreement)
    /// The other person turned video on or off.
    case changed(CallID, video: Bool)
    case partnerAway(CallID, Bool)
    case over(CallEnd)
    /// The node of a call is lost, or letters between it and this one were.
    case nodeLost(NodeTag)
}

/// A call that is not accepted yet, as one of its two people sees it.
public struct CallOffer: Equatable, Sendable {
    public var call: CallID
    public var other: Counterpart
    public var video: Bool
    /// When the call was placed: a time of the wall clock.
    public var placedAt: Timestamp
    /// When the call stops ringing: a time of the timers' clock.
    public var ringsUntil: Timestamp
}

/// What one person needs to join an accepted call.
public struct CallAgreement: Equatable, Sendable {
    public var call: CallID
    /// Whether the other person is sending video.
    public var withVideo: Bool
    public var since: Timestamp
    public var admission: Admission
    public var mediaMode: MediaMode
}

/// How a call ended for one person.
public struct CallEnd: Equatable, Sendable {
    public var record: CallRecord
    /// The call that continues, if two people called each other at the same time; otherwise nil. Only the call that continues
    /// is logged.
    public var into: CallID?

    /// Whether the person has missed the call. If so, their list must show it, whichever node they are on.
    var isMissed: Bool { record.direction == .incoming && record.outcome == .missed }
}
