import CSockets
import Datagrams
import Foundation
import RTC
import Signaling
import Synchronization
import Testing
import Wire

@testable import Server

/// A media client that connects over TCP, driven by the test.
private final class StreamLine: DatagramSink {
    let transport: PeerTransport
    let local = ICECredentials.random
    private let descriptor: Int32
    private let path: Path
    private let memory = UnsafeMutableRawBufferPointer.allocate(byteCount: 2048, alignment: 16)
    private var unread: [UInt8] = []
    private(set) var isClosed = false
    /// How many times to send each frame, in one piece.
    var copies = 1

    init(_ certificate: DTLSCertificate, port: Int) throws {
        let server = TransportAddress(v4: 0x7f00_0001, port: UInt16(port))
        descriptor = try Self.connect(to: server)
        path = Path(socket: 0, isTCP: true, remote: server)
        transport = PeerTransport(client: local, certificate: certificate)
    }

    deinit {
        memory.deallocate()
        close(descriptor)
    }

    private static func connect(to server: TransportAddress) throws -> Int32 {
        #if os(Linux)
        let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        #else
        let descriptor = socket(AF_INET, SOCK_STREAM, 0)
        #endif
        var (storage, length) = try #require(server.storage(ipv6: false))
        let result = withUnsafePointer(to: &storage) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { Foundation.connect(descriptor, $0, length) }
        }
        try #require(result == 0)
        return descriptor
    }

    /// Sends checks to the server with these credentials.
    func begin(_ remote: ICECredentials, _ fingerprint: Fingerprint) {
        transport.setRemote(remote, fingerprint: fingerprint)
        transport.add(path, priority: 1)
    }

    func prepare(_ capacity: Int) -> UnsafeMutableRawBufferPointer { memory }

    func send(_ count: Int, on path: Path) {
        let frame = [UInt8(count >> 8), UInt8(count & 0xff)] + memory[..<count]
        write((0..<copies).flatMap { _ in frame })
    }

    func write(_ bytes: [UInt8]) {
        #if os(Linux)
        _ = Foundation.send(descriptor, bytes, bytes.count, Int32(MSG_NOSIGNAL))
        #else
        _ = Foundation.send(descriptor, bytes, bytes.count, 0)
        #endif
    }

    /// Receives what has arrived and handles expired timers.
    func turn() {
        var buffer = [UInt8](repeating: 0, count: 4096)
        while !isClosed {
            let count = recv(descriptor, &buffer, buffer.count, Int32(MSG_DONTWAIT))
            isClosed = count == 0 || count < 0 && ![EAGAIN, EWOULDBLOCK, EINTR].contains(errno)
            guard count > 0 else { break }
            unread += buffer[..<count]
        }
        var offset = 0
        unread.withUnsafeMutableBytes { bytes in
            while case .frame(let range) = StreamFraming.next(in: UnsafeRawBufferPointer(bytes), at: offset) {
                let frame = UnsafeMutableRawBufferPointer(rebasing: bytes[range])
                _ = transport.receive(frame, on: path, now: .monotonic, sink: self)
                offset = range.upperBound
            }
        }
        unread.removeFirst(offset)
        if let due = transport.nextTimeout, due <= .monotonic { transport.handleTimeout(now: .monotonic, sink: self) }
    }
}

extension ICECredentials {
    fileprivate static var random: ICECredentials {
        var random = SystemRandomNumberGenerator()
        return ICECredentials(using: &random)
    }
}

/// A media plane with several loops, and the events that it has reported.
private final class Plane: Sendable {
    private let received = Mutex<[MediaEvent]>([])
    private let running: RunningMedia

    init(loops: Int, isPortable: Bool = false) throws {
        var settings = MediaPlane.Settings(port: 0, address: IPAddress("127.0.0.1"))
        (settings.loops, settings.isPortable) = (loops, isPortable)
        running = try RunningMedia(settings, logger: LogLines().logger)
        running.deliver { [weak self] event in self?.received.withLock { $0.append(event) } }
    }

    deinit { running.plane.stop() }

    var media: MediaPlane { running.plane }
    var events: [MediaEvent] { received.withLock { $0 } }

    /// Negotiates a connection over which the client sends audio, and returns the server's credentials, candidates and
    /// fingerprint.
    func offer(
        _ client: ConnectionID, _ local: ICECredentials, _ certificate: DTLSCertificate
    ) async throws -> (credentials: ICECredentials, fingerprint: Fingerprint, candidates: [Candidate]) {
        let source = LocalSource(ssrc: 7, rtxSSRC: nil, msid: MediaStreamID(stream: "s", track: "t"))
        let parameters = LocalParameters(
            ufrag: local.ufrag, pwd: local.password, fingerprint: certificate.fingerprint, candidates: [], sessionID: 1,
            cname: "c")
        let offer = RTC.offer([.audio(mid: "a", .sendonly, source: source)], local: parameters)
        media.perform(.offer(client, in: nil, re: client.low, .send, sdp: offer.text))
        var text: String?
        try await eventually {
            for case .answered(client, _, _, let sdp) in events { text = sdp }
            return text == nil ? "the offer is not answered" : nil
        }
        let answer = try SessionDescription(parsing: #require(text))
        let remote = try RTC.accept(answer, to: offer).remote
        let credentials = try #require(ICECredentials(ufrag: remote.ufrag, password: remote.pwd))
        return (credentials, remote.fingerprint, answer.sections[0].transport.candidates)
    }
}

@Suite("Several media loops", .ownThreads, .timeLimit(.minutes(3))) struct MediaLoopsTests {
    private static func client(_ number: UInt64) -> ConnectionID { ConnectionID(high: 0, low: number) }

    @Test("each loop answers with its own UDP port, the common TCP port, and a username fragment that names it")
    func candidates() async throws {
        let plane = try Plane(loops: 3)
        let certificate = try #require(DTLSCertificate.make())
        #expect(Set(plane.media.udpPorts).count == 3 && plane.media.port == plane.media.udpPorts[0])
        for number: UInt64 in 0..<4 {
            let loop = Int(number % 3)
            let answer = try await plane.offer(Self.client(number), .random, certificate)
            #expect(ICECredentials.owner(ofUfrag: answer.credentials.ufrag.utf8) == loop)
            #expect(answer.candidates.map { Int($0.address.port) } == [plane.media.udpPorts[loop], plane.media.port])
        }
        // A new offer of the first client goes to its loop, although the next loop has fewer clients.
        let again = try await plane.offer(Self.client(0), .random, certificate)
        #expect(ICECredentials.owner(ofUfrag: again.credentials.ufrag.utf8) == 0)
    }

    @Test("TCP connections reach the loop of their peer connection", arguments: [1, 3], [false, true])
    func handOver(copies: Int, isPortable: Bool) async throws {
        let plane = try Plane(loops: 3, isPortable: isPortable)
        let certificate = try #require(DTLSCertificate.make())
        var lines: [StreamLine] = []
        for number: UInt64 in 0..<3 {
            let line = try StreamLine(certificate, port: plane.media.port)
            line.copies = copies
            let answer = try await plane.offer(Self.client(number), line.local, certificate)
            line.begin(answer.credentials, answer.fingerprint)
            lines.append(line)
        }
        try await eventually {
            for line in lines { line.turn() }
            let connected = (0..<3).filter { plane.events.contains(.connected(Self.client(UInt64($0)), .send, true)) }
            return connected.count == 3 && lines.allSatisfy { $0.transport.state == .connected }
                ? nil : "only \(connected) are connected"
        }
        #expect(lines.allSatisfy { !$0.isClosed })
        // The end of a connection that was handed over reaches its loop, too.
        plane.media.perform(.leave(Self.client(1)))
        try await eventually {
            lines[1].turn()
            // A connection that is older than the limit for unverified ones may be closed before the DTLS alert is sent.
            let isOver = lines[1].transport.state == .closed || lines[1].isClosed
            return isOver ? nil : "the connection is \(lines[1].transport.state)"
        }
    }

    @Test("a connection whose first check names a loop but none of its peer connections is closed")
    func unwanted() async throws {
        let plane = try Plane(loops: 2)
        let certificate = try #require(DTLSCertificate.make())
        var random = SystemRandomNumberGenerator()
        let line = try StreamLine(certificate, port: plane.media.port)
        line.begin(ICECredentials(using: &random, owner: 1), certificate.fingerprint)
        let began = MediaTime.monotonic
        try await eventually {
            line.turn()
            return line.isClosed ? nil : "the connection is open"
        }
        #expect(MediaTime.monotonic - began < StreamConnection.handshakeTimeout)
    }

    @Test("a media plane that has stopped has closed its connections and its ports")
    func stopping() async throws {
        let plane = try Plane(loops: 2)
        let certificate = try #require(DTLSCertificate.make())
        var lines: [StreamLine] = []
        for number: UInt64 in 0..<2 {
            let line = try StreamLine(certificate, port: plane.media.port)
            let answer = try await plane.offer(Self.client(number), line.local, certificate)
            line.begin(answer.credentials, answer.fingerprint)
            lines.append(line)
        }
        // This one never sends a check.
        lines.append(try StreamLine(certificate, port: plane.media.port))
        try await eventually {
            for line in lines { line.turn() }
            return lines[..<2].allSatisfy { $0.transport.state == .connected } ? nil : "they are not connected"
        }
        plane.media.stop()
        try await eventually {
            for line in lines { line.turn() }
            return lines.allSatisfy(\.isClosed) ? nil : "\(lines.map(\.isClosed))"
        }
        for port in plane.media.udpPorts {
            try await eventually {
                guard let socket = try? SocketOptions.datagram(TransportAddress(v4: 0x7f00_0001, port: UInt16(port)))
                else { return "UDP port \(port) is in use" }
                close(socket)
                return nil
            }
        }
    }

    @Test("all loops together have the counters, and each answers heartbeats")
    func counters() async throws {
        let plane = try Plane(loops: 2)
        for number: UInt64 in 1...4 {
            plane.media.perform(
                .publish(
                    StreamID(high: 0, low: number), .unset, by: Self.client(number), MediaMids(audio: "a"), audio: true,
                    video: false))
        }
        try await eventually {
            plane.media.loopCounters.allSatisfy { $0.wakeups > 0 } ? nil : "\(plane.media.loopCounters.map(\.wakeups))"
        }
        #expect(plane.media.counters.wakeups >= plane.media.loopCounters[0].wakeups)
        #expect(plane.media.isResponsive)
    }
}

@Suite("The places for TCP connections for media") struct StreamPlacesTests {
    /// Opens a descriptor and takes a place for it.
    private func accept(_ address: String, _ places: StreamPlaces) throws -> StreamSocket? {
        var ends: [Int32] = [0, 0]
        try #require(pipe(&ends) == 0)
        close(ends[1])
        let remote = try #require(IPAddress(address)).transportAddress(port: 1)
        return StreamSocket(accepted: ends[0], from: remote, in: places)
    }

    @Test("an address has a limited number of unverified connections, over all loops")
    func unverified() throws {
        let places = StreamPlaces()
        var sockets = try (0..<StreamPlaces.maxUnverifiedPerAddress).compactMap { _ in try accept("192.0.2.1", places) }
        #expect(sockets.count == StreamPlaces.maxUnverifiedPerAddress)
        #expect(try accept("192.0.2.1", places) == nil)
        let other = try accept("192.0.2.2", places)
        #expect(other != nil)
        sockets[0].setVerified(true)
        let more = try accept("192.0.2.1", places)
        #expect(more != nil)
        #expect(try accept("192.0.2.1", places) == nil)
        sockets[0].setVerified(false)
        sockets.removeLast()
        #expect(try accept("192.0.2.1", places) == nil)
        sockets.removeLast()
        #expect(try accept("192.0.2.1", places) != nil)
    }

    @Test("all addresses together, and the verified ones of an address, are limited too")
    func total() throws {
        let places = StreamPlaces(limit: 20)
        var sockets: [StreamSocket] = []
        for _ in 0..<10 {
            let socket = try #require(try accept("192.0.2.1", places))
            socket.setVerified(true)
            sockets.append(socket)
        }
        #expect(try accept("192.0.2.1", places) == nil, "it has half of all")
        for last in 2..<12 {
            let socket = try #require(try accept("192.0.2.\(last)", places))
            if last < 8 { socket.setVerified(true) }
            sockets.append(socket)
        }
        #expect(try accept("192.0.2.99", places) == nil)
        sockets.removeFirst()
        #expect(try accept("192.0.2.99", places) != nil)
    }

    @Test("connections that wait for another loop keep their places, so a flood cannot exceed the limit")
    func handover() throws {
        let places = StreamPlaces()
        let inbox = try MediaInbox { _ in }
        var accepted = 0
        for _ in 0..<3 * StreamPlaces.maxUnverifiedPerAddress {
            guard let socket = try accept("192.0.2.1", places) else { continue }
            accepted += 1
            let connection = StreamConnection(
                socket, path: Path(socket: 70_000, isTCP: true, remote: socket.remote), now: .monotonic)
            inbox.adopt(connection.handover)
        }
        #expect(accepted == StreamPlaces.maxUnverifiedPerAddress && places.count == accepted)
        // The other loop takes them over one by one. They are not verified yet.
        for request in inbox.take() {
            guard case .adopt(let stream) = request.work else { continue }
            let connection = StreamConnection(
                stream, path: Path(socket: 70_001, isTCP: true, remote: stream.socket.remote))
            #expect(try !connection.isVerified && accept("192.0.2.1", places) == nil)
        }
        #expect(places.count == 0)
    }

    @Test("the last owner of a connection closes it and frees its place")
    func ownership() throws {
        let places = StreamPlaces()
        var socket = try accept("192.0.2.1", places)
        let descriptor = try #require(socket?.descriptor)
        let inbox = try MediaInbox { _ in }
        inbox.adopt(StreamHandover(socket: try #require(socket), openedAt: .monotonic, unread: []))
        socket = nil
        #expect(places.count == 1 && fcntl(descriptor, F_GETFD) >= 0)
        // A loop that ends does not take it.
        inbox.close()
        #expect(places.count == 0)
        inbox.adopt(
            StreamHandover(socket: try #require(try accept("192.0.2.1", places)), openedAt: .monotonic, unread: []))
        #expect(places.count == 0 && inbox.take().isEmpty)
    }
}
