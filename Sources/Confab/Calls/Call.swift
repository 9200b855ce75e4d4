import Wire

/// A call, as it is now.
public struct Call: Hashable, Sendable, Identifiable {
    /// What a call does. `ringing` or `incoming` → `joining` → `active`; it is gone from ``Calls/all`` when it has ended.
    public enum State: String, Hashable, Sendable, CaseIterable {
        /// This person placed it, and it rings at the other person's devices.
        case ringing
        /// It rings on this device.
        case incoming
        /// It was accepted, and this device joins its session.
        case joining
        /// Both people are there.
        case active
    }

    /// The id of the call. It changes if the two people called each other: see ``formerID``.
    public internal(set) var id: CallID
    /// The id of this person's own call that continues under ``id``, because the two people called each other; nil otherwise.
    public internal(set) var formerID: CallID?
    /// Whether this person placed it.
    public let isOutgoing: Bool
    /// The other person.
    public internal(set) var person: Person
    /// Whether it was placed as a video call.
    public internal(set) var isVideo: Bool
    /// What it does now.
    public internal(set) var state: State
    /// On how many devices it rings; 0 if only a push was sent, nil if unknown.
    public internal(set) var devices: Int?
    /// Whether accepting it ends another call.
    public internal(set) var isWaiting = false
    /// Whether this device sends video.
    public internal(set) var sendsVideo: Bool
    /// Whether the other person sends video.
    public internal(set) var receivesVideo = false
    /// Whether the other person's connection works.
    public internal(set) var isPartnerConnected = true
    var acceptedAt: Timestamp?
    var ringDeadline: Timestamp?
    /// When to stop waiting for the server to tell how the call ended.
    var endDeadline: Timestamp?
    var session: SessionID?
    /// What the other end was told about ``sendsVideo``.
    var toldVideo: Bool?
}

/// How a call ended for this person.
public struct CallEnding: Hashable, Sendable {
    /// Why a call ended.
    public struct Outcome: Hashable, Sendable, RawRepresentable, ExpressibleByStringLiteral {
        public let rawValue: String
        public init(rawValue: String) { self.rawValue = rawValue }
        public init(stringLiteral value: String) { rawValue = value }
        init(_ outcome: CallOutcome) { rawValue = outcome.rawValue }

        /// The other person ended it.
        public static let hungUp = Self(CallOutcome.hungUp)
        /// You ended it.
        public static let ended = Self(CallOutcome.ended)
        /// The callee declined.
        public static let declined = Self(CallOutcome.declined)
        /// The caller canceled it.
        public static let cancelled = Self(CallOutcome.cancelled)
        /// Nobody answered your device.
        public static let missed = Self(CallOutcome.missed)
        /// The callee did not answer.
        public static let unanswered = Self(CallOutcome.unanswered)
        /// The callee is in another call, or does not want to be disturbed.
        public static let busy = Self(CallOutcome.busy)
        /// No device of the callee could ring.
        public static let unreachable = Self(CallOutcome.unreachable)
        /// The two people did not both join the call.
        public static let failed = Self(CallOutcome.failed)
        /// A connection was lost for too long.
        public static let connectionLost = Self(CallOutcome.connectionLost)
        /// Another device of yours accepted it.
        public static let answeredElsewhere = Self(CallOutcome.answeredElsewhere)
        /// Another device of yours declined it.
        public static let declinedElsewhere = Self(CallOutcome.declinedElsewhere)
        /// The two people called each other, and the other call continues.
        public static let merged = Self(CallOutcome.merged)
    }

    /// The call that ended.
    public let id: CallID
    /// Why.
    public let outcome: Outcome
    /// The other person.
    public let person: Person
    /// Whether this person placed it.
    public let isOutgoing: Bool
    /// How long it lasted since it was accepted; nil if it was not.
    public let duration: Duration?
    /// The error that ended it; nil if none did.
    public let error: ConfabError?
}
