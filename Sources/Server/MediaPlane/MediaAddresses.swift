import RTC

/// Where media is sent to and received: what clients are told, and what the sockets are bound to.
struct MediaAddresses: Equatable, Sendable {
    /// In descriptions, the best first.
    var advertised: [IPAddress]
    /// What to bind, in the same order; one wildcard where the advertised address is not this machine's.
    var bound: [IPAddress]
    /// What whoever starts the server should know.
    var notes: [String] = []

    /// Each is a socket, and a line in every description.
    static let most = 4

    /// - Parameters:
    ///   - configured: `media.address`.
    ///   - local: this machine's addresses, likeliest to be reached first.
    ///   - publicHost: of `publicURL`, to notice that people elsewhere will not reach what is advertised.
    init(configured: IPAddress?, local: [IPAddress], publicHost: String?, port: Int) throws(MediaPlaneError) {
        guard let configured else {
            self.init(local: local, publicHost: publicHost, port: port)
            return
        }
        try self.init(configured, local: local, port: port)
    }

    private init(local: [IPAddress], publicHost: String?, port: Int) {
        let usable = Array(local.filter { !$0.isLoopback && !$0.isLinkLocal }.prefix(Self.most))
        advertised = usable.isEmpty ? [IPAddress.loopback] : usable
        bound = advertised
        if usable.isEmpty {
            notes.append("This machine has no network address, so media works in browsers on this machine alone.")
        } else if let publicHost, Self.isPublic(publicHost), usable.allSatisfy(\.isPrivate) {
            notes.append(
                "Browsers elsewhere cannot reach \(usable[0]), which media is announced at. Set media.address to the address "
                    + "that \(publicHost) has, and let UDP and TCP \(port) through to this machine."
            )
        }
    }

    private init(_ configured: IPAddress, local: [IPAddress], port: Int) throws(MediaPlaneError) {
        guard !configured.isUnspecified, !configured.isMulticast else {
            throw MediaPlaneError(
                "media.address is \(configured), which nobody can send to. Give the address that browsers reach this "
                    + "machine at, or leave it out."
            )
        }
        advertised = [configured]
        if local.contains(configured) || configured.isLoopback {
            bound = [configured]
        } else {
            bound = [configured.isIPv4 ? .anyIPv4 : .anyIPv6]
            notes.append(
                "Media is announced at \(configured), which is not an address of this machine: UDP and TCP \(port) have to be "
                    + "forwarded to it."
            )
        }
    }

    private static func isPublic(_ host: String) -> Bool {
        if let address = IPAddress(host) { return !address.isPrivate && !address.isLoopback && !address.isLinkLocal }
        return host != "localhost" && host.contains(".") && !host.hasSuffix(".local") && !host.hasSuffix(".lan")
    }
}

extension IPAddress {
    static let anyIPv4 = IPAddress(bytes: [0, 0, 0, 0] as [UInt8]).unsafelyUnwrapped
    static let anyIPv6 = IPAddress(bytes: [UInt8](repeating: 0, count: 16)).unsafelyUnwrapped
    static let loopback = IPAddress(bytes: [127, 0, 0, 1] as [UInt8]).unsafelyUnwrapped

    var isUnspecified: Bool { bytes.allSatisfy { $0 == 0 } }
    var isMulticast: Bool { isIPv4 ? bytes[0] & 0xf0 == 0xe0 : bytes[0] == 0xff }

    /// The same address with a port.
    func transportAddress(port: UInt16) -> TransportAddress {
        func word(_ part: ArraySlice<UInt8>) -> UInt64 { part.reduce(0) { $0 << 8 | UInt64($1) } }
        guard !isIPv4 else { return TransportAddress(v4: UInt32(truncatingIfNeeded: word(bytes[...])), port: port) }
        return TransportAddress(high: word(bytes[..<8]), low: word(bytes[8...]), port: port)
    }
}
