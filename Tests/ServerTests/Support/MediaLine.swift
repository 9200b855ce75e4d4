import CSockets
import Datagrams
import Foundation
import RTC

@testable import Server

/// A media client with a real socket, driven by the test's thread.
final class MediaLine: DatagramSink {
    let transport: PeerTransport
    let local = ICECredentials()
    let descriptor: Int32
    private let memory = UnsafeMutableRawBufferPointer.allocate(byteCount: 2048, alignment: 16)
    private(set) var packets = 0

    init(_ certificate: DTLSCertificate) throws {
        descriptor = try SocketOptions.datagram(TransportAddress(v4: 0x7f00_0001, port: 0))
        transport = PeerTransport(client: local, certificate: certificate)
    }

    deinit {
        memory.deallocate()
        close(descriptor)
    }

    func prepare(_ capacity: Int) -> UnsafeMutableRawBufferPointer { memory }

    func send(_ count: Int, on path: Path) {
        guard let (address, length) = path.remote.storage(ipv6: false) else { return }
        var storage = address
        _ = withUnsafePointer(to: &storage) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                sendto(descriptor, memory.baseAddress, count, 0, $0, length)
            }
        }
    }

    /// Receives pending datagrams and handles expired timers.
    func turn(_ server: TransportAddress) {
        var buffer = [UInt8](repeating: 0, count: 2048)
        while true {
            let count = recv(descriptor, &buffer, buffer.count, Int32(MSG_DONTWAIT))
            guard count > 0 else { break }
            buffer.withUnsafeMutableBytes { bytes in
                let datagram = UnsafeMutableRawBufferPointer(rebasing: bytes[..<count])
                let path = Path(socket: 0, remote: server)
                if case .rtp = transport.receive(datagram, on: path, now: .monotonic, sink: self) { packets += 1 }
            }
        }
        if let due = transport.nextTimeout, due <= .monotonic { transport.handleTimeout(now: .monotonic, sink: self) }
    }

    /// Sends one Opus packet.
    func speak(_ sequence: UInt16, ssrc: UInt32) {
        guard let path = transport.selectedPath else { return }
        var header = RTPHeaderWriter(
            into: memory, payloadType: 111, marker: false, sequenceNumber: sequence,
            timestamp: UInt32(sequence) &* 960, ssrc: ssrc
        )
        let length = header.finish()
        let sound = [UInt8](repeating: 7, count: 60)
        let count = sound.withUnsafeBytes {
            transport.protect(
                memory, headerLength: length, prefix: UnsafeRawBufferPointer(start: nil, count: 0), payload: $0)
        }
        if let count { send(count, on: path) }
    }
}

extension ICECredentials {
    fileprivate init() {
        var random = SystemRandomNumberGenerator()
        self.init(using: &random)
    }
}
