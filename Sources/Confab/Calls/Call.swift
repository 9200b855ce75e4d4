import Wire

/// A snapshot of a call. It does not change when the call does.
public struct Call: Hashable, Sendable, Identifiable {
    /// The state of a call. `ringing` or `incoming` → `joining` → `active`; when the call has ended, it is no longer in
    /// ``Calls/all``.
    public enum State: String, Hashable, Sendable, CaseIterable {
        /// This person placed the call, and it rings on the other person's devices.
        case ringing
        /// The call rings on this device.
        case incoming
        /// The call was accepted, and this device is joining its session.
        case joining
        /// Both people have joined.
        case active
    }

    /// The id of the call. It changes if the two people called each other and the call continues under the id of the
    /// other call: see ``formerID``.
    public internal(set) var id: CallID
    /// The call's previous id, if the two people called each other and this person's call continues under ``id``; nil
    /// otherwise.
    public internal(set) var formerID: CallID?
    /// Whether this person placed the call.
    public let isOutgoing: Bool
    /// The other person.
    public internal(set) var person: Person
    /// Whether the call was placed as a video call.
    public internal(set) var isVideo: Bool
    /// The call's current state.
    public internal(set) var state: State
    /// The number of devices on which the call rings; 0 if only a push notification was sent, nil if unknown.
    public internal(set) var devices: Int?
    /// Whether the call rings while this person has another call. Accepting it ends the other call.
    public internal(set) var isWaiting = false
    /// Whether this device sends video.
    public internal(set) var sendsVideo: Bool
    /// Whether the other person sends video.
    public internal(set) var receivesVideo = false
    /// Whether the other person's connection works.
    public internal(set) var isPartnerConnected = true
    /// Whether this device is rejoining the call after its connection to the server was replaced. A change of this
    /// property alone is not reported; ``isPartnerConnected`` changes at the same time or soon after.
    public internal(set) var isRejoining = false
    var acceptedAt: Timestamp?
    var ringDeadline: Timestamp?
    /// When to stop waiting for the server to report how the call ended; nil while not waiting.
    var endDeadline: Timestamp?
    /// The outcome of the call if the server has not reported one by ``endDeadline``.
    var lateOutcome = CallEnding.Outcome.failed
    /// When to ask for this call again, because no node of a cluster has continued it yet; nil while not waiting.
    var rejoinAt: Timestamp?
    /// When to stop asking; nil if the server has not answered so.
    var rejoinUntil: Timestamp?
    var session: SessionID?
    /// The value of ``sendsVideo`` that was last reported to the other person; nil if none was reported.
    var reportedVideo: Bool?
}

/// How a call ended for this person.
public struct CallEnding: Hashable, Sendable {
    /// Why a call ended.
    public struct Outcome: Hashable, Sendable, RawRepresentable, ExpressibleByStringLiteral {
        public let rawValue: String
        public init(rawValue: String) { self.rawValue = rawValue }
        public init(stringLiteral value: String) { rawValue = value }
        init(_ outcome: CallOutcome) { rawValue = outcome.rawValue }

        /// The other person ended the call.
        public static let hungUp = Self(CallOutcome.hungUp)
        /// This person ended the call.
        public static let ended = Self(CallOutcome.ended)
        /// The callee declined.
        public static let declined = Self(CallOutcome.declined)
        /// The caller canceled the call.
        public static let cancelled = Self(CallOutcome.cancelled)
        /// This person was called and no device accepted, or the call could not ring.
        public static let missed = Self(CallOutcome.missed)
        /// The callee did not answer.
        public static let unanswered = Self(CallOutcome.unanswered)
        /// The callee already has two calls, has do-not-disturb on, or has received too many calls recently.
        public static let busy = Self(CallOutcome.busy)
        /// No device of the callee could ring, or the callee has blocked the caller.
        public static let unreachable = Self(CallOutcome.unreachable)
        /// The two people did not both join the call's session in time.
        public static let failed = Self(CallOutcome.failed)
        /// The connection of one of the two people was lost for too long.
        public static let connectionLost = Self(CallOutcome.connectionLost)
        /// Another device of this person accepted the call.
        public static let answeredElsewhere = Self(CallOutcome.answeredElsewhere)
        /// Another device of this person declined the call.
        public static let declinedElsewhere = Self(CallOutcome.declinedElsewhere)
        /// The two people called each other at the same time, and the other of the two calls continues.
        public static let merged = Self(CallOutcome.merged)
    }

    /// The id of the call that ended.
    public let id: CallID
    /// Why the call ended.
    public let outcome: Outcome
    /// The other person.
    public let person: Person
    /// Whether this person placed the call.
    public let isOutgoing: Bool
    /// The time from the acceptance of the call to its end; nil if it was not accepted.
    public let duration: Duration?
    /// The error that ended the call; nil if there was none.
    public let error: ConfabError?
}
