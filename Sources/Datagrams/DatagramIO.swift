import CSockets
import Foundation
import RTC

/// A bound UDP socket.
package struct DatagramSocket: Sendable {
    package var descriptor: Int32
    package var isIPv6: Bool

    package init(descriptor: Int32, isIPv6: Bool) { (self.descriptor, self.isIPv6) = (descriptor, isIPv6) }
}

/// Receives and sends datagrams in batches.
package protocol DatagramIO: AnyObject {
    /// Whether one message may contain several segments (UDP GSO).
    var joins: Bool { get }
    /// Receives one batch and calls `body` for each datagram. The datagrams' memory stays valid until the next call.
    ///
    /// The time of arrival is when the kernel received the datagram, if the system reports it (Linux). Otherwise it is
    /// when the datagram was read, which is later in a busy loop.
    /// - Returns: the number of received messages. Fewer than `burst` means that the socket is empty.
    func receive(
        _ socket: DatagramSocket,
        _ body: (UnsafeMutableRawBufferPointer, TransportAddress, _ arrivedAt: MediaTime) -> Void
    ) -> Int
    /// The maximum number of messages in a batch.
    var burst: Int { get }
    /// Sends all datagrams. Waits briefly if a socket is full. Datagrams that still do not fit into its buffer are
    /// lost, as in any full network queue.
    /// - Returns: the number of lost datagrams.
    func send(_ arena: DatagramArena, on sockets: [DatagramSocket]) -> Int
    var counters: DatagramCounters { get }
}

/// What a `DatagramIO` has done. Counted per system call or message, not per datagram.
package struct DatagramCounters: Equatable, Sendable {
    /// The number of system calls that received datagrams.
    package var reads: UInt64 = 0
    /// The number of received datagrams.
    package var received: UInt64 = 0
    /// The bytes of the received datagrams, without headers of UDP and IP.
    package var receivedBytes: UInt64 = 0
    /// The number of system calls that sent datagrams.
    package var writes: UInt64 = 0
    /// The number of messages that the kernel accepted. With UDP GSO, a message is one or more datagrams.
    package var messages: UInt64 = 0
    /// The number of sent datagrams.
    package var sent: UInt64 = 0
    /// The bytes of all datagrams that were to be sent, lost ones included, without headers of UDP and IP.
    package var offeredBytes: UInt64 = 0
    /// The number of times that sending had to wait for a full socket.
    package var waits: UInt64 = 0

    package init() {}

    /// Adds the counters of other sockets.
    package static func += (left: inout DatagramCounters, right: DatagramCounters) {
        left.reads &+= right.reads
        left.received &+= right.received
        left.receivedBytes &+= right.receivedBytes
        left.writes &+= right.writes
        left.messages &+= right.messages
        left.sent &+= right.sent
        left.offeredBytes &+= right.offeredBytes
        left.waits &+= right.waits
    }
}

/// The maximum length of a received datagram in bytes. Longer ones are ignored, because no media datagram is longer.
private let longestDatagram = 2048

#if os(Linux)
/// Datagram I/O with recvmmsg, sendmmsg, and segmentation by the kernel.
package final class BatchedDatagrams: DatagramIO {
    /// The maximum size in bytes of several datagrams that the kernel has joined (UDP GRO).
    private static let longestPiece = 65_536
    /// Extra bytes that make the size of a buffer an odd number of cache lines. Otherwise the beginnings of all buffers would map to a few
    /// sets of the processor's caches, and evict each other.
    private static let stagger = 64

    package let burst: Int
    package let joins: Bool
    private let takesPieces: Bool
    private let batch: OpaquePointer
    private let sends: OpaquePointer
    private static let sendsAtOnce = 256
    package private(set) var counters = DatagramCounters()

    /// Allocates the buffers. Nil if there is not enough memory.
    /// - Parameters:
    ///   - socket: a UDP socket, used to find out whether the kernel supports UDP GSO.
    ///   - takesPieces: whether `SocketOptions.joinSegments` is set on the sockets that will be read.
    package init?(probing socket: Int32, takesPieces: Bool = false) {
        self.takesPieces = takesPieces
        burst = takesPieces ? 32 : 64
        let size = (takesPieces ? Self.longestPiece : longestDatagram) + Self.stagger
        guard let batch = confab_batch_make(UInt32(burst), UInt32(size)),
            let sends = confab_sends_make(UInt32(Self.sendsAtOnce))
        else { return nil }
        (self.batch, self.sends) = (batch, sends)
        joins = confab_has_segmentation(socket) != 0
    }

    deinit {
        confab_batch_free(batch)
        confab_sends_free(sends)
    }

    package func receive(
        _ socket: DatagramSocket, _ body: (UnsafeMutableRawBufferPointer, TransportAddress, MediaTime) -> Void
    ) -> Int {
        let count = Int(confab_batch_receive(batch, socket.descriptor))
        guard count > 0 else { return 0 }
        counters.reads &+= 1
        counters.received &+= UInt64(count)
        for index in 0..<UInt32(count) {
            let length = Int(confab_batch_length(batch, index))
            guard length > 0, let source = TransportAddress(confab_batch_source(batch, index).pointee) else { continue }
            counters.receivedBytes &+= UInt64(length)
            let arrivedAt = MediaTime(nanoseconds: confab_batch_arrival(batch, index))
            let piece = UnsafeMutableRawBufferPointer(start: confab_batch_bytes(batch, index), count: length)
            let segment = takesPieces ? Int(confab_batch_segment(batch, index)) : 0
            guard segment > 0, segment < length else {
                // A datagram that did not fit into the buffer has length 0, but the buffer is longer than `longestDatagram`.
                if length <= longestDatagram { body(piece, source, arrivedAt) }
                continue
            }
            counters.received &+= UInt64((length - 1) / segment)
            for start in stride(from: 0, to: length, by: segment) {
                let datagram = UnsafeMutableRawBufferPointer(rebasing: piece[start..<min(start + segment, length)])
                // Check each datagram, because the last one may be shorter than `segment`.
                if datagram.count <= longestDatagram { body(datagram, source, arrivedAt) }
            }
        }
        return count
    }

    package func send(_ arena: DatagramArena, on sockets: [DatagramSocket]) -> Int {
        var lost = 0
        var next = 0
        var waiting = SendWait()
        let messages = arena.messages
        while next < messages.count {
            let socket = messages[next].path.socket
            guard socket < sockets.count else {
                lost += messages[next].count
                next += 1
                continue
            }
            var (filled, datagrams): (UInt32, Int) = (0, 0)
            while next < messages.count, filled < UInt32(Self.sendsAtOnce), messages[next].path.socket == socket {
                let message = messages[next]
                next += 1
                guard let address = confab_sends_address(sends, filled),
                    let length = message.path.remote.write(to: address, ipv6: sockets[Int(socket)].isIPv6)
                else {
                    lost += message.count
                    continue
                }
                confab_sends_set(
                    sends, filled, arena.bytes(of: message).baseAddress, UInt32(message.length),
                    message.count > 1 ? UInt16(message.segment) : 0, length
                )
                filled += 1
                datagrams += message.count
                counters.offeredBytes &+= UInt64(message.length)
            }
            let sender = BatchSender(sends: sends, socket: sockets[Int(socket)])
            let lostHere = transmit(Int(filled), over: sender, &waiting, &counters)
            counters.sent &+= UInt64(clamping: datagrams - lostHere)
            lost += lostHere
        }
        counters.waits &+= UInt64(waiting.waits)
        return lost
    }
}

/// Sends the messages of a `confab_sends`.
private struct BatchSender: MessageSending {
    let sends: OpaquePointer
    let socket: DatagramSocket

    var now: MediaTime { .monotonic }

    func send(_ first: Int, _ end: Int) -> (sent: Int, error: Int32) {
        let sent = confab_sends_send(sends, socket.descriptor, UInt32(first), UInt32(end))
        return (Int(sent), sent > 0 ? 0 : errno)
    }

    func send(segment: Int, of message: Int) -> Int32 {
        confab_sends_send_segment(sends, socket.descriptor, UInt32(message), UInt32(segment)) < 0 ? errno : 0
    }

    func segments(of message: Int) -> Int { Int(confab_sends_segments(sends, UInt32(message))) }

    func waitForRoom(_ time: MediaInterval) { socket.waitForRoom(time) }
}
#endif

/// Datagram I/O with recvfrom and sendto, which every system supports.
package final class PlainDatagrams: DatagramIO {
    package let burst = 1
    package let joins = false
    package private(set) var counters = DatagramCounters()
    /// One byte longer than the longest datagram, so that longer ones are detected.
    private let memory = UnsafeMutableRawBufferPointer.allocate(byteCount: longestDatagram + 1, alignment: 16)

    package init() {}

    deinit { memory.deallocate() }

    package func receive(
        _ socket: DatagramSocket, _ body: (UnsafeMutableRawBufferPointer, TransportAddress, MediaTime) -> Void
    ) -> Int {
        var source = sockaddr_storage()
        var length = socklen_t(MemoryLayout<sockaddr_storage>.size)
        let count = withUnsafeMutablePointer(to: &source) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
                recvfrom(socket.descriptor, memory.baseAddress, memory.count, MSG_DONTWAIT.asInt32, address, &length)
            }
        }
        guard count > 0, let address = TransportAddress(source) else { return 0 }
        counters.reads &+= 1
        counters.received &+= 1
        counters.receivedBytes &+= UInt64(count)
        if count <= longestDatagram {
            body(UnsafeMutableRawBufferPointer(rebasing: memory[..<count]), address, .monotonic)
        }
        return 1
    }

    package func send(_ arena: DatagramArena, on sockets: [DatagramSocket]) -> Int {
        var lost = 0
        var waiting = SendWait()
        for message in arena.messages {
            guard message.path.socket < sockets.count else {
                lost += message.count
                continue
            }
            let sender = PlainSender(
                bytes: UnsafeRawBufferPointer(arena.bytes(of: message)), remote: message.path.remote,
                socket: sockets[Int(message.path.socket)]
            )
            counters.offeredBytes &+= UInt64(message.length)
            let lostHere = transmit(1, over: sender, &waiting, &counters)
            counters.sent &+= UInt64(clamping: 1 - lostHere)
            lost += lostHere
        }
        counters.waits &+= UInt64(waiting.waits)
        return lost
    }
}

/// Sends one datagram.
private struct PlainSender: MessageSending {
    let bytes: UnsafeRawBufferPointer
    let remote: TransportAddress
    let socket: DatagramSocket

    var now: MediaTime { .monotonic }

    func send(_ first: Int, _ end: Int) -> (sent: Int, error: Int32) {
        guard let (address, length) = remote.storage(ipv6: socket.isIPv6) else { return (0, EAFNOSUPPORT) }
        var storage = address
        let sent = withUnsafePointer(to: &storage) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
                sendto(socket.descriptor, bytes.baseAddress, bytes.count, MSG_DONTWAIT.asInt32, address, length)
            }
        }
        return sent < 0 ? (0, errno) : (1, 0)
    }

    func send(segment: Int, of message: Int) -> Int32 { send(message, message + 1).error }

    func segments(of message: Int) -> Int { 1 }

    func waitForRoom(_ time: MediaInterval) { socket.waitForRoom(time) }
}

extension BinaryInteger {
    /// The number as an `Int32`. Needed because `MSG_DONTWAIT` has a different type on each system.
    fileprivate var asInt32: Int32 { Int32(self) }
}
