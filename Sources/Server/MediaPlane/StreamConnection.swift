import CSockets
import Foundation
import RTC

/// One TCP connection that carries datagrams (RFC 6544, passive; RFC 4571 framing), for networks that block UDP.
///
/// Both directions are bounded: a frame that is too long ends the connection, and what cannot be sent waits in a queue that the
/// router looks at (`queuedTime`) and that drops the newest when it is full.
final class StreamConnection {
    /// Half a second at 8 Mbit/s: what is older is of no use to a call.
    static let longestQueue = 512 * 1024
    /// A connection that has not shown a good check by then is none of ours.
    static let patience = MediaInterval.seconds(10)
    /// Room for several frames of the longest kind.
    private static let readSize = 16 * 1024

    let descriptor: Int32
    let path: Path
    let openedAt: MediaTime
    private let memory = UnsafeMutableRawBufferPointer.allocate(byteCount: readSize, alignment: 16)
    private var filled = 0
    private var queue: [UInt8] = []
    private var queueStart = 0
    /// Where in all that was ever queued a moment stands, so that the age of what waits is known; one every 20 ms.
    private var marks: [(offset: Int, at: MediaTime)] = []
    private var queuedTotal = 0
    private var sentTotal = 0
    private static let markInterval = MediaInterval.milliseconds(20)

    init(descriptor: Int32, path: Path, now: MediaTime) {
        (self.descriptor, self.path, openedAt) = (descriptor, path, now)
    }

    deinit {
        memory.deallocate()
        close(descriptor)
    }

    var isWaiting: Bool { queueStart < queue.count }

    /// About when the oldest of what waits was queued.
    var waitingSince: MediaTime? { isWaiting ? marks.first?.at : nil }

    // MARK: Reading

    /// Reads once and hands over the frames in it, in place. `done` is called before their memory is used again.
    /// - Returns: false when the connection is over.
    func read(_ body: (UnsafeMutableRawBufferPointer) -> Void, done: () -> Void) -> Bool {
        let room = UnsafeMutableRawBufferPointer(rebasing: memory[filled...])
        let count = recv(descriptor, room.baseAddress, room.count, Int32(MSG_DONTWAIT))
        if count < 0 { return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR }
        guard count > 0 else { return false }
        filled += count
        var offset = 0
        var isGood = true
        scan: while true {
            let whole = UnsafeRawBufferPointer(UnsafeMutableRawBufferPointer(rebasing: memory[..<filled]))
            switch StreamFraming.next(in: whole, at: offset) {
            case .frame(let range):
                offset = range.upperBound
                if !range.isEmpty { body(UnsafeMutableRawBufferPointer(rebasing: memory[range])) }
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

    /// - Returns: false when the queue was full and the datagram is lost.
    func send(_ datagram: UnsafeRawBufferPointer, now: MediaTime) -> Bool {
        guard datagram.count <= Int(UInt16.max), queue.count - queueStart + datagram.count + 2 <= Self.longestQueue
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

    /// Writes what the system takes.
    /// - Returns: false when the connection is over.
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
