/// A client's request about calls (`protocol/people.md` §12). All requests but `start`, `log` and `forget` name a call. They
/// fail with `not_found` if there is no such call, except `seen`, which never fails.
public enum CallVerb: Equatable, Sendable, MessageSet {
    /// Calls a person. Answered with ``CallNotice/placed(_:)``, or with `not_present`, `not_found`, `call_self`,
    /// `call_not_allowed`, `elsewhere` or `rate_limited`. If the callee is busy or unreachable, ``CallNotice/ended(_:)``
    /// follows.
    case start(Start)
    /// Accepts a call that is ringing on this device. Answered with ``CallNotice/accepted(_:)``, or with `call_state`.
    /// Also ends any other active call, and any search or chat in the roulette.
    case accept(CallVideo)
    /// Declines a call that is ringing on this device. Answered with `ok` once the end is stored, or with `call_state`.
    case decline(CallReference)
    /// Cancels a call that this person placed and that is still ringing. Answered with `ok` once the end is stored, or with
    /// `call_state`.
    case cancel(CallReference)
    /// Ends a call in any state. Answered with `ok` once the end is stored, or with `call_state` if the call is already ending.
    case end(CallReference)
    /// Turns this person's video on or off in an accepted call. Answered with `ok`, or with the error `call_state` or
    /// `elsewhere`.
    case update(CallVideo)
    /// Returns to a call after a welcome that did not resume. Answered with ``CallNotice/placed(_:)``,
    /// ``CallNotice/incoming(_:)`` or ``CallNotice/accepted(_:)``, depending on the state of the call. Fails with `call_state`,
    /// or with `elsewhere` while the call is on another connected device.
    case rejoin(CallReference)
    /// Confirms that the end of a call was shown to the person, so that the server does not send it again. Answered with `ok`.
    case seen(CallReference)
    /// Requests a page of the call log. Answered with ``CallNotice/log(_:)``, or with `malformed` for an unknown `before`.
    case log(LogPage)
    /// Deletes one call or all calls from the log. Answered with `ok`.
    case forget(Forget)

    func visit(_ visitor: inout some MessageVisitor) throws(WireError) {
        switch self {
        case .start(let payload): try visitor.message("call.start", payload)
        case .accept(let payload): try visitor.message("call.accept", payload)
        case .decline(let payload): try visitor.message("call.decline", payload)
        case .cancel(let payload): try visitor.message("call.cancel", payload)
        case .end(let payload): try visitor.message("call.end", payload)
        case .update(let payload): try visitor.message("call.update", payload)
        case .rejoin(let payload): try visitor.message("call.rejoin", payload)
        case .seen(let payload): try visitor.message("call.seen", payload)
        case .log(let payload): try visitor.message("call.log", payload)
        case .forget(let payload): try visitor.message("call.forget", payload)
        }
    }

    static let readers: [MessageReader<Self>] = [
        .init("call.start", Self.start),
        .init("call.accept", Self.accept),
        .init("call.decline", Self.decline),
        .init("call.cancel", Self.cancel),
        .init("call.end", Self.end),
        .init("call.update", Self.update),
        .init("call.rejoin", Self.rejoin),
        .init("call.seen", Self.seen),
        .init("call.log", Self.log),
        .init("call.forget", Self.forget),
    ]
}

extension CallVerb {
    /// The person to call, and whether the caller sends video.
    public struct Start: Payload, Hashable {
        /// The public id of the callee.
        public var person = PersonID(high: 0, low: 0)
        /// Whether the caller wants to send video.
        public var video = true
        public init() {}
        public init(person: PersonID, video: Bool) { (self.person, self.video) = (person, video) }
        public mutating func fields(_ coder: inout FieldCoder) throws(WireError) {
            try coder.id("personId", &person)
            try coder.bool("video", &video)
        }
    }

    /// The call that a request is about.
    public struct CallReference: Payload, Hashable {
        /// The id of the call, from ``CallNotice/placed(_:)`` or ``CallNotice/incoming(_:)``.
        public var call = CallID(high: 0, low: 0)
        public init() {}
        public init(call: CallID) { self.call = call }
        public mutating func fields(_ coder: inout FieldCoder) throws(WireError) { try coder.id("callId", &call) }
    }

    /// Which page of the call log to send.
    public struct LogPage: Payload, Hashable {
        /// ``CallNotice/Log/next`` of the previous page; nil for the newest calls.
        public var before: String?
        /// Maximum number of calls, 1 to 50; nil for 50.
        public var limit: Int?
        public init() {}
        public init(before: String? = nil, limit: Int? = nil) { (self.before, self.limit) = (before, limit) }
        public mutating func fields(_ coder: inout FieldCoder) throws(WireError) {
            try coder.string("before", &before, max: Limits.name)
            try coder.integer("limit", &limit, in: 1...Limits.callLogRows)
        }
    }

    /// The calls to delete from the log.
    public struct Forget: Payload, Hashable {
        /// The id of the call to delete; nil for all calls.
        public var call: CallID?
        public init() {}
        public init(call: CallID?) { self.call = call }
        public mutating func fields(_ coder: inout FieldCoder) throws(WireError) { try coder.id("callId", &call) }
    }
}

/// A server's message about calls (`protocol/people.md` §12).
public enum CallNotice: Equatable, Sendable, MessageSet {
    /// Notifies the caller's device that the call exists. Answers `start` and `rejoin`.
    case placed(Placed)
    /// Notifies the caller's device of how many devices are ringing. Sent again when that number changes.
    case ringing(Ringing)
    /// Notifies each online device of the callee that a call is ringing. Also sent to a device that goes online or
    /// rejoins while the call is ringing.
    case incoming(Incoming)
    /// Asks the caller's device and the device that accepted the call to join the session with this token. Answers
    /// `accept` and `rejoin`.
    case accepted(Accepted)
    /// The other person turned their video on or off.
    case changed(CallVideo)
    /// The other person's connection dropped or was resumed.
    case partner(Partner)
    /// The call is over. Sent at least once for each call. If the call was missed, or no device received this
    /// message, it is sent again at each `presence.appear` until a device sends `call.seen`. A client should show the
    /// end of each call only once.
    case ended(Ended)
    /// Answers `call.log`.
    case log(Log)

    func visit(_ visitor: inout some MessageVisitor) throws(WireError) {
        switch self {
        case .placed(let payload): try visitor.message("call.placed", payload)
        case .ringing(let payload): try visitor.message("call.ringing", payload)
        case .incoming(let payload): try visitor.message("call.incoming", payload)
        case .accepted(let payload): try visitor.message("call.accepted", payload)
        case .changed(let payload): try visitor.message("call.changed", payload)
        case .partner(let payload): try visitor.message("call.partner", payload)
        case .ended(let payload): try visitor.message("call.ended", payload)
        case .log(let payload): try visitor.message("call.log", payload)
        }
    }

    static let readers: [MessageReader<Self>] = [
        .init("call.placed", Self.placed),
        .init("call.ringing", Self.ringing),
        .init("call.incoming", Self.incoming),
        .init("call.accepted", Self.accepted),
        .init("call.changed", Self.changed),
        .init("call.partner", Self.partner),
        .init("call.ended", Self.ended),
        .init("call.log", Self.log),
    ]
}

extension CallNotice {
    /// A call that this person placed and that is not accepted yet.
    public struct Placed: PossibleAnswerPayload, Hashable {
        /// The `seq` of the request that this message answers; nil for an event.
        public var re: UInt64?
        /// The id that the server assigned to the call. Requests about the call contain it.
        public var call = CallID(high: 0, low: 0)
        /// The callee.
        public var person = PersonInfo()
        /// Whether the call was placed as a video call.
        public var video = true
        /// How much longer the call may ring.
        public var expiresIn: Duration = .zero
        public init() {}
        public mutating func fields(_ coder: inout FieldCoder) throws(WireError) {
            try coder.re(&re)
            try coder.id("callId", &call)
            try coder.nested("person", &person)
            try coder.bool("video", &video)
            try coder.milliseconds("expiresInMs", &expiresIn)
        }
    }

    /// The number of devices that are ringing.
    public struct Ringing: Payload, Hashable {
        /// The id of the call that is ringing.
        public var call = CallID(high: 0, low: 0)
        /// The number of connected devices that are ringing; 0 if only a push notification was sent.
        public var devices = 0
        public init() {}
        public init(call: CallID, devices: Int) { (self.call, self.devices) = (call, devices) }
        public mutating func fields(_ coder: inout FieldCoder) throws(WireError) {
            try coder.id("callId", &call)
            try coder.integer("devices", &devices, in: 0...Int(Int32.max))
        }
    }

    /// A call that is ringing on this device.
    public struct Incoming: PossibleAnswerPayload, Hashable {
        /// The `seq` of the request that this message answers; nil for an event.
        public var re: UInt64?
        /// The id of the call, with which to accept or decline it.
        public var call = CallID(high: 0, low: 0)
        /// The caller.
        public var person = PersonInfo()
        /// Whether the call was placed as a video call.
        public var video = true
        /// Whether this person is in another call. Accepting the incoming call ends the other call.
        public var waiting = false
        /// How much longer the call may ring.
        public var expiresIn: Duration = .zero
        public init() {}
        public mutating func fields(_ coder: inout FieldCoder) throws(WireError) {
            try coder.re(&re)
            try coder.id("callId", &call)
            try coder.nested("person", &person)
            try coder.bool("video", &video)
            try coder.bool("waiting", &waiting)
            try coder.milliseconds("expiresInMs", &expiresIn)
        }
    }

    /// A call that was accepted, and access to its session.
    public struct Accepted: PossibleAnswerPayload, Hashable {
        /// The `seq` of the request that this message answers; nil for an event.
        public var re: UInt64?
        /// The id of the call that was accepted.
        public var call = CallID(high: 0, low: 0)
        /// The other person.
        public var person = PersonInfo()
        /// Whether the call was placed as a video call.
        public var video = true
        /// Whether the other person is sending video.
        public var withVideo = true
        /// When the call was accepted.
        public var since = Timestamp(milliseconds: 0)
        /// The session of the call, and a token that allows publishing and subscribing there until the call ends. In JSON,
        /// these are the members `sessionId` and `token` of the message itself, not a nested object.
        public var admission = Admission()
        /// Whether the session's media is relayed or routed.
        public var mediaMode = MediaMode.routed
        public init() {}
        public mutating func fields(_ coder: inout FieldCoder) throws(WireError) {
            try coder.re(&re)
            try coder.id("callId", &call)
            try coder.nested("person", &person)
            try coder.bool("video", &video)
            try coder.bool("withVideo", &withVideo)
            try coder.timestamp("since", &since)
            try admission.fields(&coder)
            try coder.choice("mediaMode", &mediaMode)
        }
    }

    /// The state of the other person's connection.
    public struct Partner: Payload, Hashable {
        /// The id of the call that the two people are in.
        public var call = CallID(high: 0, low: 0)
        /// Whether the other person is connected, or disconnected but able to return.
        public var state = PartnerState.connected
        public init() {}
        public init(call: CallID, state: PartnerState) { (self.call, self.state) = (call, state) }
        public mutating func fields(_ coder: inout FieldCoder) throws(WireError) {
            try coder.id("callId", &call)
            try coder.choice("state", &state)
        }
    }

    /// The end of a call, from the point of view of the person to whom it is sent.
    public struct Ended: Payload, Hashable {
        /// The id of the call that ended.
        public var call = CallID(high: 0, low: 0)
        /// Why the call ended.
        public var reason = CallOutcome.ended
        /// Whether this person placed or received the call.
        public var direction = CallDirection.incoming
        /// The other person.
        public var person = PersonInfo()
        /// Whether the call was placed as a video call.
        public var video = true
        /// When the call was placed.
        public var at = Timestamp(milliseconds: 0)
        /// The time from when the call was accepted until it ended; nil if no device accepted it.
        public var duration: Duration?
        /// The id of the call that continues instead, if `reason` is `merged`; nil otherwise.
        public var into: CallID?
        public init() {}
        public mutating func fields(_ coder: inout FieldCoder) throws(WireError) {
            try coder.id("callId", &call)
            try coder.choice("reason", &reason)
            try coder.choice("direction", &direction)
            try coder.nested("person", &person)
            try coder.bool("video", &video)
            try coder.timestamp("at", &at)
            try coder.milliseconds("durationMs", &duration)
            try coder.id("into", &into)
        }
    }

    /// A page of the call log.
    public struct Log: AnswerPayload, Hashable {
        /// The `seq` of the request that this message answers.
        public var re: UInt64 = 0
        /// The calls, newest first.
        public var calls: [LoggedCall] = []
        /// The value of `before` with which to request the next page; nil on the last page.
        public var next: String?
        public init() {}
        public init(re: UInt64, calls: [LoggedCall], next: String?) {
            (self.re, self.calls, self.next) = (re, calls, next)
        }
        public mutating func fields(_ coder: inout FieldCoder) throws(WireError) {
            try coder.re(&re)
            try coder.list("calls", &calls)
            try coder.string("next", &next, max: Limits.name)
        }
    }
}

/// A call, and whether one of its two people sends video.
public struct CallVideo: Payload, Hashable {
    /// The id of the call that both people are in.
    public var call = CallID(high: 0, low: 0)
    /// Whether video is sent after this change. In a request, this is the sender's video; in a notice, the other
    /// person's.
    public var video = true
    public init() {}
    public init(call: CallID, video: Bool) { (self.call, self.video) = (call, video) }
    public mutating func fields(_ coder: inout FieldCoder) throws(WireError) {
        try coder.id("callId", &call)
        try coder.bool("video", &video)
    }
}

/// One call in a person's call log.
public struct LoggedCall: Payload, Hashable {
    /// The id of the call, for ``CallVerb/seen(_:)`` and ``CallVerb/forget(_:)``.
    public var call = CallID(high: 0, low: 0)
    /// Whether this person placed or received the call.
    public var direction = CallDirection.incoming
    /// How the call ended for this person.
    public var outcome = CallOutcome.ended
    /// The other person in the call, with their name at the time of the call.
    public var person = PersonInfo()
    /// Whether the call was placed as a video call.
    public var video = true
    /// When the call was placed.
    public var at = Timestamp(milliseconds: 0)
    /// The time from when the call was accepted until it ended; nil if no device accepted it.
    public var duration: Duration?
    /// Whether a device has shown this person how the call ended.
    public var seen = true
    public init() {}
    public mutating func fields(_ coder: inout FieldCoder) throws(WireError) {
        try coder.id("callId", &call)
        try coder.choice("direction", &direction)
        try coder.choice("outcome", &outcome)
        try coder.nested("person", &person)
        try coder.bool("video", &video)
        try coder.timestamp("at", &at)
        try coder.milliseconds("durationMs", &duration)
        try coder.bool("seen", &seen)
    }
}

/// The outcome of a call from the point of view of the person to whom it is sent.
public enum CallOutcome: String, Hashable, Sendable, CaseIterable {
    /// The other person ended an accepted call.
    case hungUp
    /// This person ended an accepted call, on any device.
    case ended
    /// The callee declined.
    case declined
    /// The caller canceled the call before it was accepted.
    case cancelled
    /// For the callee: no device accepted, or the call could not ring.
    case missed
    /// For the caller: the call rang, but no device accepted.
    case unanswered
    /// The callee already has two calls, does not want to be disturbed, or has received too many calls recently.
    case busy
    /// No device of the callee could ring, or the callee has blocked the caller. The caller cannot tell which.
    case unreachable
    /// The two people did not both join the session within 30 s after the call was accepted.
    case failed
    /// A connection dropped and did not return in time.
    case connectionLost
    /// Another device of this person accepted the call.
    case answeredElsewhere
    /// Another device of this person declined the call.
    case declinedElsewhere
    /// The two people called each other. They continue in the call ``CallNotice/Ended/into``.
    case merged
}

/// The direction of a call from the point of view of the person to whom it is sent.
public enum CallDirection: String, Hashable, Sendable, CaseIterable {
    /// This person placed the call.
    case outgoing
    /// The other person placed the call.
    case incoming
}
