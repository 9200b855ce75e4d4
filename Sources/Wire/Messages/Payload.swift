/// The members of one message, or of an object inside one.
public protocol Payload: Equatable, Sendable {
    init()
    /// Reads or writes every member.
    mutating func fields(_ coder: inout FieldCoder) throws(WireError)
    /// The `seq` of the request that this answers; nil where it answers none.
    ///
    /// Do not implement it: conform to ``AnswerPayload`` or ``PossibleAnswerPayload``.
    var answeredRequest: UInt64? { get }
}

extension Payload {
    public var answeredRequest: UInt64? { nil }

    public init(members: JSONObject) throws(WireError) {
        self.init()
        var coder = FieldCoder(reading: members)
        try fields(&coder)
    }
}

/// A payload that always answers a request.
public protocol AnswerPayload: Payload {
    var re: UInt64 { get }
}

extension AnswerPayload {
    public var answeredRequest: UInt64? { re }
}

/// A payload that answers a request or comes by itself: a call arrives as an event, and again as the answer of a device
/// that rejoins it.
public protocol PossibleAnswerPayload: Payload {
    var re: UInt64? { get }
}

extension PossibleAnswerPayload {
    public var answeredRequest: UInt64? { re }
}

/// A payload without members.
public struct NoMembers: Payload {
    public init() {}
    public mutating func fields(_ coder: inout FieldCoder) {}
}
