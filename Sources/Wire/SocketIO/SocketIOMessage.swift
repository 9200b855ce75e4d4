/// One packet of Socket.IO 1 to 4, in a message of Engine.IO:
/// `type[attachments-][namespace,][id][JSON]`. Socket.IO 0.9 has another format, ``SocketIOPacket``.
///
/// Revisions 4 (Socket.IO 1 and 2) and 5 (Socket.IO 3 and 4) of the protocol have the same format and differ only in
/// when the packets are sent.
public struct SocketIOMessage: Equatable, Sendable {
    /// The type of a packet. Its raw value is the digit on the wire.
    public enum Kind: UInt8, Sendable, CaseIterable {
        /// 0: opens a namespace. In revision 5 the client requests it, with an optional object.
        case connect
        /// 1: closes a namespace.
        case disconnect
        /// 2: an event, a JSON array whose first element is the name.
        case event
        /// 3: the answer to an event with an id, a JSON array.
        case acknowledgement
        /// 4: a namespace cannot be opened, or (revision 4) any error.
        case error
        /// 5: an event with binary attachments, which follow in separate messages.
        case binaryEvent
        /// 6: an acknowledgment with binary attachments.
        case binaryAcknowledgement
    }

    /// The maximum number of attachments of a packet. RouletteTok's events need none.
    public static let maxAttachments = 16
    /// The largest id. JavaScript represents integers exactly only up to 2^53.
    private static let largestID: UInt64 = 1 << 53

    /// The type of the packet: the first digit.
    public var kind: Kind
    /// The number of binary messages that follow and belong to this packet. Always 0 unless the type is binary.
    public var attachments = 0
    /// The namespace without its query, which begins with a slash. The server supports only the default one, `/`.
    public var namespace = "/"
    /// The id under which the sender requests an acknowledgment, or that is acknowledged; nil if there is none.
    public var id: UInt64?
    /// The JSON at the end, which is not parsed yet. Empty if there is none.
    public var data: [UInt8]

    public init(_ kind: Kind, namespace: String = "/", id: UInt64? = nil, data: some Sequence<UInt8> = []) {
        self.kind = kind
        self.namespace = namespace
        self.id = id
        self.data = Array(data)
    }

    /// Parses the text of a message.
    ///
    /// - Throws: `malformed`, with a message that describes the problem.
    public init(parsing bytes: some Sequence<UInt8>) throws(WireError) {
        var rest = Array(bytes)[...]
        guard let digit = rest.popFirst(), let kind = Kind(rawValue: digit &- UInt8(ascii: "0")) else {
            throw Self.malformed("A packet must begin with its type, 0 to 6.")
        }
        self.init(kind)
        if kind == .binaryEvent || kind == .binaryAcknowledgement { attachments = try Self.readAttachments(&rest) }
        if rest.first == UInt8(ascii: "/") { namespace = try Self.readNamespace(&rest) }
        id = try Self.readID(&rest)
        data = Array(rest)
    }

    private static func malformed(_ message: String) -> WireError { WireError(.malformed, message) }

    private static func digits(_ rest: inout ArraySlice<UInt8>) -> ArraySlice<UInt8> {
        let digits = rest.prefix { 0x30...0x39 ~= $0 }
        rest = rest.dropFirst(digits.count)
        return digits
    }

    private static func readAttachments(_ rest: inout ArraySlice<UInt8>) throws(WireError) -> Int {
        let digits = digits(&rest)
        guard (1...2).contains(digits.count), let count = Int(String(decoding: digits, as: UTF8.self)),
            (1...maxAttachments).contains(count), rest.popFirst() == UInt8(ascii: "-")
        else { throw malformed("A binary packet must announce 1 to \(maxAttachments) attachments.") }
        return count
    }

    private static func readNamespace(_ rest: inout ArraySlice<UInt8>) throws(WireError) -> String {
        let text = rest.prefix { $0 != UInt8(ascii: ",") }
        guard text.count <= Limits.name, text.allSatisfy({ 0x21...0x7E ~= $0 && $0 != UInt8(ascii: "\"") }) else {
            throw malformed("A namespace must not exceed \(Limits.name) printable ASCII characters.")
        }
        rest = rest.dropFirst(text.count + 1)
        return String(decoding: text.prefix { $0 != UInt8(ascii: "?") }, as: UTF8.self)
    }

    private static func readID(_ rest: inout ArraySlice<UInt8>) throws(WireError) -> UInt64? {
        let digits = digits(&rest)
        if digits.isEmpty { return nil }
        guard digits.count <= 16, let id = UInt64(String(decoding: digits, as: UTF8.self)), id <= largestID else {
            throw malformed("A packet's id must be a number up to 2^53.")
        }
        return id
    }

    /// Returns the packet as the text of a message.
    public func encode() -> [UInt8] {
        var bytes = [kind.rawValue + UInt8(ascii: "0")]
        if attachments > 0 { bytes += "\(attachments)-".utf8 }
        if namespace != "/" { bytes += "\(namespace),".utf8 }
        if let id { bytes += String(id).utf8 }
        bytes += data
        return bytes
    }
}

extension SocketIOMessage {
    /// Returns the text as a JSON string.
    static func quoted(_ text: String) -> [UInt8] {
        var writer = JSONWriter()
        writer.string(text)
        return writer.bytes
    }

    /// Returns the answer to a client that requests a namespace that does not exist.
    ///
    /// - Parameter framing: how the client's version reports errors.
    public static func noSuchNamespace(_ name: String, _ framing: RouletteTokFraming) -> SocketIOMessage {
        let text = "Invalid namespace"
        let data = framing == .list ? quoted(text) : Array("{\"message\":\"\(text)\"}".utf8)
        return SocketIOMessage(.error, namespace: name, data: data)
    }

    /// Returns the acknowledgment of the event with this id. The handlers of RouletteTok's events return nothing.
    public static func acknowledgement(of id: UInt64) -> SocketIOMessage {
        SocketIOMessage(.acknowledgement, id: id, data: "[]".utf8)
    }
}
