import RTC

/// The addresses for media: those advertised to clients, and those that the sockets bind to.
struct MediaAddresses: Equatable, Sendable {
    /// Addresses in the server's session descriptions, best first.
    var advertised: [IPAddress]
    /// Addresses to bind, in the order of `advertised`. If the advertised address is not local, a single wildcard
    /// address.
    var bound: [IPAddress]
    /// This machine's addresses of the same family, if a wildcard address is bound. Each gets a separate UDP socket, so
    /// that on machines with several addresses, answers come from the address to which the client sent. A wildcard
    /// socket would use the address of the return route, and the client would drop the answers.
    var answering: [IPAddress] = []
    /// Warnings for the operator.
    var notes: [String] = []

    /// Maximum number of addresses. Each one needs sockets and lines in every description.
    static let maxAddresses = 4
    /// Maximum number of addresses in `answering`. Each one needs a socket.
    static let maxAnswering = 16

    /// Chooses the addresses: the configured one, or else the local ones.
    ///
    /// - Parameters:
    ///   - configured: The setting `media.address`.
    ///   - local: This machine's addresses, the most likely reachable first.
    ///   - publicHost: The host of `publicURL`. If it is public but all local addresses are private, a warning is added.
    ///   - port: The setting `media.port`.
    ///   - loops: The number of media loops, each with its own UDP port.
    init(
        configured: IPAddress?, local: [IPAddress], publicHost: String?, port: Int, loops: Int = 1
    ) throws(MediaPlaneError) {
        let ports = MediaPorts(first: port, loops: loops)
        guard let configured else {
            self.init(local: local, publicHost: publicHost, ports)
            return
        }
        try self.init(configured, local: local, ports)
    }

    private init(local: [IPAddress], publicHost: String?, _ ports: MediaPorts) {
        let usable = Array(local.filter { !$0.isLoopback && !$0.isLinkLocal }.prefix(Self.maxAddresses))
        advertised = usable.isEmpty ? [IPAddress.loopback] : usable
        bound = advertised
        if usable.isEmpty {
            notes.append("This machine has no network address, so media works only in browsers on this machine.")
        } else if let publicHost, Self.isPublic(publicHost), usable.allSatisfy(\.isPrivate) {
            notes.append(
                "Media is advertised at \(usable[0]), which browsers on the internet cannot reach. Set media.address "
                    + "to the address of \(publicHost), and forward \(ports) to this machine."
            )
        }
    }

    private init(_ configured: IPAddress, local: [IPAddress], _ ports: MediaPorts) throws(MediaPlaneError) {
        guard !configured.isUnspecified, !configured.isMulticast else {
            throw MediaPlaneError(
                "media.address is \(configured), which is not a unicast address. Set it to the address at which "
                    + "browsers reach this machine, or remove it."
            )
        }
        advertised = [configured]
        if local.contains(configured) || configured.isLoopback {
            bound = [configured]
        } else {
            bound = [configured.isIPv4 ? .anyIPv4 : .anyIPv6]
            // Skip link-local addresses: a socket needs a scope to bind to one.
            let family = local.filter { $0.isIPv4 == configured.isIPv4 && !$0.isLinkLocal }
            answering = Array(family.prefix(Self.maxAnswering))
            notes.append(
                "Media is advertised at \(configured), which is not an address of this machine. Make sure that "
                    + "\(ports) are forwarded to this machine."
            )
        }
    }

    /// Binds the address for other nodes too, if it is one of this machine. If it is not, it is forwarded to one that is bound.
    ///
    /// - Parameters:
    ///   - relay: The setting `media.relayAddress`.
    ///   - local: This machine's addresses.
    mutating func add(relay: IPAddress, local: [IPAddress]) throws(MediaPlaneError) {
        guard !relay.isUnspecified, !relay.isMulticast else {
            throw MediaPlaneError(
                "media.relayAddress is \(relay), which is not a unicast address. Set it to the address at which other nodes "
                    + "reach this machine, or remove it.")
        }
        let isBound = bound.contains { $0 == relay || $0.isUnspecified && $0.isIPv4 == relay.isIPv4 }
        if !isBound, local.contains(relay) || relay.isLoopback { bound.append(relay) }
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

    var isMulticast: Bool { isIPv4 ? bytes[0] & 0xf0 == 0xe0 : bytes[0] == 0xff }

    /// Returns the address with a port.
    func transportAddress(port: UInt16) -> TransportAddress {
        func word(_ part: ArraySlice<UInt8>) -> UInt64 { part.reduce(0) { $0 << 8 | UInt64($1) } }
        guard !isIPv4 else { return TransportAddress(v4: UInt32(truncatingIfNeeded: word(bytes[...])), port: port) }
        return TransportAddress(high: word(bytes[..<8]), low: word(bytes[8...]), port: port)
    }
}
