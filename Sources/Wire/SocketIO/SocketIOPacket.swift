/// One packet of Socket.IO 0.9 ("protocol 1"): `type:[id[+]]:[endpoint][:data]`.
///
/// Parsing is lenient, as the clients of 2012 require. A lone `2` is a heartbeat, and an empty data field means no data.
public struct SocketIOPacket: Equatable, Sendable {
    /// The type of a packet. Its raw value is the digit on the wire.
    public enum Kind: UInt8, Sendable, CaseIterable {
        /// 0: ends the connection.
        case disconnect
        /// 1: opens the connection or a namespace.
        case connect
        /// 2: a heartbeat, which shows that the sender is alive.
        case heartbeat
        /// 3: plain text, which RouletteTok's protocol does not use.
        case message
        /// 4: a JSON message, which RouletteTok's protocol does not use.
        case json
        /// 5: a named event with optional arguments.
        case event
        /// 6: confirms a packet that had an id.
        case acknowledgement
        /// 7: an error, with a reason and optional advice.
        case error
        /// 8: no operation, which ends a poll if there is nothing to deliver.
        case noop
    }

    /// The type of the packet: the digit before the first colon.
    public var kind: Kind
    /// The id under which the sender requests an acknowledgment, at most 2^53; nil if it requests none.
    public var id: UInt64?
    /// Whether the acknowledgment must carry data (`+` after the id), which only the handler of the packet can provide.
    public var wantsData = false
    /// The namespace. Empty for the default namespace, which is the only one that the server supports.
    public var endpoint = ""
    /// Everything after the third colon. It may contain colons.
    public var data: [UInt8]

    public init(
        _ kind: Kind, id: UInt64? = nil, wantsData: Bool = false, endpoint: String = "", data: some Sequence<UInt8> = []
    ) {
        self.kind = kind
        self.id = id
        self.wantsData = wantsData
        self.endpoint = endpoint
        self.data = Array(data)
    }

    /// The largest id. JavaScript represents integers exactly only up to 2^53.
    private static let largestID: UInt64 = 1 << 53

    /// Parses one packet.
    ///
    /// - Throws: `malformed`, with a message that describes the problem.
    public init(parsing bytes: some Sequence<UInt8>) throws(WireError) {
        let parts = Array(bytes).split(separator: UInt8(ascii: ":"), maxSplits: 3, omittingEmptySubsequences: false)
        guard let digits = parts.first, digits.count == 1, let digit = digits.first,
            let kind = Kind(rawValue: digit &- UInt8(ascii: "0"))
        else { throw Self.malformed("A packet must begin with its type, 0 to 8.") }
        guard parts.count >= 3 || (parts.count == 1 && kind == .heartbeat) else {
            throw Self.malformed("A packet must have the form type:id:endpoint:data.")
        }
        self.init(kind)
        if parts.count >= 3 {
            (id, wantsData) = try Self.readID(parts[1])
            endpoint = try Self.readEndpoint(parts[2])
        }
        if parts.count == 4 { data = Array(parts[3]) }
    }

    private static func malformed(_ message: String) -> WireError { WireError(.malformed, message) }

    private static func readID(_ text: ArraySlice<UInt8>) throws(WireError) -> (UInt64?, Bool) {
        let wantsData = text.last == UInt8(ascii: "+")
        let digits = wantsData ? text.dropLast() : text
        if digits.isEmpty, !wantsData { return (nil, false) }
        guard digits.count <= 16, digits.allSatisfy({ 0x30...0x39 ~= $0 }),
            let id = UInt64(String(decoding: digits, as: UTF8.self)), id <= largestID
        else { throw malformed("A packet's id must be a number up to 2^53.") }
        return (id, wantsData)
    }

    /// Reads the endpoint, which may contain only printable ASCII. Error packets repeat the endpoint, and answers must
    /// be ASCII, because clients count the length of an answer in different units.
    private static func readEndpoint(_ text: ArraySlice<UInt8>) throws(WireError) -> String {
        guard text.count <= Limits.name, text.allSatisfy({ 0x21...0x7E ~= $0 }) else {
            throw malformed("An endpoint must not exceed \(Limits.name) printable ASCII characters.")
        }
        return String(decoding: text, as: UTF8.self)
    }

    /// Returns the packet as bytes to send.
    public func encode() -> [UInt8] {
        var bytes = [kind.rawValue + UInt8(ascii: "0"), UInt8(ascii: ":")]
        if let id { bytes += String(id).utf8 }
        if wantsData { bytes.append(UInt8(ascii: "+")) }
        bytes.append(UInt8(ascii: ":"))
        bytes += endpoint.utf8
        if !data.isEmpty {
            bytes.append(UInt8(ascii: ":"))
            bytes += data
        }
        return bytes
    }
}

extension SocketIOPacket {
    /// Returns an error packet whose reason is this error code. Socket.IO 0.9 has numbers for some reasons, but not for these,
    /// so its clients report the code as an unknown reason.
    public static func error(_ code: WireError.Code, endpoint: String = "") -> SocketIOPacket {
        SocketIOPacket(.error, endpoint: endpoint, data: code.rawValue.utf8)
    }

    /// The error packet for an unknown connection id. Its reason is 1 (client not handshaken), and its advice is 0 (reconnect).
    public static let notHandshaken = SocketIOPacket(.error, data: "1+0".utf8)

    /// Returns the error packet for any namespace but the default one. The packet contains the namespace without its
    /// query, and its reason is 2 (unauthorized). Clients report this error as `connect_failed`.
    public static func noSuchNamespace(_ endpoint: String) -> SocketIOPacket {
        let name = endpoint.prefix { $0 != "?" }
        return SocketIOPacket(.error, endpoint: String(name), data: "2".utf8)
    }

    /// Returns the acknowledgment of the packet with this id.
    ///
    /// - Parameter isBare: true to confirm only that the packet arrived, false to add the results of the packet's handler,
    ///   which are an empty list.
    public static func acknowledgement(of id: UInt64, isBare: Bool) -> SocketIOPacket {
        SocketIOPacket(.acknowledgement, data: (isBare ? "\(id)" : "\(id)+[]").utf8)
    }
}
