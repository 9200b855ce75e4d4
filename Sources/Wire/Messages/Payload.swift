/// The members of a message, or of an object inside one.
public protocol Payload: Equatable, Sendable {
    init()
    /// Reads or writes every member, depending on ``FieldCoder/isReading``.
    ///
    /// - Throws: `malformed` or `session_invalid`, and only when reading.
    mutating func fields(_ coder: inout FieldCoder) throws(WireError)
    /// The `seq` of the request that this payload answers; nil if the payload answers none.
    ///
    /// Do not implement this property. Conform to ``AnswerPayload`` or ``PossibleAnswerPayload`` instead.
    var answeredRequest: UInt64? { get }
}

extension Payload {
    /// Nil by default, because most payloads answer no request.
    public var answeredRequest: UInt64? { nil }

    /// The payload as a JSON object.
    public var json: [UInt8] {
        var payload = self
        do throws(WireError) {
            return try FieldCoder.object { coder throws(WireError) in try payload.fields(&coder) }
        } catch {
            // Writing never throws.
            assertionFailure("writing failed: \(error)")
            return []
        }
    }

    /// The size of the JSON object in bytes.
    public var encodedSize: Int { json.count }

    /// Reads the members of a JSON object.
    public init(members: JSONObject) throws(WireError) {
        self.init()
        var coder = FieldCoder(reading: members)
        try fields(&coder)
    }
}

/// A payload that always answers a request.
public protocol AnswerPayload: Payload {
    /// The `seq` of the request that this message answers.
    var re: UInt64 { get }
}

extension AnswerPayload {
    /// The value of `re`.
    public var answeredRequest: UInt64? { re }
}

/// A payload that can either answer a request or be an event. For example, an incoming call is an event, but the same message
/// is also the answer to a device that rejoins the call.
public protocol PossibleAnswerPayload: Payload {
    /// The `seq` of the request that this message answers; nil for an event.
    var re: UInt64? { get }
}

extension PossibleAnswerPayload {
    /// The value of `re`.
    public var answeredRequest: UInt64? { re }
}

/// A payload without members. If a received message has members, they are ignored.
public struct NoMembers: Payload {
    public init() {}
    public mutating func fields(_ coder: inout FieldCoder) {}
}
