/// A set of messages: those of one area (such as calls), or all in one direction.
///
/// Each message is in two lists. ``visit(_:)`` lists the type and payload of each message, and the compiler reports a missing
/// message. ``readers`` lists how to read each message. Tests that read the examples in `protocol/examples` find
/// messages that are missing from `readers`.
protocol MessageSet: Equatable, Sendable {
    func visit(_ visitor: inout some MessageVisitor) throws(WireError)
    static var readers: [MessageReader<Self>] { get }
}

/// An operation that works on messages of any type.
protocol MessageVisitor {
    /// Receives the message.
    ///
    /// - Parameter type: the message's name on the wire, such as `session.join`.
    mutating func message(_ type: String, _ payload: some Payload) throws(WireError)
}

/// Reads messages of one type.
struct MessageReader<Message: Sendable>: Sendable {
    let type: String
    let read: @Sendable (JSONObject) throws(WireError) -> Message

    init<P: Payload>(_ type: String, _ make: @escaping @Sendable (P) -> Message) {
        self.type = type
        read = { members throws(WireError) in make(try P(members: members)) }
    }

    /// Creates a reader for a message without members.
    init(_ type: String, _ message: Message) {
        self.type = type
        read = { _ in message }
    }

    private init(type: String, read: @escaping @Sendable (JSONObject) throws(WireError) -> Message) {
        (self.type, self.read) = (type, read)
    }

    /// Returns a reader that reads the same messages as part of a larger set.
    func within<Whole>(_ wrap: @escaping @Sendable (Message) -> Whole) -> MessageReader<Whole> {
        MessageReader<Whole>(type: type) { [read] members throws(WireError) in wrap(try read(members)) }
    }
}

extension MessageSet {
    /// Returns the readers, keyed by the type of the messages that they read.
    ///
    /// - Precondition: no two readers have the same type.
    static func byType(_ readers: [MessageReader<Self>]) -> [String: MessageReader<Self>] {
        Dictionary(uniqueKeysWithValues: readers.map { ($0.type, $0) })
    }
}

extension ClientMessage {
    init(type: String, members: JSONObject) throws(WireError) {
        guard let reader = Self.readersByType[type] else {
            throw WireError(.unknownType, "This server does not support the message \"\(type.prefix(64))\".")
        }
        self = try reader.read(members)
    }

    /// The name on the wire, such as `session.join`.
    public var type: String { typeName(self) }
}

extension ServerMessage {
    init(type: String, members: JSONObject) throws(WireError) {
        guard let reader = Self.readersByType[type] else {
            throw WireError(.unknownType, "This client does not support the message \"\(type.prefix(64))\".")
        }
        self = try reader.read(members)
    }

    /// The name on the wire, such as `session.joined`.
    public var type: String { typeName(self) }

    /// The `seq` of the request that this message answers; nil for events.
    public var re: UInt64? {
        var finder = AnsweredRequestFinder()
        visitWithoutFailing(self, &finder)
        return finder.request
    }
}

/// Finds the name of the message that it visits.
private struct TypeFinder: MessageVisitor {
    var type = ""
    mutating func message(_ type: String, _ payload: some Payload) { self.type = type }
}

/// Finds the request that the visited message answers.
private struct AnsweredRequestFinder: MessageVisitor {
    var request: UInt64?
    mutating func message(_ type: String, _ payload: some Payload) { request = payload.answeredRequest }
}

private func typeName(_ message: some MessageSet) -> String {
    var finder = TypeFinder()
    visitWithoutFailing(message, &finder)
    return finder.type
}

/// Visits with a visitor that does not throw. Visiting a message in memory never fails, because only reading from JSON throws.
func visitWithoutFailing(_ message: some MessageSet, _ visitor: inout some MessageVisitor) {
    do throws(WireError) { try message.visit(&visitor) } catch { assertionFailure("a visit failed: \(error)") }
}
