/// A request of a RouletteTok client (`protocol/roulettetok.md` §1).
public enum RouletteTokRequest: String, Equatable, Sendable, CaseIterable {
    /// Requests a new partner. The event's argument names a session, but is ignored, because otherwise clients could
    /// choose to watch anyone.
    case next
    /// Ends the chat for both partners.
    case disconnectPartners

    /// Reads the data of an event packet, `{"name":…,"args":[…]}`.
    ///
    /// - Throws: `malformed` or `unknown_type`.
    public init(event data: [UInt8]) throws(WireError) {
        guard let value = try? JSONReader.parse(data), case .object(let event) = value,
            case .string(let name)? = event["name"]
        else { throw WireError(.malformed, "An event must be a JSON object with a \"name\".") }
        switch event["args"] {
        case nil, .array?: break
        default: throw WireError(.malformed, "An event's \"args\" must be an array.")
        }
        try self.init(named: name)
    }

    /// Reads the arguments of an event packet of later versions, `["name",…]`.
    ///
    /// - Throws: `malformed` or `unknown_type`.
    public init(list data: [UInt8]) throws(WireError) {
        guard let value = try? JSONReader.parse(data), case .array(let elements) = value,
            case .string(let name)? = elements.first
        else { throw WireError(.malformed, "An event must be a JSON array that begins with a name.") }
        try self.init(named: name)
    }

    private init(named name: String) throws(WireError) {
        guard let request = RouletteTokRequest(rawValue: name) else {
            throw WireError(.unknownType, "Unknown event. Send \"next\" or \"disconnectPartners\".")
        }
        self = request
    }
}

/// How events are written for a client. RouletteTok's events are the same in every version of Socket.IO.
public enum RouletteTokFraming: Equatable, Sendable, CaseIterable {
    /// Socket.IO 0.9: `5:::{"name":…,"args":[…]}`.
    case object
    /// Socket.IO 1 and 2: `2["name",…]`, in a message of Engine.IO 3.
    case list
    /// Socket.IO 3 and 4: the same, in a message of Engine.IO 4. Errors are events, because these versions have no packet for
    /// errors after the connection.
    case listWithErrorEvents
}

/// An event for a RouletteTok client (`protocol/roulettetok.md` §1).
public enum RouletteTokEvent: Equatable, Sendable {
    /// The client's own session, with a publisher token. The client publishes there for as long as it is connected.
    case initial(Admission)
    /// A partner was found: the partner's session, with a subscriber token that ends with the match.
    case subscribe(Admission)
    /// No partner is available yet. The client waits.
    case empty
    /// The chat is over. The client leaves the partner's session and then sends `next`.
    case disconnectPartner

    /// A request was refused, with this code.
    case failed(WireError.Code)

    private var name: String {
        switch self {
        case .initial: "initial"
        case .subscribe: "subscribe"
        case .empty: "empty"
        case .disconnectPartner: "disconnectPartner"
        case .failed: "error"
        }
    }

    /// Returns the event as a Socket.IO packet.
    public func packet(_ framing: RouletteTokFraming) -> [UInt8] {
        switch (framing, self) {
        case (.object, .failed(let code)): SocketIOPacket.error(code).encode()
        case (.object, _): objectPacket
        case (.list, .failed(let code)):
            SocketIOMessage(.error, data: SocketIOMessage.quoted(code.rawValue)).encode()
        case (.list, _), (.listWithErrorEvents, _): listPacket
        }
    }

    /// The packet of Socket.IO 0.9.
    ///
    /// The iOS client of 2012 splits packets at `:::`. The packet therefore has no id and no endpoint, and no string in it
    /// contains three colons. The same client reads `args[0]` of any `args` without a check, so an event without arguments has
    /// no `args` at all.
    private var objectPacket: [UInt8] {
        var writer = JSONWriter()
        writer.beginObject()
        writer.name("name")
        writer.string(name)
        if hasArgument {
            writer.name("args")
            writer.beginArray()
            writeArgument(&writer)
            writer.endArray()
        }
        writer.endObject()
        return SocketIOPacket(.event, data: writer.bytes).encode()
    }

    private var listPacket: [UInt8] {
        var writer = JSONWriter()
        writer.beginArray()
        writer.string(name)
        writeArgument(&writer)
        writer.endArray()
        return SocketIOMessage(.event, data: writer.bytes).encode()
    }

    private var hasArgument: Bool {
        switch self {
        case .initial, .subscribe, .failed: true
        case .empty, .disconnectPartner: false
        }
    }

    private func writeArgument(_ writer: inout JSONWriter) {
        switch self {
        case .initial(let admission), .subscribe(let admission):
            writer.beginObject()
            writer.name("sessionId")
            writer.string(admission.session.text)
            writer.name("token")
            writer.string(admission.token)
            writer.endObject()
        case .failed(let code): writer.string(code.rawValue)
        case .empty, .disconnectPartner: break
        }
    }
}
