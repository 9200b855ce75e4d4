/// The version of Engine.IO, the transport of Socket.IO since 1.0. It is the parameter `EIO` of a request.
public enum EngineIOVersion: UInt8, Sendable, CaseIterable {
    /// Used by Socket.IO 1 and 2. Clients send the pings.
    case three = 3
    /// Used by Socket.IO 3 and 4. The server sends the pings.
    case four = 4
}

/// One packet of Engine.IO: a digit and its data, in a WebSocket frame or in the body of a polling request.
public struct EngineIOPacket: Equatable, Sendable {
    /// The type of a packet. Its raw value is the digit on the wire.
    public enum Kind: UInt8, Sendable, CaseIterable {
        /// 0: the server's first packet, with the settings of the connection.
        case open
        /// 1: ends the connection.
        case close
        /// 2: requests a pong with the same data.
        case ping
        /// 3: the answer to a ping.
        case pong
        /// 4: a message of Socket.IO.
        case message
        /// 5: the client switches to the WebSocket on which it sends this.
        case upgrade
        /// 6: no operation, which ends a poll if there is nothing to deliver.
        case noop
    }

    /// The type of the packet.
    public var kind: Kind
    /// What follows the type. Text is valid UTF-8.
    public var data: [UInt8]
    /// Whether the data is binary. Only messages can be.
    public var isBinary = false

    public init(_ kind: Kind, data: some Sequence<UInt8> = []) {
        self.kind = kind
        self.data = Array(data)
    }

    /// Parses a packet from text, in which binary data is base64 after a `b`.
    ///
    /// - Parameter bytes: valid UTF-8.
    /// - Throws: `malformed`, with a message that describes the problem.
    public init(parsing bytes: some Sequence<UInt8>, _ version: EngineIOVersion) throws(WireError) {
        var rest = Array(bytes)[...]
        let isBinary = rest.first == UInt8(ascii: "b")
        if isBinary { rest.removeFirst() }
        var kind = Kind.message
        // In version 4, only messages can be binary, so their type is omitted.
        if !isBinary || version == .three {
            guard let digit = rest.popFirst(), let found = Kind(rawValue: digit &- UInt8(ascii: "0")) else {
                throw Self.malformed("A packet must begin with its type, 0 to 6.")
            }
            kind = found
        }
        guard isBinary else {
            self.init(kind, data: rest)
            return
        }
        guard kind == .message, let data = Self.decodeBase64(rest) else {
            throw Self.malformed("Binary data must be a message in base64.")
        }
        self.init(.message, data: data)
        self.isBinary = true
    }

    /// Parses a packet from a binary frame.
    ///
    /// - Throws: `malformed`, with a message that describes the problem.
    public init(binary bytes: some Sequence<UInt8>, _ version: EngineIOVersion) throws(WireError) {
        var rest = Array(bytes)[...]
        if version == .three, rest.popFirst() != Kind.message.rawValue {
            throw Self.malformed("Binary data must be a message, whose first byte is 4.")
        }
        self.init(.message, data: rest)
        isBinary = true
    }

    static func malformed(_ message: String) -> WireError { WireError(.malformed, message) }

    /// Returns the packet as text.
    public func encode(_ version: EngineIOVersion) -> [UInt8] {
        let digit = kind.rawValue + UInt8(ascii: "0")
        guard isBinary else { return [digit] + data }
        return (version == .three ? Array("b4".utf8) : Array("b".utf8)) + Self.encodeBase64(data)
    }

    /// Decodes base64 of the standard alphabet, with or without padding.
    private static func decodeBase64(_ text: ArraySlice<UInt8>) -> [UInt8]? {
        guard !text.contains(where: { $0 == UInt8(ascii: "-") || $0 == UInt8(ascii: "_") }) else { return nil }
        return Base64URL.decode(
            orPadded: text.map { byte in
                switch byte {
                case UInt8(ascii: "+"): UInt8(ascii: "-")
                case UInt8(ascii: "/"): UInt8(ascii: "_")
                default: byte
                }
            })
    }

    private static func encodeBase64(_ data: [UInt8]) -> [UInt8] {
        var text = Base64URL.encode(data).utf8.map { byte in
            switch byte {
            case UInt8(ascii: "-"): UInt8(ascii: "+")
            case UInt8(ascii: "_"): UInt8(ascii: "/")
            default: byte
            }
        }
        while !text.count.isMultiple(of: 4) { text.append(UInt8(ascii: "=")) }
        return text
    }
}
