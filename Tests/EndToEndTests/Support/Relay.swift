import Foundation
import Testing

#if canImport(Glibc)
import Glibc
#else
import Darwin
#endif

/// Passes TCP connections on to a server, until it is cut like a cable. It is `@unchecked Sendable` because of its lock.
final class Relay: @unchecked Sendable {
    let port: Int
    private let server: UInt16
    private let listener: Int32
    private let lock = NSLock()
    private var sockets: Set<Int32> = []
    private var isCut = false
    private var hasEnded = false

    init(to port: Int) throws {
        let listener = socket(AF_INET, Self.stream, 0)
        var (address, size) = (Self.address(0), socklen_t(MemoryLayout<sockaddr_in>.size))
        let isListening =
            Self.withAddress(&address) { bind(listener, $0, size) == 0 } && listen(listener, 16) == 0
            && Self.withAddress(&address) { getsockname(listener, $0, &size) == 0 }
        try #require(isListening, "no port for the relay")
        (server, self.listener, self.port) = (UInt16(port), listener, Int(UInt16(bigEndian: address.sin_port)))
        Thread.detachNewThread { [weak self] in
            while case let near = accept(listener, nil, nil), near >= 0 {
                guard let relay = self else {
                    close(near)
                    break
                }
                Thread.detachNewThread { relay.pass(near) }
            }
            close(listener)
        }
    }

    deinit { end() }

    /// Ends all connections, and lets no new ones through until `mend`.
    func cut() {
        lock.withLock {
            isCut = true
            for socket in sockets { shutdown(socket, Int32(SHUT_RDWR)) }
        }
    }

    func mend() { lock.withLock { isCut = false } }

    /// Ends all connections, and the relay.
    func end() {
        cut()
        // Only once: the thread then closes the listener, and a socket of another test may get its number.
        let isFirst = lock.withLock {
            defer { hasEnded = true }
            return !hasEnded
        }
        if isFirst { shutdown(listener, Int32(SHUT_RDWR)) }
    }

    /// Returns a socket that is connected to a port of this machine, or nil if nothing accepts the connection.
    static func socketConnected(to port: UInt16) -> Int32? {
        let end = socket(AF_INET, stream, 0)
        if reach(port, end) { return end }
        close(end)
        return nil
    }

    /// Connects a socket, and returns whether that succeeded.
    private static func reach(_ port: UInt16, _ end: Int32) -> Bool {
        var address = address(port)
        return withAddress(&address) { connect(end, $0, socklen_t(MemoryLayout<sockaddr_in>.size)) == 0 }
    }

    private func pass(_ near: Int32) {
        let far = socket(AF_INET, Self.stream, 0)
        let isOpen = lock.withLock {
            if !isCut { sockets.formUnion([near, far]) }
            return !isCut
        }
        if isOpen, Self.reach(server, far) { Self.copy(near, far) }
        lock.withLock {
            sockets.subtract([near, far])
            close(near)
            close(far)
        }
    }

    /// Copies in both directions until one end closes.
    private static func copy(_ near: Int32, _ far: Int32) {
        var buffer = [UInt8](repeating: 0, count: 1 << 16)
        var ends = [near, far].map { pollfd(fd: $0, events: Int16(POLLIN), revents: 0) }
        while poll(&ends, 2, -1) > 0 {
            for (from, to) in [(0, 1), (1, 0)] where ends[from].revents != 0 {
                let count = recv(ends[from].fd, &buffer, buffer.count, 0)
                guard count > 0 else { return }
                var sent = 0
                while sent < count {
                    let written = buffer[sent..<count].withUnsafeBytes { bytes in
                        send(ends[to].fd, bytes.baseAddress, bytes.count, Int32(MSG_NOSIGNAL))
                    }
                    guard written > 0 else { return }
                    sent += written
                }
            }
        }
    }

    private static var stream: Int32 { Int32(SOCK_STREAM.rawValue) }

    private static func address(_ port: UInt16) -> sockaddr_in {
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = port.bigEndian
        address.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
        return address
    }

    private static func withAddress<Result>(
        _ address: inout sockaddr_in, _ body: (UnsafeMutablePointer<sockaddr>) -> Result
    ) -> Result {
        withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1, body)
        }
    }
}
