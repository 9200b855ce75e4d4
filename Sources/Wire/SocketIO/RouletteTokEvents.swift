/// What a client of RouletteTok asks for.
public enum RouletteTokRequest: String, Equatable, Sendable, CaseIterable {
    /// A partner. Its argument names a session, and is ignored: believing it let people watch whom they liked.
    case next
    /// The end of this conversation, for both.
    case disconnectPartners

    /// - Parameter data: of an event packet, `{"name":…,"args":[…]}`.
    /// - Throws: `malformed` or `unknown_type`.
    public init(event data: [UInt8]) throws(WireError) {
        guard let value = try? JSONReader.parse(data), case .object(let event) = value,
            case .string(let name)? = event["name"]
        else { throw WireError(.malformed, "An event is a JSON object with a \"name\".") }
        switch event["args"] {
        case nil, .array?: break
        default: throw WireError(.malformed, "An event's \"args\" are an array.")
        }
        guard let request = RouletteTokRequest(rawValue: name) else {
            throw WireError(.unknownType, "The events are next and disconnectPartners.")
        }
        self = request
    }
}

/// What a client of RouletteTok is told.
public enum RouletteTokEvent: Equatable, Sendable {
    /// The client's own session, to publish in.
    case initial(Admission)
    /// A partner was found: the partner's session.
    case subscribe(Admission)
    /// Nobody is there yet.
    case empty
    /// The conversation is over.
    case disconnectPartner

    /// The iOS client of 2012 splits at `:::`, so there is neither id nor endpoint, and no string may hold three colons; it
    /// takes `args[0]` without looking, so an event without arguments has no `args` at all.
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
