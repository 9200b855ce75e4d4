// Calling somebody. What the members mean is in protocol/README.md §12.

/// What a client asks about calls.
public enum CallVerb: Equatable, Sendable {
    case start(StartCall)
    case accept(AnswerCall)
    case decline(OfCall)
    case cancel(OfCall)
    case end(OfCall)
    case update(AnswerCall)
    case rejoin(OfCall)
    case seen(OfCall)
    case log(CallLogPage)
    case forget(ForgetCalls)

    var type: String {
        switch self {
        case .start: "call.start"
        case .accept: "call.accept"
        case .decline: "call.decline"
        case .cancel: "call.cancel"
        case .end: "call.end"
        case .update: "call.update"
        case .rejoin: "call.rejoin"
        case .seen: "call.seen"
        case .log: "call.log"
        case .forget: "call.forget"
        }
    }

    init?(type: String, members: JSONObject) throws(WireError) {
        switch type {
        case "call.start": self = .start(try StartCall(members: members))
        case "call.accept": self = .accept(try AnswerCall(members: members))
        case "call.decline": self = .decline(try OfCall(members: members))
        case "call.cancel": self = .cancel(try OfCall(members: members))
        case "call.end": self = .end(try OfCall(members: members))
        case "call.update": self = .update(try AnswerCall(members: members))
        case "call.rejoin": self = .rejoin(try OfCall(members: members))
        case "call.seen": self = .seen(try OfCall(members: members))
        case "call.log": self = .log(try CallLogPage(members: members))
        case "call.forget": self = .forget(try ForgetCalls(members: members))
        default: return nil
        }
    }

    func write(_ coder: inout FieldCoder) throws(WireError) {
        switch self {
        case .start(var payload): try payload.fields(&coder)
        case .accept(var payload), .update(var payload): try payload.fields(&coder)
        case .decline(var payload), .cancel(var payload), .end(var payload), .rejoin(var payload), .seen(var payload):
            try payload.fields(&coder)
        case .log(var payload): try payload.fields(&coder)
        case .forget(var payload): try payload.fields(&coder)
        }
    }
}

public struct StartCall: Payload, Hashable {
    public var person = PersonID(high: 0, low: 0)
    public var video = true
    public init() {}
    public init(person: PersonID, video: Bool) { (self.person, self.video) = (person, video) }
    public mutating func fields(_ coder: inout FieldCoder) throws(WireError) {
        try coder.id("personId", &person)
        try coder.bool("video", &video)
    }
}

public struct OfCall: Payload, Hashable {
    public var call = CallID(high: 0, low: 0)
    public init() {}
    public init(call: CallID) { self.call = call }
    public mutating func fields(_ coder: inout FieldCoder) throws(WireError) { try coder.id("callId", &call) }
}

/// A call, and whether one's own side of it has a picture.
public struct AnswerCall: Payload, Hashable {
    public var call = CallID(high: 0, low: 0)
    public var video = true
    public init() {}
    public init(call: CallID, video: Bool) { (self.call, self.video) = (call, video) }
    public mutating func fields(_ coder: inout FieldCoder) throws(WireError) {
        try coder.id("callId", &call)
        try coder.bool("video", &video)
    }
}

public struct CallLogPage: Payload, Hashable {
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
public struct ForgetCalls: Payload, Hashable {
    public var call: CallID?
    public init() {}
    public init(call: CallID?) { self.call = call }
    public mutating func fields(_ coder: inout FieldCoder) throws(WireError) { try coder.id("callId", &call) }
}

/// What a client is told about calls.
public enum CallNews: Equatable, Sendable {
    case placed(CallPlaced)
    case ringing(CallRinging)
    case incoming(CallIncoming)
    case accepted(CallAccepted)
    case changed(AnswerCall)
    case partner(CallPartner)
    case ended(CallEnded)
    case log(CallLog)

    var type: String {
        switch self {
        case .placed: "call.placed"
        case .ringing: "call.ringing"
        case .incoming: "call.incoming"
        case .accepted: "call.accepted"
        case .changed: "call.changed"
        case .partner: "call.partner"
        case .ended: "call.ended"
        case .log: "call.log"
        }
    }

    init?(type: String, members: JSONObject) throws(WireError) {
        switch type {
        case "call.placed": self = .placed(try CallPlaced(members: members))
        case "call.ringing": self = .ringing(try CallRinging(members: members))
        case "call.incoming": self = .incoming(try CallIncoming(members: members))
        case "call.accepted": self = .accepted(try CallAccepted(members: members))
        case "call.changed": self = .changed(try AnswerCall(members: members))
        case "call.partner": self = .partner(try CallPartner(members: members))
        case "call.ended": self = .ended(try CallEnded(members: members))
        case "call.log": self = .log(try CallLog(members: members))
        default: return nil
        }
    }

    func write(_ coder: inout FieldCoder) throws(WireError) {
        switch self {
        case .placed(var payload): try payload.fields(&coder)
        case .ringing(var payload): try payload.fields(&coder)
        case .incoming(var payload): try payload.fields(&coder)
        case .accepted(var payload): try payload.fields(&coder)
        case .changed(var payload): try payload.fields(&coder)
        case .partner(var payload): try payload.fields(&coder)
        case .ended(var payload): try payload.fields(&coder)
        case .log(var payload): try payload.fields(&coder)
        }
    }
}

/// To the caller: the call exists, and for how long it may ring.
public struct CallPlaced: Payload, Hashable {
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
public struct CallRinging: Payload, Hashable {
    public var call = CallID(high: 0, low: 0)
    public var devices = 0
    public init() {}
    public init(call: CallID, devices: Int) { (self.call, self.devices) = (call, devices) }
    public mutating func fields(_ coder: inout FieldCoder) throws(WireError) {
        try coder.id("callId", &call)
        try coder.integer("devices", &devices, in: 0...Int(Int32.max))
    }
}

public struct CallIncoming: Payload, Hashable {
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

public struct CallAccepted: Payload, Hashable {
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

public struct CallPartner: Payload, Hashable {
    public var call = CallID(high: 0, low: 0)
    public var state = PartnerState.State.connected
    public init() {}
    public init(call: CallID, state: PartnerState.State) { (self.call, self.state) = (call, state) }
    public mutating func fields(_ coder: inout FieldCoder) throws(WireError) {
        try coder.id("callId", &call)
        try coder.choice("state", &state)
    }
}

/// How a call ended, from the point of view of whoever is told.
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

public struct CallEnded: Payload, Hashable {
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

public struct CallLog: Payload, Hashable {
    public var re: UInt64 = 0
    /// Newest first.
    public var calls: [LoggedCall] = []
    public var next: String?
    public init() {}
    public init(re: UInt64, calls: [LoggedCall], next: String?) { (self.re, self.calls, self.next) = (re, calls, next) }
    public mutating func fields(_ coder: inout FieldCoder) throws(WireError) {
        try coder.re(&re)
        try coder.list("calls", &calls)
        try coder.string("next", &next, max: Limits.name)
    }
}
