import Datagrams
import Foundation
import RTC
import Testing

@testable import Server

@Suite("Media sockets")
struct MediaSocketsTests {
    @Test("a small buffer is a warning that says what to set")
    func note() throws {
        let note = try #require(MediaSockets.note(onBuffer: 212_992))
        #expect(note.contains("208 KiB") && note.hasSuffix("."))
        #if os(Linux)
        #expect(note.contains("net.core.wmem_max") && note.contains("4194304"))
        #endif
        #expect(MediaSockets.note(onBuffer: Int(SocketOptions.datagramBuffer)) == nil)
    }

    private static let loopback = IPAddress("127.0.0.1")

    private func close(_ opened: MediaSockets) {
        for loop in opened.loops {
            for socket in loop.sockets.datagram { Foundation.close(socket.descriptor) }
            for listener in loop.sockets.listeners { Foundation.close(listener) }
        }
    }

    @Test("each loop has a UDP port, and the first one accepts TCP connections for all")
    func several() throws {
        let addresses = try MediaAddresses(
            configured: Self.loopback, local: [], publicHost: nil, port: 0, loops: 3)
        let opened = try MediaSockets(addresses, port: 0, loops: 3)
        defer { close(opened) }
        let ports = opened.loops.map(\.port)
        #expect(Set(ports).count == 3 && opened.port == ports[0] && !ports.contains(0))
        for (loop, port) in zip(opened.loops, ports) {
            #expect(loop.sockets.datagram.map { SocketOptions.port(of: $0.descriptor) } == [UInt16(port)])
            #expect(loop.candidates.map(\.transport) == [.udp, .tcpPassive])
            #expect(loop.candidates.map { Int($0.address.port) } == [port, ports[0]])
        }
        #expect(opened.loops.map(\.sockets.listeners.count) == [1, 0, 0])
    }

    @Test("the loops have the configured port and those after it")
    func consecutive() throws {
        // Another program may take one of the ports between the two steps, so try several times.
        for _ in 0..<20 {
            let addresses = try MediaAddresses(configured: Self.loopback, local: [], publicHost: nil, port: 0)
            let free = try MediaSockets(addresses, port: 0)
            close(free)
            guard free.port < 65_000, let opened = try? MediaSockets(addresses, port: free.port, loops: 3) else {
                continue
            }
            close(opened)
            #expect(
                opened.loops.map(\.port) == [free.port, free.port + 1, free.port + 2] && opened.notes == free.notes)
            return
        }
        Issue.record("No three ports are free.")
    }

    @Test("a used port is an error, and ports above 65535 are an error too")
    func used() throws {
        let addresses = try MediaAddresses(configured: Self.loopback, local: [], publicHost: nil, port: 0)
        let first = try MediaSockets(addresses, port: 0)
        defer { close(first) }
        #expect(throws: MediaPlaneError.self) { try MediaSockets(addresses, port: first.port - 1, loops: 2) }
        let error = #expect(throws: MediaPlaneError.self) { try MediaSockets(addresses, port: 65_534, loops: 3) }
        #expect(error?.description.contains("media.loops") == true && error?.description.contains("65536") == true)
    }

    @Test("if one of the default ports is in use, all loops get other ports, and a note says so")
    func fallback() throws {
        let addresses = try MediaAddresses(configured: Self.loopback, local: [], publicHost: nil, port: 0)
        let last = TransportAddress(v4: 0x7f00_0001, port: UInt16(ConfabConfiguration.Media().port + 2))
        // Another test or program may have the port instead.
        let taken = try? SocketOptions.datagram(last)
        defer { if let taken { Foundation.close(taken) } }
        let opened = try MediaSockets(addresses, port: ConfabConfiguration.Media().port, loops: 3)
        defer { close(opened) }
        #expect(opened.loops.count == 3 && Set(opened.loops.map(\.port)).isDisjoint(with: 40_000...40_002))
        let note = try #require(opened.notes.first)
        #expect(note.contains("40000 to 40002") && note.hasSuffix("."))
        for loop in opened.loops { #expect(note.contains("\(loop.port)")) }
    }

    @Test("the ports of several loops are named as a range")
    func names() {
        #expect("\(MediaPorts(first: 40_000, loops: 1))" == "UDP and TCP port 40000")
        #expect("\(MediaPorts(first: 40_000, loops: 4))" == "UDP ports 40000 to 40003 and TCP port 40000")
    }

    #if os(Linux)
    /// Opens sockets behind NAT on a machine with these addresses, and returns them with their port.
    private func open(_ local: [String]) throws -> ([DatagramSocket], listeners: [Int32], UInt16) {
        let addresses = try MediaAddresses(
            configured: IPAddress("203.0.113.9"), local: local.compactMap { IPAddress($0) }, publicHost: nil, port: 0)
        let opened = try MediaSockets(addresses, port: 0)
        let sockets = opened.sockets.datagram.map { DatagramSocket(descriptor: $0.descriptor, isIPv6: $0.isIPv6) }
        return (sockets, opened.sockets.listeners, UInt16(opened.port))
    }

    @Test("an answer comes from the address that the datagram was sent to")
    func answers() throws {
        // All of 127.0.0.0/8 are addresses of a Linux machine.
        let (sockets, listeners, port) = try open(["127.0.0.2", "127.0.0.3"])
        defer { for descriptor in sockets.map(\.descriptor) + listeners { Foundation.close(descriptor) } }
        let client = try SocketOptions.datagram(TransportAddress(v4: 0x7f00_0001, port: 0))
        defer { Foundation.close(client) }
        let clientPort = try #require(SocketOptions.port(of: client))
        let io = try #require(BatchedDatagrams(probing: client))
        for last: UInt32 in [3, 2, 4] {
            let server = TransportAddress(v4: 0x7f00_0000 | last, port: port)
            let before = MediaTime.monotonic
            send("question", from: client, to: server, io)
            var (socket, arrived, source) = (-1, MediaTime(nanoseconds: 0), TransportAddress?.none)
            wait(for: sockets.map(\.descriptor))
            for (index, one) in sockets.enumerated() {
                _ = io.receive(one) { _, from, at in (socket, source, arrived) = (index, from, at) }
            }
            #expect(source == TransportAddress(v4: 0x7f00_0001, port: clientPort))
            #expect(arrived >= before && arrived <= .monotonic)
            // The wildcard socket, which is the first, answers for an address that has none of its own.
            #expect(socket == [2: 1, 3: 2, 4: 0][last])
            guard socket > 0 else { continue }
            send("answer", from: sockets[socket].descriptor, to: try #require(source), io)
            var answered: TransportAddress?
            wait(for: [client])
            _ = io.receive(DatagramSocket(descriptor: client, isIPv6: false)) { _, from, _ in answered = from }
            #expect(answered == server)
        }
    }

    /// Waits until one of the sockets is readable.
    private func wait(for sockets: [Int32]) {
        var polled = sockets.map { pollfd(fd: $0, events: Int16(POLLIN), revents: 0) }
        #expect(poll(&polled, nfds_t(polled.count), 10_000) > 0)
    }

    private func send(_ text: String, from socket: Int32, to remote: TransportAddress, _ io: BatchedDatagrams) {
        let arena = DatagramArena(joins: false)
        arena.prepare(text.utf8.count)?.copyBytes(from: Array(text.utf8))
        arena.commit(text.utf8.count, on: Path(socket: 0, remote: remote))
        #expect(io.send(arena, on: [DatagramSocket(descriptor: socket, isIPv6: false)]) == 0)
    }

    @Test(
        "datagrams that are sent in one message are read one by one, and those that are too long are ignored",
        arguments: [true, false])
    func pieces(takesPieces: Bool) throws {
        let (sender, receiver) = (
            try SocketOptions.datagram(TransportAddress(v4: 0x7f00_0001, port: 0)),
            try SocketOptions.datagram(TransportAddress(v4: 0x7f00_0001, port: 0))
        )
        defer { for descriptor in [sender, receiver] { Foundation.close(descriptor) } }
        if takesPieces { try #require(SocketOptions.joinSegments(receiver), "Linux 5.0 and later join segments") }
        let port = try #require(SocketOptions.port(of: receiver))
        let path = Path(socket: 0, remote: TransportAddress(v4: 0x7f00_0001, port: port))
        let io = try #require(BatchedDatagrams(probing: receiver, takesPieces: takesPieces))
        let arena = DatagramArena(joins: io.joins)
        let sizes = [1000, 1000, 1000, 400, 2048, 7, 2049]
        for (index, size) in sizes.enumerated() {
            arena.prepare(size)?.initializeMemory(as: UInt8.self, repeating: UInt8(index))
            arena.commit(size, on: path)
        }
        #expect(io.send(arena, on: [DatagramSocket(descriptor: sender, isIPv6: false)]) == 0)
        wait(for: [receiver])
        var received: [[UInt8]] = []
        _ = io.receive(DatagramSocket(descriptor: receiver, isIPv6: false)) { bytes, _, _ in
            received.append(Array(bytes))
        }
        let expected = sizes.enumerated().filter { $1 <= 2048 }.map { [UInt8](repeating: UInt8($0), count: $1) }
        #expect(received.map(\.count) == expected.map(\.count) && received == expected)
    }

    /// The ways to receive datagrams.
    enum Receiving: CaseIterable { case pieces, batches, single }

    @Test("a datagram after a too long one is read, even if the kernel has joined them", arguments: Receiving.allCases)
    func afterTooLong(receiving: Receiving) throws {
        let (sender, receiver) = (
            try SocketOptions.datagram(TransportAddress(v4: 0x7f00_0001, port: 0)),
            try SocketOptions.datagram(TransportAddress(v4: 0x7f00_0001, port: 0))
        )
        defer { for descriptor in [sender, receiver] { Foundation.close(descriptor) } }
        if receiving == .pieces { try #require(SocketOptions.joinSegments(receiver)) }
        let batched = try #require(BatchedDatagrams(probing: receiver, takesPieces: receiving == .pieces))
        let io: any DatagramIO = receiving == .single ? PlainDatagrams() : batched
        let port = try #require(SocketOptions.port(of: receiver))
        let arena = DatagramArena(joins: batched.joins)
        for size in [2049, 7, 3000, 2048] {
            arena.prepare(size)?.initializeMemory(as: UInt8.self, repeating: 1)
            arena.commit(size, on: Path(socket: 0, remote: TransportAddress(v4: 0x7f00_0001, port: port)))
        }
        #expect(batched.send(arena, on: [DatagramSocket(descriptor: sender, isIPv6: false)]) == 0)
        var received: [Int] = []
        for _ in 0..<4 where received.last != 2048 {
            wait(for: [receiver])
            _ = io.receive(DatagramSocket(descriptor: receiver, isIPv6: false)) { bytes, _, _ in
                received.append(bytes.count)
            }
        }
        #expect(received == [7, 2048])
    }

    @Test("no other program can share the port")
    func alone() throws {
        let (sockets, listeners, port) = try open(["127.0.0.2"])
        defer { for descriptor in sockets.map(\.descriptor) + listeners { Foundation.close(descriptor) } }
        for address: UInt32 in [0, 0x7f00_0002, 0x7f00_0009] {
            #expect(throws: SocketError.self) {
                try SocketOptions.datagram(TransportAddress(v4: address, port: port), isShared: true)
            }
        }
    }

    @Test("a datagram's time of arrival is when the kernel got it, not when it was read")
    func arrival() throws {
        let socket = try SocketOptions.datagram(TransportAddress(v4: 0x7f00_0001, port: 0))
        defer { Foundation.close(socket) }
        SocketOptions.stampArrivals(socket)
        let io = try #require(BatchedDatagrams(probing: socket))
        let own = TransportAddress(v4: 0x7f00_0001, port: try #require(SocketOptions.port(of: socket)))
        // Until the system has noticed that a program wants the times, it notes none.
        var times: [MediaTime] = []
        for _ in 0..<2 {
            send("x", from: socket, to: own, io)
            let sent = MediaTime.monotonic
            // The loop is late.
            while MediaTime.monotonic - sent < .milliseconds(20) {}
            wait(for: [socket])
            _ = io.receive(DatagramSocket(descriptor: socket, isIPv6: false)) { _, _, at in times.append(at) }
            #expect(times.count > 0)
            if let last = times.last, last - sent < .milliseconds(10) { return }
        }
        Issue.record("The datagram seems to have arrived when it was read.")
    }
    #endif
}
