/// What a client offers in the first message of a TLS connection (RFC 8446 §4.1.2): its protocols (ALPN, RFC 7301) and the
/// name of the server (SNI, RFC 6066 §3). All other fields are skipped.
struct ClientHello: Equatable, Sendable {
    /// The protocol of a connection that only verifies a domain (RFC 8737 §6.2).
    static let challengeProtocol = "acme-tls/1"

    /// The protocols in the client's order. Empty if it offers none.
    private(set) var protocols: [[UInt8]] = []
    /// The name of the server in lower case; nil if there is none.
    private(set) var serverName: String?

    /// The domain that an authority verifies with this connection (RFC 8737 §3); nil for all other connections.
    var challengeDomain: String? { protocols == [Array(Self.challengeProtocol.utf8)] ? serverName : nil }

    /// Parses the message without its type and length. Returns nil if it is malformed.
    init?(_ message: ArraySlice<UInt8>) {
        var fields = TLSFields(message)
        // The version and the random number, the session ID, the cipher suites, and the compression methods.
        guard fields.bytes(34) != nil, fields.vector(lengthBytes: 1) != nil, fields.vector(lengthBytes: 2) != nil,
            fields.vector(lengthBytes: 1) != nil
        else { return nil }
        // TLS 1.2 allows a message without extensions.
        guard !fields.isEmpty else { return }
        guard let list = fields.vector(lengthBytes: 2), fields.isEmpty else { return nil }
        var extensions = TLSFields(list)
        while !extensions.isEmpty {
            guard let type = extensions.number(2), let value = extensions.vector(lengthBytes: 2), read(type, value)
            else { return nil }
        }
    }

    /// Reads an extension. Returns false if it is malformed, or if it was there before.
    private mutating func read(_ type: Int, _ value: ArraySlice<UInt8>) -> Bool {
        switch type {
        case 0:
            guard serverName == nil else { return false }
            serverName = Self.serverName(value)
            return serverName != nil
        case 16:
            guard protocols.isEmpty else { return false }
            protocols = Self.protocols(value) ?? []
            return !protocols.isEmpty
        default: return true
        }
    }

    /// The only type of name is a host name (0), of which there may be one.
    private static func serverName(_ value: ArraySlice<UInt8>) -> String? {
        var fields = TLSFields(value)
        guard let list = fields.vector(lengthBytes: 2), fields.isEmpty else { return nil }
        var names = TLSFields(list)
        guard names.number(1) == 0, let name = names.vector(lengthBytes: 2), names.isEmpty, !name.isEmpty,
            name.allSatisfy({ (0x21...0x7e).contains($0) })
        else { return nil }
        return String(decoding: name, as: UTF8.self).lowercased()
    }

    private static func protocols(_ value: ArraySlice<UInt8>) -> [[UInt8]]? {
        var fields = TLSFields(value)
        guard let list = fields.vector(lengthBytes: 2), fields.isEmpty else { return nil }
        var names = TLSFields(list)
        var found: [[UInt8]] = []
        while !names.isEmpty {
            guard let name = names.vector(lengthBytes: 1), !name.isEmpty else { return nil }
            found.append(Array(name))
        }
        return found
    }
}

/// Collects the ClientHello at the start of a connection. It may be split over several records (RFC 8446 §5.1), and arrive in
/// any pieces.
///
/// Takes each byte once, so that a client that sends single bytes costs no more than others. Holds at most ``maxSize`` bytes.
struct ClientHelloReader {
    /// Whether the message is complete.
    enum Progress: Equatable, Sendable {
        /// More bytes are needed.
        case incomplete
        /// The message is complete.
        case complete(ClientHello)
        /// This is not the start of a TLS connection, or the message is malformed or too long.
        case unreadable
    }

    /// Maximum size of the message with the headers of its records, in bytes. BoringSSL, which NIOSSL uses, accepts no longer
    /// message either. Those of authorities and browsers have less than 2 KiB.
    static let maxSize = 16 << 10
    /// Maximum size of a record's content in bytes (RFC 8446 §5.1).
    private static let maxRecord = 1 << 14

    /// What is known after the bytes so far.
    private(set) var progress = Progress.incomplete
    private var size = 0
    /// The part of the current record's header that has arrived: type, version (two bytes), length (two bytes).
    private var header: [UInt8] = []
    /// How many bytes of the current record are missing.
    private var missing = 0
    /// The message so far: type, length (three bytes), content.
    private var message: [UInt8] = []

    /// Reads the next bytes of the connection. Ignores those after the end of the message.
    mutating func read(_ bytes: some Sequence<UInt8>) -> Progress {
        for byte in bytes {
            guard progress == .incomplete else { break }
            size += 1
            if size > Self.maxSize {
                progress = .unreadable
            } else if missing == 0 {
                takeHeader(byte)
            } else {
                takeContent(byte)
            }
        }
        return progress
    }

    private mutating func takeHeader(_ byte: UInt8) {
        header.append(byte)
        switch header.count {
        // A handshake message, in a version whose major number is that of SSL 3.0 and of all versions of TLS.
        case 1: if byte != 22 { progress = .unreadable }
        case 2: if byte != 3 { progress = .unreadable }
        case 5:
            missing = Int(header[3]) << 8 | Int(header[4])
            header = []
            // Handshake messages must not have empty records.
            if missing == 0 || missing > Self.maxRecord { progress = .unreadable }
        default: break
        }
    }

    private mutating func takeContent(_ byte: UInt8) {
        missing -= 1
        message.append(byte)
        if message.count == 1, byte != 1 { return progress = .unreadable }
        guard message.count >= 4 else { return }
        let length = Int(message[1]) << 16 | Int(message[2]) << 8 | Int(message[3])
        guard length <= Self.maxSize else { return progress = .unreadable }
        guard message.count == 4 + length else { return }
        progress = ClientHello(message[4...]).map(Progress.complete) ?? .unreadable
    }
}

/// Reads the fields of a TLS message in their order (RFC 8446 §3). Returns nil for a field whose bytes are missing.
private struct TLSFields {
    private var rest: ArraySlice<UInt8>

    init(_ bytes: ArraySlice<UInt8>) { rest = bytes }

    var isEmpty: Bool { rest.isEmpty }

    mutating func bytes(_ count: Int) -> ArraySlice<UInt8>? {
        guard count <= rest.count else { return nil }
        defer { rest = rest.dropFirst(count) }
        return rest.prefix(count)
    }

    /// Reads a number of this many bytes, at most 3.
    mutating func number(_ size: Int) -> Int? { bytes(size)?.reduce(0) { $0 << 8 | Int($1) } }

    /// Reads a vector, which has its length before it.
    mutating func vector(lengthBytes: Int) -> ArraySlice<UInt8>? {
        guard let count = number(lengthBytes) else { return nil }
        return bytes(count)
    }
}
