import CSockets
import Foundation
import RTC

/// A bound UDP socket.
package struct DatagramSocket: Sendable {
    package var descriptor: Int32
    package var isIPv6: Bool

    package init(descriptor: Int32, isIPv6: Bool) { (self.descriptor, self.isIPv6) = (descriptor, isIPv6) }
}

/// Reads and writes many datagrams.
package protocol DatagramIO: AnyObject {
    /// Whether messages of several segments can be sent.
    var joins: Bool { get }
    /// Reads what one call brings and hands it over; the memory stays until the next call.
    /// - Returns: how many there were; fewer than `burst` means that nothing is left.
    func receive(
        _ socket: DatagramSocket, _ body: (UnsafeMutableRawBufferPointer, TransportAddress) -> Void
    ) -> Int
    var burst: Int { get }
    /// Sends all that the sockets take; what they do not is lost, as in any full queue of a network.
    func send(_ arena: DatagramArena, on sockets: [DatagramSocket]) -> Int
}

/// Longer ones are no media of ours.
private let longestDatagram = 2048

#if os(Linux)
/// recvmmsg, sendmmsg, and segmentation by the kernel.
package final class BatchedDatagrams: DatagramIO {
    /// What the kernel hands over joined has up to 64 KiB.
    private static let longestPiece = 65_536

    package let burst: Int
    package let joins: Bool
    private let takesPieces: Bool
    private let batch: OpaquePointer
    private let sends: OpaquePointer
    private static let sendsAtOnce = 256

    /// - Parameter takesPieces: whether sockets have `SocketOptions.joinSegments`.
    package init?(probing socket: Int32, takesPieces: Bool = false) {
        self.takesPieces = takesPieces
        burst = takesPieces ? 32 : 64
        let size = takesPieces ? Self.longestPiece : longestDatagram
        guard let batch = confab_batch_make(UInt32(burst), UInt32(size)),
            let sends = confab_sends_make(UInt32(Self.sendsAtOnce))
        else { return nil }
        if takesPieces { confab_batch_expect_segments(batch) }
        (self.batch, self.sends) = (batch, sends)
        joins = confab_has_segmentation(socket) != 0
    }

    deinit {
        confab_batch_free(batch)
        confab_sends_free(sends)
    }

    package func receive(
        _ socket: DatagramSocket, _ body: (UnsafeMutableRawBufferPointer, TransportAddress) -> Void
    ) -> Int {
        let count = Int(confab_batch_receive(batch, socket.descriptor))
        guard count > 0 else { return 0 }
        for index in 0..<UInt32(count) {
            let length = Int(confab_batch_length(batch, index))
            guard length > 0, let source = TransportAddress(confab_batch_source(batch, index).pointee) else { continue }
            let piece = UnsafeMutableRawBufferPointer(start: confab_batch_bytes(batch, index), count: length)
            let segment = takesPieces ? Int(confab_batch_segment(batch, index)) : 0
            guard segment > 0, segment < length else {
                body(piece, source)
                continue
            }
            for start in stride(from: 0, to: length, by: segment) {
                body(UnsafeMutableRawBufferPointer(rebasing: piece[start..<min(start + segment, length)]), source)
            }
        }
        return count
    }

    package func send(_ arena: DatagramArena, on sockets: [DatagramSocket]) -> Int {
        var lost = 0
        var next = 0
        let messages = arena.messages
        while next < messages.count {
            let socket = messages[next].path.socket
            guard socket < sockets.count else {
                next += 1
                continue
            }
            var filled: UInt32 = 0
            while next < messages.count, filled < UInt32(Self.sendsAtOnce), messages[next].path.socket == socket {
                let message = messages[next]
                next += 1
                guard let (address, length) = message.path.remote.storage(ipv6: sockets[Int(socket)].isIPv6) else {
                    continue
                }
                var storage = address
                confab_sends_set(
                    sends, filled, arena.bytes(of: message).baseAddress, UInt32(message.length),
                    message.count > 1 ? UInt16(message.segment) : 0, &storage, length
                )
                filled += 1
            }
            lost += transmit(filled, on: sockets[Int(socket)])
        }
        return lost
    }

    private func transmit(_ count: UInt32, on socket: DatagramSocket) -> Int {
        var sent: UInt32 = 0
        var lost = 0
        while sent < count {
            let result = confab_sends_send(sends, socket.descriptor, sent, count)
            if result > 0 {
                sent += UInt32(result)
            } else {
                // The first of them cannot go: no room, or nobody there. The next may.
                sent += 1
                lost += 1
            }
        }
        return lost
    }
}
#endif

/// recvfrom and sendto, which every system has.
package final class PlainDatagrams: DatagramIO {
    package let burst = 1
    package let joins = false
    private let memory = UnsafeMutableRawBufferPointer.allocate(byteCount: longestDatagram, alignment: 16)

    package init() {}

    deinit { memory.deallocate() }

    package func receive(
        _ socket: DatagramSocket, _ body: (UnsafeMutableRawBufferPointer, TransportAddress) -> Void
    ) -> Int {
        var source = sockaddr_storage()
        var length = socklen_t(MemoryLayout<sockaddr_storage>.size)
        let count = withUnsafeMutablePointer(to: &source) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
                recvfrom(socket.descriptor, memory.baseAddress, memory.count, MSG_DONTWAIT.asInt32, address, &length)
            }
        }
        guard count > 0, let address = TransportAddress(source) else { return 0 }
        body(UnsafeMutableRawBufferPointer(rebasing: memory[..<count]), address)
        return 1
    }

    package func send(_ arena: DatagramArena, on sockets: [DatagramSocket]) -> Int {
        var lost = 0
        for message in arena.messages where message.path.socket < sockets.count {
            let socket = sockets[Int(message.path.socket)]
            guard let (address, length) = message.path.remote.storage(ipv6: socket.isIPv6) else { continue }
            var storage = address
            let bytes = arena.bytes(of: message)
            let sent = withUnsafePointer(to: &storage) { pointer in
                pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
                    sendto(socket.descriptor, bytes.baseAddress, bytes.count, MSG_DONTWAIT.asInt32, address, length)
                }
            }
            if sent < 0 { lost += 1 }
        }
        return lost
    }
}

extension BinaryInteger {
    /// `MSG_DONTWAIT` is a different type on each system.
    fileprivate var asInt32: Int32 { Int32(self) }
}
