import Foundation
import RTC

/// The system calls that send a batch of messages over one socket.
package protocol MessageSending {
    /// The time by a monotonic clock.
    var now: MediaTime { get }
    /// Sends messages from `first` up to but excluding `end`.
    /// - Returns: how many were sent; if none, the error of the first.
    func send(_ first: Int, _ end: Int) -> (sent: Int, error: Int32)
    /// Sends one segment of a message as a datagram of its own.
    /// - Returns: the error; 0 if there was none.
    func send(segment: Int, of message: Int) -> Int32
    /// Returns how many datagrams a message contains.
    func segments(of message: Int) -> Int
    /// Waits until the socket has room, at most this long.
    func waitForRoom(_ time: MediaInterval)
}

/// How long sending may still wait for sockets whose buffers are full. Without waiting, a burst that is larger than the buffer
/// loses its end, always for the same subscribers.
package struct SendWait {
    /// The maximum time for one batch. Meanwhile no packets are received, so it is short.
    package static let most = MediaInterval.milliseconds(5)

    private var left = Self.most
    /// The number of times that sending had to wait.
    package private(set) var waits = 0

    package init() {}

    /// Waits until the socket has room.
    /// - Returns: false if the time is used up.
    mutating func wait(for sender: some MessageSending) -> Bool {
        guard left > .zero else { return false }
        waits += 1
        let start = sender.now
        sender.waitForRoom(left)
        // A wait that fails at once must not be repeated without end.
        left = left - max(sender.now - start, .milliseconds(1))
        return true
    }
}

/// Sends messages `0..<count`. Waits for a full socket, and sends the segments of a message one by one if the system refuses to
/// split it, for example because an interface is too narrow for its datagrams.
/// - Returns: the number of lost datagrams.
package func transmit(_ count: Int, over sender: some MessageSending, _ waiting: inout SendWait) -> Int {
    var (next, lost) = (0, 0)
    while next < count {
        let (sent, error) = sender.send(next, count)
        if sent > 0 {
            next += sent
            continue
        }
        if isFull(error), waiting.wait(for: sender) { continue }
        // Other messages may succeed, because they are shorter or have other addresses.
        let segments = sender.segments(of: next)
        if segments > 1, [EMSGSIZE, EINVAL, EIO].contains(error) {
            lost += transmitSegments(segments, of: next, over: sender, &waiting)
        } else {
            lost += segments
        }
        next += 1
    }
    return lost
}

private func transmitSegments(
    _ count: Int, of message: Int, over sender: some MessageSending, _ waiting: inout SendWait
) -> Int {
    var (next, lost) = (0, 0)
    while next < count {
        let error = sender.send(segment: next, of: message)
        if isFull(error), waiting.wait(for: sender) { continue }
        if error != 0 { lost += 1 }
        next += 1
    }
    return lost
}

private func isFull(_ error: Int32) -> Bool { error == EAGAIN || error == EWOULDBLOCK }

extension DatagramSocket {
    /// Waits until the socket has room, at most this long.
    func waitForRoom(_ time: MediaInterval) {
        var entry = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
        _ = poll(&entry, 1, Int32(clamping: max(1, time.milliseconds)))
    }
}
