import Datagrams
import Foundation
import RTC

/// Sends datagrams to one address until an answer arrives. Blocks, but never for longer than its limit.
enum DatagramProbe {
    /// What to do after a datagram has arrived.
    enum Step {
        /// It is not the answer.
        case wait
        /// Send another request.
        case send([UInt8])
        /// It is the answer. Send one more datagram if there is one.
        case finish([UInt8]?)
    }

    /// The time until a request is sent again (RFC 8489 §6.2.1 has 0.5 s). It doubles each time, up to a second.
    private static let firstRetransmission = Duration.milliseconds(250)
    private static let longestRetransmission = Duration.seconds(1)

    /// - Parameters:
    ///   - first: the request to begin with.
    ///   - receive: gets each datagram.
    static func exchange(
        with address: TransportAddress, within limit: Duration, first: [UInt8], _ receive: ([UInt8]) -> Step
    ) -> ExchangeOutcome {
        let local = address.isIPv4 ? TransportAddress(v4: 0, port: 0) : TransportAddress(high: 0, low: 0, port: 0)
        let descriptor: Int32
        do throws(SocketError) { descriptor = try SocketOptions.datagram(local) } catch {
            return .unreachable(error.description)
        }
        defer { close(descriptor) }
        // A connected socket receives only from this address, and reports that a port is closed.
        guard connect(descriptor, to: address) else { return failure() }
        let end = ContinuousClock.now + limit
        var (request, wait) = (first, firstRetransmission)
        while ContinuousClock.now < end {
            guard send(request, descriptor) else { return failure() }
            let again = min(ContinuousClock.now + wait, end)
            wait = min(wait * 2, longestRetransmission)
            var isReplaced = false
            while !isReplaced, ContinuousClock.now < again {
                guard let datagram = next(descriptor, until: again) else {
                    if errno == ECONNREFUSED { return .refused }
                    continue
                }
                switch receive(datagram) {
                case .wait: break
                case .send(let next): (request, wait, isReplaced) = (next, firstRetransmission, true)
                case .finish(let last):
                    if let last { _ = send(last, descriptor) }
                    return .answered
                }
            }
        }
        return .silent
    }

    private static func failure() -> ExchangeOutcome {
        errno == ECONNREFUSED ? .refused : .unreachable(String(cString: strerror(errno)))
    }

    private static func connect(_ descriptor: Int32, to address: TransportAddress) -> Bool {
        guard let (storage, length) = address.storage(ipv6: !address.isIPv4) else { return false }
        return withUnsafePointer(to: storage) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { Foundation.connect(descriptor, $0, length) }
                == 0
        }
    }

    /// Returns whether the datagram was sent. A full buffer counts as sent, because datagrams can be lost anyway.
    private static func send(_ datagram: [UInt8], _ descriptor: Int32) -> Bool {
        let sent = datagram.withUnsafeBytes { Foundation.send(descriptor, $0.baseAddress, $0.count, 0) }
        return sent >= 0 || errno == EAGAIN || errno == EINTR || errno == ENOBUFS
    }

    /// Waits for a datagram. Returns nil, with `errno`, if none arrives until then.
    private static func next(_ descriptor: Int32, until end: ContinuousClock.Instant) -> [UInt8]? {
        let left = max(ContinuousClock.now.duration(to: end), .zero)
        var waiting = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
        errno = 0
        guard
            poll(
                &waiting, 1,
                Int32(
                    clamping: left.components.seconds * 1000 + left.components.attoseconds / 1_000_000_000_000_000 + 1))
                > 0
        else { return nil }
        var memory = [UInt8](repeating: 0, count: 2048)
        let count = memory.withUnsafeMutableBytes { recv(descriptor, $0.baseAddress, $0.count, 0) }
        return count >= 0 ? Array(memory.prefix(count)) : nil
    }
}
