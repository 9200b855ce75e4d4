/// An IP address and a port. The type has a fixed size and needs no allocation, because an address is created and
/// looked up for every datagram.
public struct TransportAddress: Hashable, Sendable, CustomStringConvertible {
    /// The first 64 bits of the IPv6 address. An IPv4 address is stored as `::ffff:a.b.c.d` (RFC 4291 §2.5.5.2).
    public var high: UInt64
    /// The last 64 bits of the IPv6 address.
    public var low: UInt64
    public var port: UInt16

    public init(high: UInt64, low: UInt64, port: UInt16) {
        (self.high, self.low, self.port) = (high, low, port)
    }

    /// Creates an IPv4 address.
    ///
    /// - Parameter v4: the IPv4 address in host byte order, such as `0x7f000001` for 127.0.0.1.
    public init(v4: UInt32, port: UInt16) {
        self.init(high: 0, low: 0xffff_0000_0000 | UInt64(v4), port: port)
    }

    public var isIPv4: Bool { high == 0 && low >> 32 == 0xffff }
    /// The IPv4 address in host byte order. Meaningless if the address is IPv6.
    public var v4: UInt32 { UInt32(truncatingIfNeeded: low) }

    /// The address without the port, in SDP format. IPv6 addresses are not shortened with `::`.
    public var host: String {
        if isIPv4 { return [24, 16, 8, 0].map { "\((v4 >> $0) & 0xff)" }.joined(separator: ".") }
        let words = [high, low].flatMap { half in [48, 32, 16, 0].map { (half >> $0) & 0xffff } }
        return words.map { String($0, radix: 16) }.joined(separator: ":")
    }

    public var description: String { isIPv4 ? "\(host):\(port)" : "[\(host)]:\(port)" }
}

/// The path of a datagram: a local socket and a remote address. Each TCP connection counts as a separate socket.
public struct Path: Hashable, Sendable {
    /// The socket's number, assigned by the owner of the sockets.
    public var socket: UInt32
    public var isTCP: Bool
    public var remote: TransportAddress

    public init(socket: UInt32, isTCP: Bool = false, remote: TransportAddress) {
        (self.socket, self.isTCP, self.remote) = (socket, isTCP, remote)
    }

    /// Hashes only three words, to be fast: a path is looked up for every datagram.
    public func hash(into hasher: inout Hasher) {
        hasher.combine(remote.high)
        hasher.combine(remote.low)
        hasher.combine(UInt64(socket) << 32 | UInt64(remote.port) << 1 | (isTCP ? 1 : 0))
    }
}

/// A destination for datagrams. The sink provides the memory, so packets are written directly into its send buffer.
public protocol DatagramSink: AnyObject {
    /// Returns at least `capacity` bytes to write to, valid until the next call of either function.
    func prepare(_ capacity: Int) -> UnsafeMutableRawBufferPointer
    /// Sends the first `count` bytes of the memory that the most recent `prepare` returned.
    func send(_ count: Int, on path: Path)
}

extension DatagramSink {
    public func send(_ datagram: [UInt8], on path: Path) {
        let memory = prepare(datagram.count)
        memory.copyBytes(from: datagram)
        send(datagram.count, on: path)
    }
}
