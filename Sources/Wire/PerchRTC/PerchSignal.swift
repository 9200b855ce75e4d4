/// A message from one end of a peer connection to the other, in PerchRTC's protocol (`protocol/perchrtc.md` §3).
public struct PerchSignal: Hashable, Sendable {
    /// The kind of the message, and its data.
    public enum Content: Hashable, Sendable {
        /// Proposes a connection, or a change to it, in SDP.
        case offer(String)
        /// Accepts an offer, in SDP.
        case answer(String)
        /// An ICE candidate of the sender.
        case candidate(PerchCandidate)
        /// The sender closed or refused the peer connection.
        case bye
    }

    /// The ID of the peer connection, chosen by the end that offers: 1 to 64 bytes.
    public var connection: String
    /// The content of the message.
    public var content: Content

    public init(connection: String, _ content: Content) { (self.connection, self.content) = (connection, content) }

    /// The message's name on the wire.
    var name: String {
        switch content {
        case .offer: "offer"
        case .answer: "answer"
        case .candidate: "ice"
        case .bye: "bye"
        }
    }
}

/// An ICE candidate.
public struct PerchCandidate: Hashable, Sendable {
    /// The number of the media section, from 0.
    public var label: Int
    /// The `mid` of the media section; may be empty.
    public var mid: String
    /// The candidate as an SDP line, without `a=`.
    public var candidate: String

    public init(label: Int, mid: String, candidate: String) {
        (self.label, self.mid, self.candidate) = (label, mid, candidate)
    }
}

extension PerchSignal {
    /// Reads a message by its name and payload.
    ///
    /// - Throws: `malformed` or `unknown_type`.
    init(name: String, _ data: JSONObject) throws(WireError) {
        connection = try data.text("connectionId", 1...Limits.negotiationID)
        switch name {
        case "offer": content = .offer(try Self.description("offer", data))
        case "answer": content = .answer(try Self.description("answer", data))
        case "ice": content = .candidate(try PerchCandidate(try data.nested("iceCandidate")))
        case "bye": content = .bye
        default: throw WireError(.unknownType, "Unknown message. Send \"offer\", \"answer\", \"ice\" or \"bye\".")
        }
    }

    private static func description(_ name: String, _ data: JSONObject) throws(WireError) -> String {
        let description = try data.nested(name)
        guard try description.text("type", 1...16) == name else {
            throw WireError(.malformed, "The \"type\" in \"\(name)\" must be \"\(name)\".")
        }
        return try description.text("sdp", 1...Limits.description)
    }

    /// Writes the payload as an object.
    func write(_ writer: inout JSONWriter) {
        writer.beginObject()
        writer.name("connectionId")
        writer.string(connection)
        switch content {
        case .offer(let sdp), .answer(let sdp):
            writer.name(name)
            writer.beginObject()
            writer.name("type")
            writer.string(name)
            writer.name("sdp")
            writer.string(sdp)
            writer.endObject()
        case .candidate(let candidate):
            writer.name("iceCandidate")
            candidate.write(&writer)
        case .bye: break
        }
        writer.endObject()
    }
}

extension PerchCandidate {
    /// Maximum size of a candidate in bytes. The longest in practice, with a host name and a relay's address, have
    /// about 200.
    package static let maxSize = 2048
    /// The highest accepted number of a media section. PerchRTC's descriptions have only three sections.
    package static let maxLabel = 255

    fileprivate init(_ object: JSONObject) throws(WireError) {
        guard case .integer(let number) = object["label"] ?? .integer(0), let label = Int(exactly: number),
            (0...Self.maxLabel).contains(label)
        else { throw WireError(.malformed, "\"label\" must be an integer from 0 to \(Self.maxLabel).") }
        self.label = label
        mid = object["id"] == nil ? "" : try object.text("id", 0...Limits.mid)
        candidate = try object.text("candidate", 0...Self.maxSize)
    }

    fileprivate func write(_ writer: inout JSONWriter) {
        writer.beginObject()
        writer.name("label")
        writer.integer(label)
        writer.name("id")
        writer.string(mid)
        writer.name("candidate")
        writer.string(candidate)
        writer.endObject()
    }
}

extension JSONObject {
    /// Returns a required string whose number of UTF-8 bytes is in `range`.
    func text(_ name: String, _ range: ClosedRange<Int>) throws(WireError) -> String {
        guard case .string(let text)? = self[name], range.contains(text.utf8.count) else {
            throw WireError(
                .malformed, "\"\(name)\" must be a string of \(range.lowerBound) to \(range.upperBound) bytes.")
        }
        return text
    }

    /// Returns a required object.
    func nested(_ name: String) throws(WireError) -> JSONObject {
        guard case .object(let object)? = self[name] else {
            throw WireError(.malformed, "\"\(name)\" must be an object.")
        }
        return object
    }
}
