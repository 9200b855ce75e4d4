@testable import RTC

extension FuzzTarget {
    /// Fuzzes a DTLS server that is waiting for a ClientHello. Each datagram is used unchanged, or as the content of a new
    /// handshake record of epoch 0. OpenSSL is built without coverage, so only our own code in front of it is measured.
    static let dtls = FuzzTarget("dtls", longestInput: 2000) { input throws(BrokenProperty) in
        guard let certificate = DTLSFuzzing.certificate, let server = DTLSFuzzing.server(certificate) else { return }
        var reader = InputReader(input)
        let line = HeardDatagrams()
        let path = Path(socket: 0, remote: TransportAddress(v4: 0xc000_0201, port: 5))
        var (number, now) = (UInt8(0), MediaTime(nanoseconds: 0))
        while !reader.isEmpty {
            let isWrapped = reader.byte() % 2 == 0
            var datagram = reader.bytes(Int(reader.byte()) << 2)
            if isWrapped {
                let length = [UInt8(datagram.count >> 8), UInt8(datagram.count & 0xff)]
                datagram = [22, 0xfe, 0xfd, 0, 0, 0, 0, 0, 0, 0, number] + length + datagram
                number &+= 1
            }
            datagram.withUnsafeBytes { _ = server.receive($0, on: path, now: now, sink: line) }
            now = now + .milliseconds(50)
            server.handleTimeout(now: now, sink: line)
        }
        try require(server.state != .established && server.exportKeys() == nil, "keys exist without a client")
        for datagram in line.sent {
            try require(datagram.count <= DTLSConnection.mtu, "a datagram has \(datagram.count) bytes")
            var covered = 0
            datagram.withUnsafeBytes { for record in DTLSRecords($0) { covered += record.length } }
            try require(covered == datagram.count, "a sent datagram has incomplete records")
        }
    }
}

/// Values shared by all runs, because creating a certificate takes longer than a run.
private enum DTLSFuzzing {
    static let certificate = DTLSCertificate.make()

    static func server(_ certificate: DTLSCertificate) -> DTLSConnection? {
        guard let anybody = Fingerprint(.sha256, [UInt8](repeating: 0, count: 32)) else { return nil }
        let path = Path(socket: 0, remote: TransportAddress(v4: 0xc000_0201, port: 5))
        return DTLSConnection(
            .server, certificate: certificate, remote: anybody, path: path, now: MediaTime(nanoseconds: 0))
    }
}
