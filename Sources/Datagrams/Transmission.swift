import Foundation
import RTC

/// The system calls that send a batch of messages over one socket.
package protocol MessageSending {
    /// The time of a monotonic clock.
    var now: MediaTime { get }
    /// Sends messages from `first` up to but excluding `end`.
    /// - Returns: the number of messages sent; if none, the error of the first.
    func send(_ first: Int, _ end: Int) -> (sent: Int, error: Int32)
    /// Sends one segment of a message as a separate datagram.
    /// - Returns: the error; 0 if there was none.
    func send(segment: Int, of message: Int) -> Int32
    /// Returns the number of datagrams in a message.
    func segments(of message: Int) -> Int
    /// Waits until the socket has room, but no longer than `time`.
    func waitForRoom(_ time: MediaInterval)
}

/// The time that sending may still wait for sockets with full buffers. Without waiting, the end of a burst larger than
/// the buffer would be lost, always for the same subscribers.
package struct SendWait {
    /// The maximum total time for which sending one batch may wait. It is short because no packets are
    /// received during that time.
    package static let most = MediaInterval.milliseconds(5)

    private var left = Self.most
    /// The number of times that sending had to wait.
    package private(set) var waits = 0

    package init() {}

    /// Waits until the socket has room or the time is used up.
    /// - Returns: false, without waiting, if the time was already used up.
    mutating func wait(for sender: some MessageSending) -> Bool {
        guard left > .zero else { return false }
        waits += 1
        let start = sender.now
        sender.waitForRoom(left)
        // Count at least a millisecond, so that a wait that fails immediately is not repeated endlessly.
        left = left - max(sender.now - start, .milliseconds(1))
        return true
    }
}

/// Sends messages `0..<count`. Waits for a full socket, and sends the segments of a message one by one if the system refuses to
/// split it, for example because an interface's MTU is too small for its datagrams. Adds the system calls and messages
/// to `counters`.
/// - Returns: the number of lost datagrams.
package func transmit(
    _ count: Int, over sender: some MessageSending, _ waiting: inout SendWait, _ counters: inout DatagramCounters
) -> Int {
    var (next, lost) = (0, 0)
    while next < count {
        let (sent, error) = sender.send(next, count)
        if sent > 0 {
            counters.writes &+= 1
            counters.messages &+= UInt64(sent)
            next += sent
            continue
        }
        if isFull(error), waiting.wait(for: sender) { continue }
        // If the system refused to split this message, send its segments one by one. After any other error, give up on
        // the message. In both cases, continue with the next message, which may succeed because it is shorter or has
        // another address.
        let segments = sender.segments(of: next)
        if segments > 1, [EMSGSIZE, EINVAL, EIO].contains(error) {
            lost += transmitSegments(segments, of: next, over: sender, &waiting, &counters)
        } else {
            lost += segments
        }
        next += 1
    }
    return lost
}

private func transmitSegments(
    _ count: Int, of message: Int, over sender: some MessageSending, _ waiting: inout SendWait,
    _ counters: inout DatagramCounters
) -> Int {
    var (next, lost) = (0, 0)
    while next < count {
        let error = sender.send(segment: next, of: message)
        if isFull(error), waiting.wait(for: sender) { continue }
        if error == 0 {
            counters.writes &+= 1
            counters.messages &+= 1
        } else {
            lost += 1
        }
        next += 1
    }
    return lost
}

private func isFull(_ error: Int32) -> Bool { error == EAGAIN || error == EWOULDBLOCK }

extension DatagramSocket {
    /// Waits until the socket has room, but no longer than `time`.
    func waitForRoom(_ time: MediaInterval) {
        var entry = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
        _ = poll(&entry, 1, Int32(clamping: max(1, time.milliseconds)))
    }
}
