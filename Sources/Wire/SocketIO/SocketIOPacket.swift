/// One packet of Socket.IO 0.9 ("protocol 1"): `type:[id[+]]:[endpoint][:data]`.
///
/// Reading is as lenient as the clients of 2012 need: a bare `2` is a heartbeat, and an empty fourth part is no data.
public struct SocketIOPacket: Equatable, Sendable {
    public enum Kind: UInt8, Sendable, CaseIterable {
        case disconnect, connect, heartbeat, message, json, event, acknowledgement, error, noop
    }

    public var kind: Kind
    /// Asks for an acknowledgement.
    public var id: UInt64?
    /// The acknowledgement is to carry data (`+`), so it is the handler's to give.
    public var wantsData = false
    /// The namespace: empty for the only one there is here.
    public var endpoint = ""
    /// Everything after the third colon, which may hold colons itself.
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

    /// JavaScript counts to 2^53.
    private static let largestID: UInt64 = 1 << 53

    /// - Throws: `malformed`, with a sentence.
    public init(parsing bytes: some Sequence<UInt8>) throws(WireError) {
        let parts = Array(bytes).split(separator: UInt8(ascii: ":"), maxSplits: 3, omittingEmptySubsequences: false)
        guard let digits = parts.first, digits.count == 1, let digit = digits.first,
            let kind = Kind(rawValue: digit &- UInt8(ascii: "0"))
        else { throw Self.malformed("A packet begins with its type, 0 to 8.") }
        guard parts.count >= 3 || (parts.count == 1 && kind == .heartbeat) else {
            throw Self.malformed("A packet is type:id:endpoint:data.")
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
        else { throw malformed("A packet's id is a number.") }
        return (id, wantsData)
    }

    /// Printable ASCII: it is answered to, and answers must not need counting in anybody's characters.
    private static func readEndpoint(_ text: ArraySlice<UInt8>) throws(WireError) -> String {
        guard text.count <= Limits.name, text.allSatisfy({ 0x21...0x7E ~= $0 }) else {
            throw malformed("An endpoint is at most \(Limits.name) printable characters of ASCII.")
        }
        return String(decoding: text, as: UTF8.self)
    }

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
    /// Why a packet was refused. The reasons that 0.9 numbers have their number; for others the text is our code, which
    /// its clients show as an unknown reason.
    public static func error(_ code: WireError.Code, endpoint: String = "") -> SocketIOPacket {
        SocketIOPacket(.error, endpoint: endpoint, data: code.rawValue.utf8)
    }

    /// Reason 1, client not handshaken; advice 0, reconnect.
    public static let notHandshaken = SocketIOPacket(.error, data: "1+0".utf8)

    /// There is one namespace. Reason 2, unauthorized, which clients report as `connect_failed`.
    public static func noSuchNamespace(_ endpoint: String) -> SocketIOPacket {
        let name = endpoint.prefix { $0 != "?" }
        return SocketIOPacket(.error, endpoint: String(name), data: "2".utf8)
    }

    /// - Parameter isBare: says only that the packet arrived; otherwise the handler's (empty) list of results goes along.
    public static func acknowledgement(of id: UInt64, isBare: Bool) -> SocketIOPacket {
        SocketIOPacket(.acknowledgement, data: (isBare ? "\(id)" : "\(id)+[]").utf8)
    }
}
