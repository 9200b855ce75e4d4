import CSockets
import Foundation
import RTC

/// Conversion between transport addresses and the system's socket addresses.
extension TransportAddress {
    package init?(_ storage: sockaddr_storage) {
        var storage = storage
        switch Int32(storage.ss_family) {
        case AF_INET:
            self = withUnsafePointer(to: &storage) { pointer in
                pointer.withMemoryRebound(to: sockaddr_in.self, capacity: 1) { address in
                    TransportAddress(
                        v4: UInt32(bigEndian: address.pointee.sin_addr.s_addr),
                        port: UInt16(bigEndian: address.pointee.sin_port)
                    )
                }
            }
        case AF_INET6:
            self = withUnsafePointer(to: &storage) { pointer in
                pointer.withMemoryRebound(to: sockaddr_in6.self, capacity: 1) { TransportAddress($0.pointee) }
            }
        default: return nil
        }
    }

    private init(_ address: sockaddr_in6) {
        var words = address.sin6_addr
        let (high, low) = withUnsafeBytes(of: &words) { bytes in
            (
                UInt64(bigEndian: bytes.loadUnaligned(fromByteOffset: 0, as: UInt64.self)),
                UInt64(bigEndian: bytes.loadUnaligned(fromByteOffset: 8, as: UInt64.self))
            )
        }
        self.init(high: high, low: low, port: UInt16(bigEndian: address.sin6_port))
    }

    /// Returns the address for a socket of the given family; nil if such a socket cannot reach the address.
    package func storage(ipv6: Bool) -> (sockaddr_storage, socklen_t)? {
        var storage = sockaddr_storage()
        return write(to: &storage, ipv6: ipv6).map { (storage, $0) }
    }

    /// Writes the address for a socket of the given family.
    /// - Parameter storage: where to write. Only the first bytes are written, because the type is much longer than any
    ///   address.
    /// - Returns: the length of the address; nil if such a socket cannot reach it.
    func write(to storage: UnsafeMutablePointer<sockaddr_storage>, ipv6: Bool) -> socklen_t? {
        if ipv6 {
            storage.withMemoryRebound(to: sockaddr_in6.self, capacity: 1) { fill(&$0.pointee) }
            return socklen_t(MemoryLayout<sockaddr_in6>.size)
        }
        guard isIPv4 else { return nil }
        storage.withMemoryRebound(to: sockaddr_in.self, capacity: 1) { address in
            address.pointee.sin_family = sa_family_t(AF_INET)
            address.pointee.sin_port = port.bigEndian
            address.pointee.sin_addr.s_addr = v4.bigEndian
        }
        return socklen_t(MemoryLayout<sockaddr_in>.size)
    }

    private func fill(_ address: inout sockaddr_in6) {
        address.sin6_family = sa_family_t(AF_INET6)
        address.sin6_port = port.bigEndian
        // The memory may hold an IPv4 address in place of the flow.
        (address.sin6_flowinfo, address.sin6_scope_id) = (0, 0)
        withUnsafeMutableBytes(of: &address.sin6_addr) { bytes in
            bytes.storeBytes(of: high.bigEndian, toByteOffset: 0, as: UInt64.self)
            bytes.storeBytes(of: low.bigEndian, toByteOffset: 8, as: UInt64.self)
        }
    }
}
