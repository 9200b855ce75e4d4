/// A message with its number and acknowledgment (`protocol/README.md` §1).
public struct Envelope<Message: Equatable & Sendable>: Equatable, Sendable {
    /// The number of this message, from 1; nil for unnumbered messages.
    public var seq: UInt64?
    /// The highest `seq` received from the other side; nil if the message acknowledges nothing.
    public var ack: UInt64?
    /// The message without its number and acknowledgment.
    public var message: Message

    public init(seq: UInt64? = nil, ack: UInt64? = nil, message: Message) {
        (self.seq, self.ack, self.message) = (seq, ack, message)
    }
}

/// A message that could not be decoded. Its `seq` and `ack` are kept if they could be read, because they are needed to answer
/// the message and to keep counting.
public struct UnreadableMessage: Error, Equatable, Sendable {
    /// The number of the message; nil if the message has no number or the number is unreadable.
    public var seq: UInt64?
    /// The highest `seq` that the sender has received; nil if absent or unreadable.
    public var ack: UInt64?
    /// The error: `malformed`, `unknown_type` or `session_invalid`.
    public var error: WireError

    public init(seq: UInt64? = nil, ack: UInt64? = nil, error: WireError) {
        (self.seq, self.ack, self.error) = (seq, ack, error)
    }
}

/// The largest message number. JavaScript represents integers exactly only up to 2^53.
private let largestSequenceNumber: UInt64 = 1 << 53

/// The type, number and acknowledgment of a received message, and all its members, which are not decoded yet.
private struct Head {
    var type = ""
    var seq: UInt64?
    var ack: UInt64?
    var members: JSONObject

    init(_ bytes: some Collection<UInt8>) throws(UnreadableMessage) {
        let value: JSONValue
        do throws(JSONError) {
            value = try JSONReader.parse(bytes)
        } catch {
            throw UnreadableMessage(
                error: WireError(.malformed, "The message is not valid JSON: \(error.message) at byte \(error.offset).")
            )
        }
        guard case .object(let object) = value else {
            throw UnreadableMessage(error: WireError(.malformed, "A message must be a JSON object."))
        }
        members = object
        var coder = FieldCoder(reading: object)
        do throws(WireError) {
            try coder.integer("seq", &seq, in: 1...largestSequenceNumber)
            try coder.integer("ack", &ack, in: 0...largestSequenceNumber)
            try coder.string("type", &type, max: Limits.name)
        } catch {
            throw UnreadableMessage(seq: seq, ack: ack, error: error)
        }
    }
}

extension Envelope where Message == ClientMessage {
    /// Decodes a client's message.
    ///
    /// - Throws: the error, and the `seq` and `ack` if they could be read.
    public static func decode(_ bytes: some Collection<UInt8>) throws(UnreadableMessage) -> Self {
        let head = try Head(bytes)
        do throws(WireError) {
            let message = try ClientMessage(type: head.type, members: head.members)
            return Envelope(seq: head.seq, ack: head.ack, message: message)
        } catch {
            throw UnreadableMessage(seq: head.seq, ack: head.ack, error: error)
        }
    }

    /// Returns the message as JSON bytes, including its number and acknowledgment if they are not nil.
    public func encode() -> [UInt8] {
        message.encode(seq: seq, ack: ack)
    }
}

extension Envelope where Message == ServerMessage {
    /// Decodes a server's message.
    ///
    /// - Throws: the error, and the `seq` and `ack` if they could be read.
    public static func decode(_ bytes: some Collection<UInt8>) throws(UnreadableMessage) -> Self {
        let head = try Head(bytes)
        do throws(WireError) {
            let message = try ServerMessage(type: head.type, members: head.members)
            return Envelope(seq: head.seq, ack: head.ack, message: message)
        } catch {
            throw UnreadableMessage(seq: head.seq, ack: head.ack, error: error)
        }
    }

    /// Returns the message as JSON bytes, including its number and acknowledgment if they are not nil.
    public func encode() -> [UInt8] {
        message.encode(seq: seq, ack: ack)
    }
}

extension MessageSet {
    fileprivate func encoded(seq: UInt64?, ack: UInt64?) -> [UInt8] {
        var encoder = MessageEncoder(seq: seq, ack: ack, coder: FieldCoder(writing: JSONWriter()))
        encoder.coder.writer.beginObject()
        visitWithoutFailing(self, &encoder)
        encoder.coder.writer.endObject()
        return encoder.coder.writer.bytes
    }
}

extension ClientMessage {
    /// Returns the message as JSON bytes, including `seq` and `ack` if they are not nil.
    public func encode(seq: UInt64? = nil, ack: UInt64? = nil) -> [UInt8] { encoded(seq: seq, ack: ack) }
}

extension ServerMessage {
    /// Returns the message as JSON bytes, including `seq` and `ack` if they are not nil.
    public func encode(seq: UInt64? = nil, ack: UInt64? = nil) -> [UInt8] { encoded(seq: seq, ack: ack) }
}

/// A message that is sent to many clients. It is encoded once, and each client's numbers are inserted into the bytes.
public final class BroadcastMessage: Equatable, Sendable {
    /// The message without numbers.
    public let message: ServerMessage
    private let bytes: [UInt8]
    /// The offset in `bytes` at which a client's numbers are inserted: after `{"type":"…"`.
    private let split: Int

    /// Encodes the message.
    public init(_ message: ServerMessage) {
        self.message = message
        bytes = message.encode()
        split = #"{"type":"""#.utf8.count + message.type.utf8.count
    }

    /// Returns the same bytes as ``ServerMessage/encode(seq:ack:)`` with these numbers.
    public func encode(seq: UInt64, ack: UInt64) -> [UInt8] {
        var result: [UInt8] = []
        result.reserveCapacity(bytes.count + 40)
        result += bytes[..<split]
        result += ",\"seq\":\(seq),\"ack\":\(ack)".utf8
        result += bytes[split...]
        return result
    }

    public static func == (left: BroadcastMessage, right: BroadcastMessage) -> Bool { left.message == right.message }
}

extension FieldCoder {
    /// Reads or writes a client's message without its numbers, as a required object with the member `type`.
    package mutating func message(_ name: String, _ value: inout ClientMessage) throws(WireError) {
        try message(name, &value) { type, members throws(WireError) in try ClientMessage(type: type, members: members) }
    }

    /// Reads or writes a server's message without its numbers, as a required object with the member `type`.
    package mutating func message(_ name: String, _ value: inout ServerMessage) throws(WireError) {
        try message(name, &value) { type, members throws(WireError) in try ServerMessage(type: type, members: members) }
    }

    private mutating func message<M: MessageSet>(
        _ name: String, _ value: inout M, _ read: (String, JSONObject) throws(WireError) -> M
    ) throws(WireError) {
        try object(name) { coder throws(WireError) in
            if coder.isReading {
                var type = ""
                try coder.string("type", &type, max: Limits.name)
                value = try read(type, coder.object)
            } else {
                try coder.write(value)
            }
        }
    }

    /// Writes the message's type and members into the object that is open.
    private mutating func write(_ message: some MessageSet) throws(WireError) {
        var encoder = MessageEncoder(seq: nil, ack: nil, coder: self)
        // The writer moves to the encoder and back, so its bytes are not copied.
        writer = JSONWriter(capacity: 0)
        try message.visit(&encoder)
        self = encoder.coder
    }
}

/// Writes the message that it visits, into the object that is open.
private struct MessageEncoder: MessageVisitor {
    let seq: UInt64?
    let ack: UInt64?
    var coder: FieldCoder

    mutating func message(_ type: String, _ payload: some Payload) throws(WireError) {
        coder.writer.name("type")
        coder.writer.string(type)
        if let seq {
            coder.writer.name("seq")
            coder.writer.integer(seq)
        }
        if let ack {
            coder.writer.name("ack")
            coder.writer.integer(ack)
        }
        var payload = payload
        try payload.fields(&coder)
    }
}
