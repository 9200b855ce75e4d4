/// An IP address and a port, in one fixed size: it is looked up for every datagram.
public struct TransportAddress: Hashable, Sendable, CustomStringConvertible {
    /// The address in network order as two words; an IPv4 address is `::ffff:a.b.c.d` (RFC 4291 §2.5.5.2).
    public var high: UInt64
    public var low: UInt64
    public var port: UInt16

    public init(high: UInt64, low: UInt64, port: UInt16) {
        (self.high, self.low, self.port) = (high, low, port)
    }

    /// - Parameter v4: in host order, `0x7f000001` is 127.0.0.1.
    public init(v4: UInt32, port: UInt16) {
        self.init(high: 0, low: 0xffff_0000_0000 | UInt64(v4), port: port)
    }

    public var isIPv4: Bool { high == 0 && low >> 32 == 0xffff }
    /// In host order; meaningless for IPv6.
    public var v4: UInt32 { UInt32(truncatingIfNeeded: low) }

    /// The address alone, as SDP writes it. IPv6 is not shortened.
    public var host: String {
        if isIPv4 { return [24, 16, 8, 0].map { "\((v4 >> $0) & 0xff)" }.joined(separator: ".") }
        let words = [high, low].flatMap { half in [48, 32, 16, 0].map { (half >> $0) & 0xffff } }
        return words.map { String($0, radix: 16) }.joined(separator: ":")
    }

    public var description: String { isIPv4 ? "\(host):\(port)" : "[\(host)]:\(port)" }
}

/// Where a datagram came from and goes to: one of our own sockets, and the address at its other end. A TCP connection is a
/// socket of its own.
public struct Path: Hashable, Sendable {
    /// As whoever owns the sockets numbers them.
    public var socket: UInt32
    public var isTCP: Bool
    public var remote: TransportAddress

    public init(socket: UInt32, isTCP: Bool = false, remote: TransportAddress) {
        (self.socket, self.isTCP, self.remote) = (socket, isTCP, remote)
    }
}

/// Takes datagrams to be sent. The memory is the sink's, so that a packet is written where it is sent from.
public protocol DatagramSink: AnyObject {
    /// At least `capacity` bytes to write to, good until the next call of either function.
    func prepare(_ capacity: Int) -> UnsafeMutableRawBufferPointer
    /// Sends the first `count` bytes of what was prepared last.
    func send(_ count: Int, on path: Path)
}

extension DatagramSink {
    public func send(_ datagram: [UInt8], on path: Path) {
        let memory = prepare(datagram.count)
        memory.copyBytes(from: datagram)
        send(datagram.count, on: path)
    }
}
