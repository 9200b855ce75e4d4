import Foundation

/// The addresses of this host's active network interfaces.
package enum HostAddresses {
    /// Returns the IPv4 addresses in host byte order, loopback last.
    package static func ipv4() -> [UInt32] {
        var list: UnsafeMutablePointer<ifaddrs>?
        guard getifaddrs(&list) == 0 else { return [] }
        defer { freeifaddrs(list) }
        var (outer, inner): ([UInt32], [UInt32]) = ([], [])
        var next = list
        while let entry = next?.pointee {
            next = entry.ifa_next
            guard let address = entry.ifa_addr, Int32(address.pointee.sa_family) == AF_INET,
                entry.ifa_flags & UInt32(IFF_UP) != 0
            else { continue }
            let value = address.withMemoryRebound(to: sockaddr_in.self, capacity: 1) {
                UInt32(bigEndian: $0.pointee.sin_addr.s_addr)
            }
            if value >> 24 == 127 { inner.append(value) } else { outer.append(value) }
        }
        return outer + inner
    }
}
