/// Decides which addresses are globally reachable, as opposed to those of this machine and of private networks.
enum PublicAddresses {
    /// Blocks that the registries described in RFC 6890 list as not globally reachable, and multicast and reserved
    /// blocks.
    private static let excluded: [CIDRBlock] = [
        "0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12", "192.0.0.0/24",
        "192.0.2.0/24", "192.88.99.0/24", "192.168.0.0/16", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24",
        "224.0.0.0/4", "240.0.0.0/4",
        // Parts of global unicast: protocol assignments such as Teredo, documentation, and 6to4. Teredo and 6to4 embed IPv4
        // addresses.
        "2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20",
    ].compactMap { CIDRBlock($0) }

    /// The global unicast addresses. All other IPv6 addresses are loopback, local, multicast, mapped or unassigned.
    private static let globalUnicast = CIDRBlock("2000::/3")
    /// The NAT64 prefix (RFC 6052 §2.1). The last four bytes are an IPv4 address.
    private static let nat64 = CIDRBlock("64:ff9b::/96")

    static func contain(_ address: IPAddress) -> Bool {
        if address.isIPv4 { return !excluded.contains { $0.contains(address) } }
        if nat64?.contains(address) == true {
            return IPAddress(bytes: address.bytes.suffix(4)).map(contain) ?? false
        }
        return globalUnicast?.contains(address) == true && !excluded.contains { $0.contains(address) }
    }
}
