import NIOCore

/// An address of this machine that other devices on its network can reach.
public struct LANAddress: Hashable, Sendable {
    /// The interface name, such as `eth0` or `en0`.
    public var interface: String
    public var address: IPAddress

    public init(interface: String, address: IPAddress) {
        self.interface = interface
        self.address = address
    }
}

/// Returns this machine's addresses, the most likely reachable first. Omits loopback and link-local addresses, and
/// duplicates.
///
/// - Throws: `IOError` if the system cannot list its interfaces.
public func lanAddresses() throws -> [LANAddress] {
    let all = try System.enumerateDevices().compactMap { device -> LANAddress? in
        guard let text = device.address?.ipAddress, let address = IPAddress(text) else { return nil }
        return LANAddress(interface: device.name, address: address)
    }
    return reachable(all)
}

/// Returns the addresses that a phone on the same network may reach, best first.
///
/// Users type or scan the URL, so private IPv4 addresses come before IPv6. Interfaces of containers, virtual machines and VPNs
/// come last.
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
