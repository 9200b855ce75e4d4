/// An ICE candidate (RFC 8839 §5.1). Host names (`….local`) and active TCP candidates are not supported.
public struct Candidate: Hashable, Sendable {
    /// The transport protocol of a candidate.
    public enum Transport: Hashable, Sendable {
        case udp
        /// A passive TCP candidate, which accepts connections (RFC 6544 §4.5).
        case tcpPassive
    }
    /// The type of a candidate (`typ` in RFC 8839 §5.1).
    public enum Kind: String, Hashable, Sendable {
        case host, srflx, prflx, relay
    }

    public var foundation: String
    public var component: UInt16
    public var transport: Transport
    public var priority: UInt32
    public var address: TransportAddress
    public var kind: Kind

    public init(
        foundation: String, component: UInt16 = 1, transport: Transport, priority: UInt32, address: TransportAddress,
        kind: Kind = .host
    ) {
        (self.foundation, self.component, self.transport) = (foundation, component, transport)
        (self.priority, self.address, self.kind) = (priority, address, kind)
    }
}

extension Candidate {
    /// Parses the text after `a=candidate:`. Returns nil for a well-formed candidate that is not supported.
    init?(_ line: inout SDPLine) throws(SDPError) {
        let foundation = try line.token("The foundation of a candidate", upTo: 32)
        let component = try line.number(UInt16.self, "The component of a candidate")
        let transport = line.word().text.lowercased()
        let priority = try line.number(UInt32.self, "The priority of a candidate")
        let host = line.word()
        let port = try line.number(UInt16.self, "The port of a candidate")
        guard line.word().text == "typ" else { throw line.malformed("A candidate must have a type (typ).") }
        let kind = Kind(rawValue: line.word().text)
        var isPassive = false
        while !line.isAtEnd {
            let (name, value) = (line.word(), line.word())
            if name.text == "tcptype" { isPassive = value.text == "passive" }
        }
        guard let kind, transport == "udp" || transport == "tcp" && isPassive,
            let address = TransportAddress(host: host, port: port)
        else { return nil }
        self.init(
            foundation: foundation, component: component, transport: transport == "udp" ? .udp : .tcpPassive,
            priority: priority, address: address, kind: kind)
    }

    /// The text after `a=candidate:`.
    var line: String {
        let name = transport == .udp ? "udp" : "tcp"
        let end = transport == .udp ? "" : " tcptype passive"
        // RFC 8839 §5.1 requires a related address for all candidates except host candidates, and allows any value.
        let related = kind == .host ? "" : " raddr 0.0.0.0 rport 0"
        return "\(foundation) \(component) \(name) \(priority) \(address.host) \(address.port) typ \(kind.rawValue)"
            + related + end
    }
}

extension TransportAddress {
    /// Parses an IP address.
    ///
    /// - Parameter host: an IPv4 address in dotted notation, or an IPv6 address (RFC 4291 §2.2) without a zone. The result is
    ///   nil for host names.
    init?(host: SDPBytes, port: UInt16) {
        if let v4 = Self.dotted(host) {
            self.init(v4: v4, port: port)
        } else if let words = Self.words(host) {
            let high = words[..<4].reduce(0) { $0 << 16 | UInt64($1) }
            let low = words[4...].reduce(0) { $0 << 16 | UInt64($1) }
            self.init(high: high, low: low, port: port)
        } else {
            return nil
        }
    }

    private static func dotted(_ host: SDPBytes) -> UInt32? {
        let parts = host.split(UInt8(ascii: "."), most: 5)
        guard parts.count == 4 else { return nil }
        var address: UInt32 = 0
        for part in parts {
            guard let byte = part.decimal(UInt8.self) else { return nil }
            address = address << 8 | UInt32(byte)
        }
        return address
    }

    /// Returns the eight words of an IPv6 address; nil if `host` is not one.
    private static func words(_ host: SDPBytes) -> [UInt16]? {
        // Allow up to eight words, plus two empty strings from `::` at one end.
        var parts = host.split(UInt8(ascii: ":"), most: 10)
        guard parts.count >= 3 else { return nil }
        // At one end, `::` splits into two empty strings. Remove one of them. The other one represents the zeros.
        if parts[0].isEmpty {
            guard parts[1].isEmpty else { return nil }
            parts.removeFirst()
        }
        if parts.count > 1, parts[parts.count - 1].isEmpty {
            guard parts[parts.count - 2].isEmpty else { return nil }
            parts.removeLast()
        }
        var (words, zerosAt): ([UInt16], Int?) = ([], nil)
        for (index, part) in parts.enumerated() {
            if part.isEmpty {
                guard zerosAt == nil else { return nil }
                zerosAt = words.count
            } else if index == parts.count - 1, let v4 = dotted(part) {
                words += [UInt16(truncatingIfNeeded: v4 >> 16), UInt16(truncatingIfNeeded: v4)]
            } else {
                guard let word = part.hexadecimal else { return nil }
                words.append(word)
            }
        }
        guard let zerosAt else { return words.count == 8 ? words : nil }
        guard words.count < 8 else { return nil }
        words.insert(contentsOf: repeatElement(0, count: 8 - words.count), at: zerosAt)
        return words
    }
}
