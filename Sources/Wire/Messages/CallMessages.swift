/// What a client asks about calls (`protocol/README.md` §12).
public enum CallVerb: Equatable, Sendable, MessageSet {
    case start(Start)
    case accept(CallVideo)
    case decline(CallReference)
    case cancel(CallReference)
    case end(CallReference)
    case update(CallVideo)
    case rejoin(CallReference)
    case seen(CallReference)
    case log(LogPage)
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
    public struct Start: Payload, Hashable {
        public var person = PersonID(high: 0, low: 0)
        public var video = true
        public init() {}
        public init(person: PersonID, video: Bool) { (self.person, self.video) = (person, video) }
        public mutating func fields(_ coder: inout FieldCoder) throws(WireError) {
            try coder.id("personId", &person)
            try coder.bool("video", &video)
        }
    }

    public struct CallReference: Payload, Hashable {
        public var call = CallID(high: 0, low: 0)
        public init() {}
        public init(call: CallID) { self.call = call }
        public mutating func fields(_ coder: inout FieldCoder) throws(WireError) { try coder.id("callId", &call) }
    }

    public struct LogPage: Payload, Hashable {
        public var before: String?
        public var limit: Int?
        public init() {}
        public init(before: String? = nil, limit: Int? = nil) { (self.before, self.limit) = (before, limit) }
        public mutating func fields(_ coder: inout FieldCoder) throws(WireError) {
            try coder.string("before", &before, max: Limits.name)
            try coder.integer("limit", &limit, in: 1...Limits.callLogRows)
        }
    }

    /// One call of the log, or all of them.
    public struct Forget: Payload, Hashable {
        public var call: CallID?
        public init() {}
        public init(call: CallID?) { self.call = call }
        public mutating func fields(_ coder: inout FieldCoder) throws(WireError) { try coder.id("callId", &call) }
    }
}

/// What a client is told about calls (`protocol/README.md` §12).
public enum CallNotice: Equatable, Sendable, MessageSet {
    case placed(Placed)
    case ringing(Ringing)
    case incoming(Incoming)
    case accepted(Accepted)
    case changed(CallVideo)
    case partner(Partner)
    case ended(Ended)
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
    /// To the caller: the call exists, and for how long it may ring.
    public struct Placed: PossibleAnswerPayload, Hashable {
        public var re: UInt64?
        public var call = CallID(high: 0, low: 0)
        public var person = PersonInfo()
        public var video = true
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

    /// To the caller: it rings on so many devices; on none when only a push went out.
    public struct Ringing: Payload, Hashable {
        public var call = CallID(high: 0, low: 0)
        public var devices = 0
        public init() {}
        public init(call: CallID, devices: Int) { (self.call, self.devices) = (call, devices) }
        public mutating func fields(_ coder: inout FieldCoder) throws(WireError) {
            try coder.id("callId", &call)
            try coder.integer("devices", &devices, in: 0...Int(Int32.max))
        }
    }

    public struct Incoming: PossibleAnswerPayload, Hashable {
        public var re: UInt64?
        public var call = CallID(high: 0, low: 0)
        public var person = PersonInfo()
        public var video = true
        /// It rings beside another call of this person; accepting it ends that one.
        public var waiting = false
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

    public struct Accepted: PossibleAnswerPayload, Hashable {
        public var re: UInt64?
        public var call = CallID(high: 0, low: 0)
        public var person = PersonInfo()
        /// Whether it was placed as a video call.
        public var video = true
        /// Whether the other side has a picture now.
        public var withVideo = true
        public var since = Timestamp(milliseconds: 0)
        public var admission = Admission()
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

    public struct Partner: Payload, Hashable {
        public var call = CallID(high: 0, low: 0)
        public var state = PartnerState.connected
        public init() {}
        public init(call: CallID, state: PartnerState) { (self.call, self.state) = (call, state) }
        public mutating func fields(_ coder: inout FieldCoder) throws(WireError) {
            try coder.id("callId", &call)
            try coder.choice("state", &state)
        }
    }

    public struct Ended: Payload, Hashable {
        public var call = CallID(high: 0, low: 0)
        public var reason = CallOutcome.ended
        public var direction = CallDirection.incoming
        public var person = PersonInfo()
        public var video = true
        public var at = Timestamp(milliseconds: 0)
        /// From accepting to the end; absent when nobody accepted.
        public var duration: Duration?
        /// The call that a merged one went on as.
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

    public struct Log: AnswerPayload, Hashable {
        public var re: UInt64 = 0
        /// Newest first.
        public var calls: [LoggedCall] = []
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

/// A call, and whether one's own side of it has a picture.
public struct CallVideo: Payload, Hashable {
    public var call = CallID(high: 0, low: 0)
    public var video = true
    public init() {}
    public init(call: CallID, video: Bool) { (self.call, self.video) = (call, video) }
    public mutating func fields(_ coder: inout FieldCoder) throws(WireError) {
        try coder.id("callId", &call)
        try coder.bool("video", &video)
    }
}

/// One call of somebody's log.
public struct LoggedCall: Payload, Hashable {
    public var call = CallID(high: 0, low: 0)
    public var direction = CallDirection.incoming
    public var outcome = CallOutcome.ended
    public var person = PersonInfo()
    public var video = true
    /// When it was placed.
    public var at = Timestamp(milliseconds: 0)
    public var duration: Duration?
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

/// How a call ended, as the receiver sees it.
public enum CallOutcome: String, Hashable, Sendable, CaseIterable {
    /// Somebody hung up: the other, or oneself on any device.
    case hungUp, ended
    case declined, cancelled
    /// It rang out: for the callee, for the caller.
    case missed, unanswered
    case busy, unreachable, failed, connectionLost
    case answeredElsewhere, declinedElsewhere
    /// Two called each other: it went on as the other's call.
    case merged
}

public enum CallDirection: String, Hashable, Sendable, CaseIterable {
    case outgoing, incoming
}
