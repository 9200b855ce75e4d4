import Foundation
import RTC

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#elseif canImport(Darwin)
import Darwin
#endif

#if canImport(Glibc)
private let datagramSocket = Int32(SOCK_DGRAM.rawValue)
#else
private let datagramSocket = SOCK_DGRAM
#endif

/// A UDP socket on loopback that sends arbitrary bytes. Every wait has a limit. There is no lock, because only one
/// thread at a time uses the socket.
final class MediaDatagrams: @unchecked Sendable {
    let descriptor: Int32
    /// The number of datagrams sent and received so far, and of their bytes.
    private(set) var sent = (count: 0, bytes: 0)
    private(set) var received = (count: 0, bytes: 0)
    private let memory = UnsafeMutableRawBufferPointer.allocate(byteCount: 65_536, alignment: 16)
    /// The size of the receive buffer. It is more than a megabyte, because a busy machine may read late.
    private static let buffer: Int32 = 4 << 20

    /// - Parameter source: the local address. On Linux all of 127.0.0.0/8 is this machine.
    init(from source: String? = nil) throws {
        descriptor = socket(AF_INET, datagramSocket, 0)
        guard descriptor >= 0 else { throw SocketError("no datagram socket", errno) }
        _ = fcntl(descriptor, F_SETFL, fcntl(descriptor, F_GETFL) | O_NONBLOCK)
        _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC)
        for option in [SO_RCVBUF, SO_SNDBUF] {
            var size = Self.buffer
            setsockopt(descriptor, SOL_SOCKET, option, &size, socklen_t(MemoryLayout<Int32>.size))
        }
        var address = try Self.address(source ?? "127.0.0.1", port: 0)
        let result = Self.with(&address) { bind(descriptor, $0, $1) }
        guard result == 0 else { throw SocketError("bind \(source ?? "127.0.0.1")", errno) }
    }

    deinit {
        memory.deallocate()
        closeSocket(descriptor)
    }

    /// The port that the system chose.
    var port: Int { Self.port(of: descriptor) }

    fileprivate static func port(of descriptor: Int32) -> Int {
        var address = sockaddr_in()
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        _ = withUnsafeMutablePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { getsockname(descriptor, $0, &length) }
        }
        return Int(in_port_t(bigEndian: address.sin_port))
    }

    fileprivate static func address(_ host: String, port: Int) throws -> sockaddr_in {
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = in_port_t(truncatingIfNeeded: port).bigEndian
        guard inet_pton(AF_INET, host, &address.sin_addr) == 1 else { throw SocketError("address \(host)", EINVAL) }
        return address
    }

    fileprivate static func with(_ address: inout sockaddr_in, _ call: (UnsafePointer<sockaddr>, socklen_t) -> Int32)
        -> Int32
    {
        withUnsafePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                call($0, socklen_t(MemoryLayout<sockaddr_in>.size))
            }
        }
    }

    // MARK: Datagrams

    /// Sends one datagram, or drops it if the system's buffer is full.
    @discardableResult
    func send(_ bytes: UnsafeRawBufferPointer, to remote: TransportAddress) -> Bool {
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = remote.port.bigEndian
        address.sin_addr.s_addr = remote.v4.bigEndian
        let count = Self.with(&address) { Int32(sendto(descriptor, bytes.baseAddress, bytes.count, 0, $0, $1)) }
        guard count >= 0 else { return false }
        sent = (sent.count + 1, sent.bytes + bytes.count)
        return true
    }

    @discardableResult
    func send(_ bytes: [UInt8], to remote: TransportAddress) -> Bool { bytes.withUnsafeBytes { send($0, to: remote) } }

    /// Receives one datagram and passes it to the body, where it is valid until the body returns. Returns false if no
    /// datagram is waiting.
    func receive(_ body: (UnsafeMutableRawBufferPointer) -> Void) -> Bool {
        let count = recv(descriptor, memory.baseAddress, memory.count, 0)
        guard count >= 0 else { return false }
        received = (received.count + 1, received.bytes + count)
        body(UnsafeMutableRawBufferPointer(rebasing: memory[..<count]))
        return true
    }

    /// Returns all datagrams received within the limit.
    func receiveAll(within limit: Duration) -> [[UInt8]] {
        let deadline = ContinuousClock.now + limit
        var datagrams: [[UInt8]] = []
        repeat {
            while receive({ datagrams.append(Array($0)) }) {}
        } while isReadable(until: deadline)
        return datagrams
    }

    /// Returns the next datagram, or nil if none arrives within the limit.
    func next(within limit: Duration = .seconds(5)) -> [UInt8]? {
        var datagram: [UInt8]?
        guard isReadable(until: .now + limit) else { return nil }
        _ = receive { datagram = Array($0) }
        return datagram
    }

    func isReadable(until deadline: ContinuousClock.Instant) -> Bool {
        MediaWaiting.isAnyReadable([descriptor], until: deadline)
    }
}

/// Listens on loopback and counts connections.
final class MediaListener {
    private let descriptor: Int32
    private(set) var port: Int

    init() throws {
        let listener = socket(AF_INET, streamSocket, 0)
        descriptor = listener
        port = 0
        var address = try MediaDatagrams.address("127.0.0.1", port: 0)
        guard listener >= 0, MediaDatagrams.with(&address, { bind(listener, $0, $1) }) == 0, listen(listener, 8) == 0
        else { throw SocketError("no listener", errno) }
        _ = fcntl(descriptor, F_SETFL, fcntl(descriptor, F_GETFL) | O_NONBLOCK)
        _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC)
        port = MediaDatagrams.port(of: descriptor)
    }

    deinit { closeSocket(descriptor) }

    /// The number of connections since this property was last read.
    var accepted: Int {
        var count = 0
        while true {
            let connection = accept(descriptor, nil, nil)
            guard connection >= 0 else { return count }
            closeSocket(connection)
            count += 1
        }
    }
}

private func closeSocket(_ descriptor: Int32) { _ = close(descriptor) }

/// Waits for several sockets at once.
enum MediaWaiting {
    static func isAnyReadable(_ descriptors: [Int32], until deadline: ContinuousClock.Instant) -> Bool {
        var entries = descriptors.map { pollfd(fd: $0, events: Int16(POLLIN), revents: 0) }
        while true {
            let left = max(.zero, deadline - ContinuousClock.now)
            let count = poll(
                &entries, nfds_t(entries.count), Int32(clamping: Int((left.inSeconds * 1000).rounded(.up))))
            if count > 0 { return true }
            if count == 0 || errno != EINTR { return false }
        }
    }

    private static let origin = ContinuousClock.now

    /// The current time of the clock that all robots of this process share.
    static var now: MediaTime { MediaTime(nanoseconds: 1_000_000_000) + MediaInterval(ContinuousClock.now - origin) }
}

extension TransportAddress {
    /// Returns 127.0.0.1 with this port.
    static func loopback(port: Int) -> TransportAddress {
        TransportAddress(v4: 0x7f00_0001, port: UInt16(truncatingIfNeeded: port))
    }
}
