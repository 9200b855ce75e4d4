import CSockets
import Foundation
import RTC

/// Creates sockets and sets their options.
package enum SocketOptions {
    /// The size of a UDP socket's kernel buffers in bytes. It is enough for more than two seconds at 8 Mbit/s, so a short delay
    /// of the loop loses nothing.
    package static let datagramBuffer: Int32 = 4 << 20
    /// The size of a TCP connection's send buffer in the kernel, in bytes. It is small so that congestion shows early.
    private static let streamBuffer: Int32 = 128 << 10
    /// The maximum number of unsent bytes that a TCP connection keeps in the kernel. More would only wait there, where
    /// the delay cannot be measured and outdated packets cannot be dropped.
    private static let unsentBuffer: Int32 = 16 << 10

    /// The number of the TCP option that limits how many unsent bytes wait in the kernel.
    package static let unsentLimit: Int32 = TCP_NOTSENT_LOWAT

    package static func makeNonBlocking(_ descriptor: Int32) {
        _ = fcntl(descriptor, F_SETFL, fcntl(descriptor, F_GETFL) | O_NONBLOCK)
        _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC)
    }

    package static func configureStream(_ descriptor: Int32) {
        makeNonBlocking(descriptor)
        set(descriptor, Int32(IPPROTO_TCP), TCP_NODELAY, 1)
        set(descriptor, SOL_SOCKET, SO_SNDBUF, streamBuffer)
        set(descriptor, Int32(IPPROTO_TCP), TCP_NOTSENT_LOWAT, unsentBuffer)
    }

    /// Opens a UDP socket for media.
    /// - Parameter isShared: whether a wildcard socket, made shareable with `setShared`, has the same port.
    package static func datagram(_ address: TransportAddress, isShared: Bool = false) throws(SocketError) -> Int32 {
        let descriptor = try open(address, kind: datagramKind, isShared: isShared)
        set(descriptor, SOL_SOCKET, SO_RCVBUF, datagramBuffer)
        set(descriptor, SOL_SOCKET, SO_SNDBUF, datagramBuffer)
        #if os(Linux)
        // Try to exceed the system's limit, which works only if the process has the privilege CAP_NET_ADMIN.
        set(descriptor, SOL_SOCKET, SO_RCVBUFFORCE, datagramBuffer)
        set(descriptor, SOL_SOCKET, SO_SNDBUFFORCE, datagramBuffer)
        confab_ignore_path_mtu(descriptor, address.isIPv4 ? 0 : 1)
        #endif
        return descriptor
    }

    /// Makes the kernel record when each datagram arrives, for the arrival times in `DatagramIO`.
    package static func stampArrivals(_ descriptor: Int32) {
        #if os(Linux)
        confab_stamp_arrivals(descriptor)
        #endif
    }

    /// Returns the size in bytes of the smaller of a UDP socket's two kernel buffers. The system may have given less than
    /// `datagramBuffer`.
    package static func smallestBuffer(of descriptor: Int32) -> Int {
        // Linux reports twice the size, because it counts its own overhead.
        #if os(Linux)
        let factor = 2
        #else
        let factor = 1
        #endif
        return Int(min(get(descriptor, SOL_SOCKET, SO_RCVBUF), get(descriptor, SOL_SOCKET, SO_SNDBUF))) / factor
    }

    /// Allows the kernel to join datagrams that one sender sent in one call (UDP GRO).
    /// - Returns: true if the kernel supports this.
    @discardableResult
    package static func joinSegments(_ descriptor: Int32) -> Bool {
        #if os(Linux)
        confab_join_segments(descriptor) != 0
        #else
        false
        #endif
    }

    /// Opens a TCP socket that accepts connections.
    package static func listener(_ address: TransportAddress) throws(SocketError) -> Int32 {
        let descriptor = try open(address, kind: streamKind)
        guard listen(descriptor, 128) == 0 else {
            // `close` may overwrite `errno`.
            let reason = reason
            close(descriptor)
            throw SocketError("Cannot listen on TCP \(address): \(reason).")
        }
        return descriptor
    }

    /// Returns the port of a bound socket; nil if the descriptor is not such a socket.
    package static func port(of descriptor: Int32) -> UInt16? {
        var storage = sockaddr_storage()
        var length = socklen_t(MemoryLayout<sockaddr_storage>.size)
        let result = withUnsafeMutablePointer(to: &storage) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { getsockname(descriptor, $0, &length) }
        }
        return result == 0 ? TransportAddress(storage)?.port : nil
    }

    /// Sets whether another UDP socket may be bound to the same port.
    package static func setShared(_ descriptor: Int32, _ isShared: Bool) {
        set(descriptor, SOL_SOCKET, SO_REUSEADDR, isShared ? 1 : 0)
    }

    private static func open(
        _ address: TransportAddress, kind: Int32, isShared: Bool = false
    ) throws(SocketError) -> Int32 {
        let what = kind == datagramKind ? "UDP" : "TCP"
        let descriptor = socket(address.isIPv4 ? AF_INET : AF_INET6, kind, 0)
        guard descriptor >= 0 else { throw SocketError("Cannot create a \(what) socket: \(reason).") }
        makeNonBlocking(descriptor)
        if !address.isIPv4 { set(descriptor, Int32(IPPROTO_IPV6), IPV6_V6ONLY, 1) }
        if kind == streamKind || isShared { set(descriptor, SOL_SOCKET, SO_REUSEADDR, 1) }
        guard let (storage, length) = address.storage(ipv6: !address.isIPv4) else { return descriptor }
        var copy = storage
        let result = withUnsafePointer(to: &copy) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { bind(descriptor, $0, length) }
        }
        guard result == 0 else {
            let reason = reason
            close(descriptor)
            throw SocketError("Cannot open \(what) \(address) for media: \(reason).")
        }
        return descriptor
    }

    private static var reason: String { String(cString: strerror(errno)) }

    private static func set(_ descriptor: Int32, _ level: Int32, _ option: Int32, _ value: Int32) {
        var value = value
        _ = setsockopt(descriptor, level, option, &value, socklen_t(MemoryLayout<Int32>.size))
    }

    private static func get(_ descriptor: Int32, _ level: Int32, _ option: Int32) -> Int32 {
        var value: Int32 = 0
        var length = socklen_t(MemoryLayout<Int32>.size)
        return getsockopt(descriptor, level, option, &value, &length) == 0 ? value : 0
    }

    #if os(Linux)
    private static let datagramKind = Int32(SOCK_DGRAM.rawValue)
    private static let streamKind = Int32(SOCK_STREAM.rawValue)
    #else
    private static let datagramKind = SOCK_DGRAM
    private static let streamKind = SOCK_STREAM
    #endif
}

/// Why a socket could not be opened, as a message for the operator.
package struct SocketError: Error, CustomStringConvertible {
    package var description: String
    package init(_ description: String) { self.description = description }
}
