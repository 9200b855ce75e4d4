import NIOCore

/// An address of this machine that others on its network can reach.
public struct LANAddress: Hashable, Sendable {
    /// `eth0`, `en0`.
    public var interface: String
    public var address: IPAddress

    public init(interface: String, address: IPAddress) {
        self.interface = interface
        self.address = address
    }
}

/// The machine's addresses, likeliest to be reached first: neither loopback nor link-local, without repetition.
///
/// - Throws: `IOError` when the system does not list its interfaces.
public func lanAddresses() throws -> [LANAddress] {
    let all = try System.enumerateDevices().compactMap { device -> LANAddress? in
        guard let text = device.address?.ipAddress, let address = IPAddress(text) else { return nil }
        return LANAddress(interface: device.name, address: address)
    }
    return reachable(all)
}

/// Those of `addresses` that a phone in the same house may reach, best first. A page's address is typed or scanned, so
/// private IPv4 comes before IPv6; what containers and virtual machines made comes last.
func reachable(_ addresses: [LANAddress]) -> [LANAddress] {
    var seen: Set<IPAddress> = []
    let useful = addresses.filter { candidate in
        !candidate.address.isLoopback && !candidate.address.isLinkLocal && seen.insert(candidate.address).inserted
    }
    func rank(_ candidate: LANAddress) -> Int {
        let isVirtual = virtualInterfaces.contains { candidate.interface.hasPrefix($0) }
        return (isVirtual ? 4 : 0) + (candidate.address.isIPv4 ? 0 : 2) + (candidate.address.isPrivate ? 0 : 1)
    }
    return useful.enumerated().sorted { (rank($0.element), $0.offset) < (rank($1.element), $1.offset) }.map(\.element)
}

private let virtualInterfaces = ["docker", "br-", "veth", "virbr", "vmnet", "podman", "cni", "tun", "utun", "wg"]
