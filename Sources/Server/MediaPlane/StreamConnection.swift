import CSockets
import Foundation
import RTC

/// A TCP connection that carries datagrams (passive side of RFC 6544, framing of RFC 4571), for networks that block UDP.
///
/// Both directions are bounded. An oversized frame ends the connection. Unsent data waits in a queue that drops new datagrams
/// when it is full; the router monitors its delay (`queuedTime`).
final class StreamConnection {
    /// Maximum size of the send queue in bytes: half a second at 8 Mbit/s. Older data is useless in a call.
    static let maxQueueSize = 512 * 1024
    /// Time limit for a new connection to pass an ICE connectivity check. After that, the loop closes it.
    static let handshakeTimeout = MediaInterval.seconds(10)
    /// Size of the read buffer, enough for several frames of maximum size.
    private static let readSize = 16 * 1024

    let path: Path
    let openedAt: MediaTime
    /// Whether the connection belongs to a peer connection, because it has passed a connectivity check.
    var isVerified = false {
        didSet { if isVerified != oldValue { socket.setVerified(isVerified) } }
    }
    private let socket: StreamSocket
    private let memory = UnsafeMutableRawBufferPointer.allocate(byteCount: readSize, alignment: 16)
    private var filled = 0
    private var queue: [UInt8] = []
    private var queueStart = 0
    /// Byte offsets in the stream with the time they were queued, about one per 20 ms. They give the age of the queued data.
    private var marks: [(offset: Int, at: MediaTime)] = []
    private var queuedTotal = 0
    private var sentTotal = 0
    private static let markInterval = MediaInterval.milliseconds(20)

    init(_ socket: StreamSocket, path: Path, now: MediaTime) {
        (self.socket, self.path, openedAt) = (socket, path, now)
    }

    /// Takes over a connection from another loop. It has not passed a check on this loop yet.
    init(_ handover: StreamHandover, path: Path) {
        (socket, self.path, openedAt) = (handover.socket, path, handover.openedAt)
        memory.copyBytes(from: handover.unread.prefix(memory.count))
        filled = min(handover.unread.count, memory.count)
    }

    deinit { memory.deallocate() }

    var descriptor: Int32 { socket.descriptor }

    /// What another loop needs to take over the connection. This object must not be used afterward.
    var handover: StreamHandover {
        StreamHandover(socket: socket, openedAt: openedAt, unread: Array(memory[..<filled]))
    }

    var isWaiting: Bool { queueStart < queue.count }

    /// When the oldest queued data was queued, approximately; nil if the queue is empty.
    var waitingSince: MediaTime? { isWaiting ? marks.first?.at : nil }

    // MARK: Reading

    /// Reads once, and passes on the frames as `deliver` does.
    /// - Returns: False if the connection has ended or a frame is too long.
    func read(_ body: (UnsafeMutableRawBufferPointer) -> Bool, done: () -> Void) -> Bool {
        let room = UnsafeMutableRawBufferPointer(rebasing: memory[filled...])
        let count = recv(descriptor, room.baseAddress, room.count, Int32(MSG_DONTWAIT))
        if count < 0 { return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR }
        guard count > 0 else { return false }
        filled += count
        return deliver(body, done: done)
    }

    /// Passes each complete frame that was read to `body`, in place, until `body` returns false. That frame and those
    /// after it stay unread. Calls `done` after the last frame, before the memory is reused.
    /// - Returns: False if a frame is too long.
    func deliver(_ body: (UnsafeMutableRawBufferPointer) -> Bool, done: () -> Void) -> Bool {
        var offset = 0
        var isGood = true
        scan: while true {
            let whole = UnsafeRawBufferPointer(UnsafeMutableRawBufferPointer(rebasing: memory[..<filled]))
            switch StreamFraming.next(in: whole, at: offset) {
            case .frame(let range):
                if !range.isEmpty, !body(UnsafeMutableRawBufferPointer(rebasing: memory[range])) { break scan }
                offset = range.upperBound
            case .incomplete: break scan
            case .tooLong:
                isGood = false
                break scan
            }
        }
        done()
        if offset > 0, let base = memory.baseAddress {
            base.copyMemory(from: base + offset, byteCount: filled - offset)
            filled -= offset
        }
        return isGood
    }

    // MARK: Writing

    /// Queues a datagram.
    /// - Returns: False if the datagram was dropped, because the queue is full or the datagram exceeds a frame.
    func send(_ datagram: UnsafeRawBufferPointer, now: MediaTime) -> Bool {
        guard datagram.count <= Int(UInt16.max), queue.count - queueStart + datagram.count + 2 <= Self.maxQueueSize
        else {
            return false
        }
        if marks.last.map({ now - $0.at > Self.markInterval }) ?? true { marks.append((queuedTotal, now)) }
        queuedTotal += datagram.count + 2
        queue.append(UInt8(datagram.count >> 8))
        queue.append(UInt8(datagram.count & 0xff))
        queue.append(contentsOf: datagram)
        return true
    }

    /// Writes as much of the queue as the system accepts.
    /// - Returns: False if the connection has ended.
    func flush(now: MediaTime) -> Bool {
        while isWaiting {
            let sent = queue.withUnsafeBytes { bytes in
                let rest = UnsafeRawBufferPointer(rebasing: bytes[queueStart...])
                return Foundation.send(descriptor, rest.baseAddress, rest.count, Int32(MSG_DONTWAIT) | Self.noSignal)
            }
            if sent < 0 {
                guard errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR else { return false }
                compact()
                return true
            }
            queueStart += sent
            sentTotal += sent
            while marks.count > 1, marks[1].offset <= sentTotal { marks.removeFirst() }
        }
        queue.removeAll(keepingCapacity: queue.capacity <= 64 * 1024)
        queueStart = 0
        marks.removeAll(keepingCapacity: true)
        return true
    }

    private func compact() {
        guard queueStart > 64 * 1024 else { return }
        queue.removeFirst(queueStart)
        queueStart = 0
    }

    #if os(Linux)
    private static let noSignal = Int32(MSG_NOSIGNAL)
    #else
    private static let noSignal: Int32 = 0
    #endif
}

/// A TCP connection on its way from the loop that accepted it to the loop of the peer connection that its first
/// connectivity check names.
struct StreamHandover: Sendable {
    let socket: StreamSocket
    /// When the connection was accepted. The time limit for its first successful check counts from then.
    let openedAt: MediaTime
    /// The bytes that were read but not handled, beginning with the frame of that check. At most the size of the read buffer.
    let unread: [UInt8]
}
