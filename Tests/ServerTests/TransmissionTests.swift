import CSockets
import Foundation
import RTC
import Testing

@testable import Datagrams

/// A socket whose answers are scripted.
private final class ScriptedSocket: MessageSending {
    /// The errors of the next calls; 0 means that everything is sent.
    var errors: [Int32]
    /// How long each wait for room takes. The socket has room afterwards unless `isStuck`.
    var wait = MediaInterval.milliseconds(1)
    var isStuck = false
    /// The error for single segments with these numbers.
    var segmentErrors: [Int: Int32] = [:]
    let segmentCounts: [Int]
    private(set) var now = MediaTime(nanoseconds: 0)
    private(set) var calls = 0
    private(set) var sent: [Int] = []
    private(set) var single: [[Int]] = []

    init(_ segmentCounts: [Int], errors: [Int32]) { (self.segmentCounts, self.errors) = (segmentCounts, errors) }

    func send(_ first: Int, _ end: Int) -> (sent: Int, error: Int32) {
        calls += 1
        let error = isStuck ? EAGAIN : errors.isEmpty ? 0 : errors.removeFirst()
        guard error == 0 else { return (0, error) }
        // If more errors are scripted, they are for the messages after the first.
        let sending = errors.isEmpty ? end - first : 1
        sent += first..<first + sending
        return (sending, 0)
    }

    func send(segment: Int, of message: Int) -> Int32 {
        single.append([message, segment])
        return segmentErrors[segment] ?? 0
    }

    func segments(of message: Int) -> Int { segmentCounts[message] }

    func waitForRoom(_ time: MediaInterval) { now = now + min(time, wait) }
}

@Suite("Sending datagrams")
struct TransmissionTests {
    @Test("waits for a full socket and loses nothing")
    func full() {
        let socket = ScriptedSocket([1, 4, 1], errors: [0, EAGAIN, EAGAIN, 0])
        var (waiting, counters) = (SendWait(), DatagramCounters())
        let lost = transmit(3, over: socket, &waiting, &counters)
        #expect(lost == 0 && socket.sent == [0, 1, 2])
        #expect(waiting.waits == 2)
        #expect(counters.writes == 2 && counters.messages == 3)
    }

    @Test("does not wait longer than it may, and counts every lost datagram", arguments: [0, 1, 100] as [Int64])
    func stuck(milliseconds: Int64) {
        let socket = ScriptedSocket([1, 4, 7], errors: [])
        (socket.isStuck, socket.wait) = (true, .milliseconds(milliseconds))
        var (waiting, counters) = (SendWait(), DatagramCounters())
        let lost = transmit(3, over: socket, &waiting, &counters)
        #expect(lost == 12)
        #expect(socket.now - MediaTime(nanoseconds: 0) <= SendWait.most)
        #expect(socket.calls <= 3 + waiting.waits && waiting.waits <= 5)
        #expect(counters == DatagramCounters())
    }

    @Test("sends the segments of a message one by one if the system refuses it", arguments: [EMSGSIZE, EINVAL, EIO])
    func refused(error: Int32) {
        let socket = ScriptedSocket([1, 3, 1], errors: [0, error, 0])
        socket.segmentErrors = [1: EPERM]
        var (waiting, counters) = (SendWait(), DatagramCounters())
        let lost = transmit(3, over: socket, &waiting, &counters)
        #expect(socket.single == [[1, 0], [1, 1], [1, 2]])
        #expect(lost == 1 && socket.sent == [0, 2])
        #expect(counters.writes == 4 && counters.messages == 4)
    }

    @Test("skips a message that cannot be sent, and sends the others")
    func unreachable() {
        let socket = ScriptedSocket([1, 3, 1], errors: [0, ENETUNREACH, 0])
        var (waiting, counters) = (SendWait(), DatagramCounters())
        let lost = transmit(3, over: socket, &waiting, &counters)
        #expect(lost == 3 && socket.sent == [0, 2] && socket.single.isEmpty && waiting.waits == 0)
        let alone = ScriptedSocket([1], errors: [EMSGSIZE])
        let lostAlone = transmit(1, over: alone, &waiting, &counters)
        #expect(lostAlone == 1 && alone.single.isEmpty)
    }

    #if os(Linux)
    @Test("datagrams arrive although the kernel refuses to split messages")
    func refusedByTheKernel() throws {
        let address = TransportAddress(v4: 0x7f00_0001, port: 0)
        let (sending, receiving) = (try SocketOptions.datagram(address), try SocketOptions.datagram(address))
        defer { for descriptor in [sending, receiving] { close(descriptor) } }
        // The kernel splits no message of a socket without checksums (EINVAL).
        var on: Int32 = 1
        #expect(setsockopt(sending, SOL_SOCKET, SO_NO_CHECK, &on, socklen_t(MemoryLayout<Int32>.size)) == 0)
        let io = try #require(BatchedDatagrams(probing: sending))
        let arena = DatagramArena(joins: true)
        let remote = TransportAddress(v4: 0x7f00_0001, port: try #require(SocketOptions.port(of: receiving)))
        for length in [1216, 1216, 1216, 700] {
            let memory = try #require(arena.prepare(length))
            for index in 0..<length { memory[index] = UInt8(truncatingIfNeeded: length) }
            arena.commit(length, on: Path(socket: 0, remote: remote))
        }
        let messages = arena.messages.count
        #expect(messages == 1)
        let lost = io.send(arena, on: [DatagramSocket(descriptor: sending, isIPv6: false)])
        #expect(lost == 0)
        var buffer = [UInt8](repeating: 0, count: 2048)
        let lengths = (0..<5).map { _ in recv(receiving, &buffer, buffer.count, Int32(MSG_DONTWAIT)) }
        #expect(lengths == [1216, 1216, 1216, 700, -1])
        #expect(io.counters.messages == 4 && io.counters.sent == 4)
    }

    @Test("calls, messages and datagrams are counted in both directions", arguments: [false, true])
    func counts(joins: Bool) throws {
        let address = TransportAddress(v4: 0x7f00_0001, port: 0)
        let (sending, receiving) = (try SocketOptions.datagram(address), try SocketOptions.datagram(address))
        defer { for descriptor in [sending, receiving] { close(descriptor) } }
        let io = try #require(BatchedDatagrams(probing: sending))
        // Without UDP GSO, which old kernels lack, each datagram is a message.
        let isJoining = joins && io.joins
        let arena = DatagramArena(joins: isJoining)
        let remote = TransportAddress(v4: 0x7f00_0001, port: try #require(SocketOptions.port(of: receiving)))
        for _ in 0..<5 {
            #expect(arena.prepare(1000) != nil)
            arena.commit(1000, on: Path(socket: 0, remote: remote))
        }
        #expect(io.send(arena, on: [DatagramSocket(descriptor: sending, isIPv6: false)]) == 0)
        var entry = pollfd(fd: receiving, events: Int16(POLLIN), revents: 0)
        #expect(poll(&entry, 1, 10_000) == 1)
        #expect(io.receive(DatagramSocket(descriptor: receiving, isIPv6: false)) { _, _, _ in } == 5)
        var expected = DatagramCounters()
        (expected.writes, expected.messages, expected.sent) = (1, isJoining ? 1 : 5, 5)
        (expected.reads, expected.received) = (1, 5)
        (expected.offeredBytes, expected.receivedBytes) = (5000, 5000)
        #expect(io.counters == expected)
    }

    @Test("media sockets ignore what the network says about the path's MTU")
    func pathMTU() throws {
        for (address, level, option) in [
            (TransportAddress(v4: 0x7f00_0001, port: 0), Int32(IPPROTO_IP), IP_MTU_DISCOVER),
            (TransportAddress(high: 0, low: 1, port: 0), Int32(IPPROTO_IPV6), IPV6_MTU_DISCOVER),
        ] {
            // A machine may have no IPv6.
            guard let descriptor = try? SocketOptions.datagram(address) else { continue }
            defer { close(descriptor) }
            var (mode, length) = (Int32(-1), socklen_t(MemoryLayout<Int32>.size))
            #expect(getsockopt(descriptor, level, option, &mode, &length) == 0)
            // IP_PMTUDISC_OMIT and IPV6_PMTUDISC_OMIT.
            #expect(mode == 5)
        }
    }
    #endif

    @Test("a TCP connection keeps little in the kernel that the network has not taken")
    func unsent() throws {
        let listener = try SocketOptions.listener(TransportAddress(v4: 0x7f00_0001, port: 0))
        defer { close(listener) }
        SocketOptions.configureStream(listener)
        var (bytes, length) = (Int32(0), socklen_t(MemoryLayout<Int32>.size))
        #expect(getsockopt(listener, Int32(IPPROTO_TCP), TCP_NOTSENT_LOWAT, &bytes, &length) == 0)
        #expect(bytes == 16 << 10)
    }

    @Test("the size of a socket's buffers is what the system gave")
    func buffers() throws {
        let descriptor = try SocketOptions.datagram(TransportAddress(v4: 0x7f00_0001, port: 0))
        defer { close(descriptor) }
        let size = SocketOptions.smallestBuffer(of: descriptor)
        #expect(size > 0 && size <= Int(SocketOptions.datagramBuffer))
        var small: Int32 = 64 << 10
        #expect(setsockopt(descriptor, SOL_SOCKET, SO_SNDBUF, &small, socklen_t(MemoryLayout<Int32>.size)) == 0)
        #expect(SocketOptions.smallestBuffer(of: descriptor) == 64 << 10)
    }
}
