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
        guard let request = RouletteTokRequest(rawValue: name) else {
            throw WireError(.unknownType, "Unknown event. Send \"next\" or \"disconnectPartners\".")
        }
        self = request
    }
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

    /// The event, encoded as a Socket.IO packet.
    ///
    /// The iOS client of 2012 splits packets at `:::`. The packet therefore has no id and no endpoint, and no string in it
    /// contains three colons. The same client reads `args[0]` of any `args` without a check, so an event without arguments has
    /// no `args` at all.
    public var packet: [UInt8] {
        var writer = JSONWriter()
        writer.beginObject()
        writer.name("name")
        switch self {
        case .initial(let admission): Self.write("initial", admission, &writer)
        case .subscribe(let admission): Self.write("subscribe", admission, &writer)
        case .empty: writer.string("empty")
        case .disconnectPartner: writer.string("disconnectPartner")
        }
        writer.endObject()
        return SocketIOPacket(.event, data: writer.bytes).encode()
    }

    private static func write(_ name: String, _ admission: Admission, _ writer: inout JSONWriter) {
        writer.string(name)
        writer.name("args")
        writer.beginArray()
        writer.beginObject()
        writer.name("sessionId")
        writer.string(admission.session.text)
        writer.name("token")
        writer.string(admission.token)
        writer.endObject()
        writer.endArray()
    }
}
