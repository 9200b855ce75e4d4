/// A message with its place in the numbering.
public struct Envelope<Message: Equatable & Sendable>: Equatable, Sendable {
    /// `nil` for unnumbered messages.
    public var seq: UInt64?
    /// The highest `seq` received from the other end.
    public var ack: UInt64?
    public var message: Message

    public init(seq: UInt64? = nil, ack: UInt64? = nil, message: Message) {
        (self.seq, self.ack, self.message) = (seq, ack, message)
    }
}

/// What could be read of a message that is wrong: its number is needed to answer it and to keep counting.
public struct UnreadableMessage: Error, Equatable, Sendable {
    public var seq: UInt64?
    public var ack: UInt64?
    public var error: WireError

    public init(seq: UInt64? = nil, ack: UInt64? = nil, error: WireError) {
        (self.seq, self.ack, self.error) = (seq, ack, error)
    }
}

/// Seqs and acks stay below 2^53, which JavaScript can count to.
private let largestSequenceNumber: UInt64 = 1 << 53

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
                error: WireError(.malformed, "This is not JSON: \(error.message) at byte \(error.offset).")
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
    public static func decode(_ bytes: some Collection<UInt8>) throws(UnreadableMessage) -> Self {
        let head = try Head(bytes)
        do throws(WireError) {
            let message = try ClientMessage(type: head.type, members: head.members)
            return Envelope(seq: head.seq, ack: head.ack, message: message)
        } catch {
            throw UnreadableMessage(seq: head.seq, ack: head.ack, error: error)
        }
    }

    public func encode() -> [UInt8] {
        encodeMessage(type: message.type, seq: seq, ack: ack) { coder throws(WireError) in try message.write(&coder) }
    }
}

extension Envelope where Message == ServerMessage {
    public static func decode(_ bytes: some Collection<UInt8>) throws(UnreadableMessage) -> Self {
        let head = try Head(bytes)
        do throws(WireError) {
            let message = try ServerMessage(type: head.type, members: head.members)
            return Envelope(seq: head.seq, ack: head.ack, message: message)
        } catch {
            throw UnreadableMessage(seq: head.seq, ack: head.ack, error: error)
        }
    }

    public func encode() -> [UInt8] {
        message.encode(seq: seq, ack: ack)
    }
}

extension ServerMessage {
    public func encode(seq: UInt64? = nil, ack: UInt64? = nil) -> [UInt8] {
        encodeMessage(type: type, seq: seq, ack: ack) { coder throws(WireError) in try write(&coder) }
    }
}

private func encodeMessage(
    type: String, seq: UInt64?, ack: UInt64?, fields: (inout FieldCoder) throws(WireError) -> Void
) -> [UInt8] {
    var writer = JSONWriter()
    writer.beginObject()
    writer.name("type")
    writer.string(type)
    if let seq {
        writer.name("seq")
        writer.integer(seq)
    }
    if let ack {
        writer.name("ack")
        writer.integer(ack)
    }
    var coder = FieldCoder(writing: writer)
    // Only reading throws; a value that exists can be written.
    do throws(WireError) { try fields(&coder) } catch { assertionFailure("writing cannot fail: \(error)") }
    coder.writer.endObject()
    return coder.writer.bytes
}
