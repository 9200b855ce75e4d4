import Foundation
import RTC

/// The client's side of one of the two peer connections with the server: a transport over a real socket.
final class MediaLine: DatagramSink {
    enum Carrier {
        case udp(MediaDatagrams)
        /// RFC 4571's framing.
        case tcp(RawSocket)
    }

    let transport: PeerTransport
    private(set) var carrier: Carrier
    let path: Path
    private let memory = UnsafeMutableRawBufferPointer.allocate(byteCount: 4096, alignment: 16)
    private var unread: [UInt8] = []
    private(set) var isClosed = false
    /// Copies of the encrypted packets, to be replayed. nil if packets are not recorded.
    var captured: [[UInt8]]?
    /// The number of bytes received so far.
    private(set) var heard = 0

    init(_ transport: PeerTransport, _ carrier: Carrier, server: TransportAddress) {
        (self.transport, self.carrier) = (transport, carrier)
        var isTCP = false
        if case .tcp = carrier { isTCP = true }
        path = Path(socket: 0, isTCP: isTCP, remote: server)
    }

    deinit { memory.deallocate() }

    var descriptor: Int32 {
        switch carrier {
        case .udp(let socket): socket.descriptor
        case .tcp(let socket): socket.descriptor
        }
    }

    // MARK: Sending

    func prepare(_ capacity: Int) -> UnsafeMutableRawBufferPointer {
        precondition(capacity <= memory.count)
        return memory
    }

    func send(_ count: Int, on path: Path) {
        send(UnsafeRawBufferPointer(rebasing: UnsafeRawBufferPointer(memory)[..<count]))
    }

    /// Sends arbitrary bytes from the address that ICE has validated.
    func send(_ bytes: UnsafeRawBufferPointer) {
        guard !isClosed else { return }
        captured?.append(Array(bytes))
        switch carrier {
        case .udp(let socket): socket.send(bytes, to: path.remote)
        case .tcp(let socket): socket.sendWhatGoes(Self.frame(bytes), within: .seconds(2))
        }
    }

    func send(raw bytes: [UInt8]) { bytes.withUnsafeBytes { send($0) } }

    static func frame(_ bytes: some Collection<UInt8>) -> [UInt8] {
        [UInt8(truncatingIfNeeded: bytes.count >> 8), UInt8(truncatingIfNeeded: bytes.count)] + bytes
    }

    // MARK: Receiving

    /// Reads from the socket, decrypts media packets and passes them to the body.
    func receive(now: MediaTime, _ body: (_ isControl: Bool, _ packet: UnsafeRawBufferPointer) -> Void) {
        func take(_ datagram: UnsafeMutableRawBufferPointer) {
            heard += datagram.count
            switch transport.receive(datagram, on: path, now: now, sink: self) {
            case .nothing: break
            case .rtp(let length): body(false, UnsafeRawBufferPointer(rebasing: datagram[..<length]))
            case .rtcp(let length): body(true, UnsafeRawBufferPointer(rebasing: datagram[..<length]))
            }
        }
        guard !isClosed else { return }
        switch carrier {
        case .udp(let socket): while socket.receive(take) {}
        case .tcp(let socket): receive(from: socket, take)
        }
    }

    private func receive(from socket: RawSocket, _ take: (UnsafeMutableRawBufferPointer) -> Void) {
        while socket.isReadable(until: .now) {
            guard let bytes = try? socket.receive(within: .zero), !bytes.isEmpty else {
                isClosed = true
                return
            }
            unread += bytes
        }
        var offset = 0
        unread.withUnsafeMutableBytes { bytes in
            while case .frame(let range) = StreamFraming.next(in: UnsafeRawBufferPointer(bytes), at: offset) {
                take(UnsafeMutableRawBufferPointer(rebasing: bytes[range]))
                offset = range.upperBound
            }
        }
        unread.removeFirst(offset)
    }

    func handleTimeout(now: MediaTime) {
        guard !isClosed, let due = transport.nextTimeout, due <= now else { return }
        transport.handleTimeout(now: now, sink: self)
    }

    /// Closes the socket without notifying the server.
    func cut() {
        isClosed = true
        if case .tcp(let socket) = carrier { socket.close() }
    }

    // MARK: Media

    var isConnected: Bool { transport.state == .connected && !isClosed }

    /// Sends an RTP packet; returns false if the transport refuses.
    @discardableResult
    func send(header: (UnsafeMutableRawBufferPointer) -> Int, prefix: [UInt8] = [], payload: [UInt8]) -> Bool {
        let packet = prepare(2048)
        let headerLength = header(packet)
        let length = prefix.withUnsafeBytes { prefix in
            payload.withUnsafeBytes {
                transport.protect(packet, headerLength: headerLength, prefix: prefix, payload: $0)
            }
        }
        guard let length else { return false }
        send(length, on: path)
        return true
    }

    /// Sends a compound RTCP packet.
    @discardableResult
    func sendControl(_ write: (inout ByteWriter) -> Void) -> Bool {
        let packet = prepare(2048)
        var writer = ByteWriter(UnsafeMutableRawBufferPointer(rebasing: packet[..<1900]))
        write(&writer)
        guard !writer.overflowed, let length = transport.protectControl(packet, length: writer.count) else {
            return false
        }
        send(length, on: path)
        return true
    }

    /// Sends a compound RTCP packet from bytes.
    @discardableResult
    func send(control bytes: [UInt8]) -> Bool { sendControl { $0.append(bytes) } }
}
