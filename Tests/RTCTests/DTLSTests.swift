import TestSupport
import Testing

@testable import RTC

@Suite struct DTLSTests {
    /// A client and a server, and the datagrams in flight between them.
    private final class Pair {
        static let path = Path(socket: 0, remote: TransportAddress(v4: 0x7f00_0001, port: 9))
        let client: DTLSConnection
        let server: DTLSConnection
        let toServer = SentDatagrams()
        let toClient = SentDatagrams()
        var now = MediaTime(nanoseconds: 0)

        init(clientExpects: Fingerprint? = nil, serverExpects: Fingerprint? = nil) throws {
            let ours = try #require(DTLSCertificate.make()), theirs = try #require(DTLSCertificate.make())
            client = DTLSConnection(
                .client, certificate: theirs, remote: clientExpects ?? ours.fingerprint, path: Self.path, now: now)
            server = DTLSConnection(
                .server, certificate: ours, remote: serverExpects ?? theirs.fingerprint, path: Self.path, now: now)
            client.start(now: now, sink: toServer)
        }

        func give(_ bytes: [UInt8], to connection: DTLSConnection) {
            bytes.withUnsafeBytes {
                _ = connection.receive(
                    $0, on: Self.path, now: now, sink: connection === client ? toServer : toClient)
            }
        }

        /// Delivers datagrams until both sides have nothing more to send.
        func shuttle() {
            while !toServer.sent.isEmpty || !toClient.sent.isEmpty {
                for datagram in toServer.take() { give(datagram.bytes, to: server) }
                for datagram in toClient.take() { give(datagram.bytes, to: client) }
            }
        }

        func pass(_ milliseconds: Int64) {
            now = now + .milliseconds(milliseconds)
            client.handleTimeout(now: now, sink: toServer)
            server.handleTimeout(now: now, sink: toClient)
        }
    }

    /// Splits the ClientHello into fragments, each in its own record (RFC 6347 §4.2.3).
    private func fragments(_ hello: [UInt8], _ pieces: [(offset: Int, length: Int)]) -> [[UInt8]] {
        let header = DTLSRecords.headerLength
        let body = Array(hello[(header + 12)...])
        return pieces.enumerated().map { index, piece in
            let part = body.dropFirst(piece.offset).prefix(piece.length)
            let number = { (value: Int, size: Int) in
                (0..<size).reversed().map { UInt8(truncatingIfNeeded: value >> ($0 * 8)) }
            }
            return Array(hello[..<5]) + number(index + 20, 6) + number(12 + part.count, 2)
                + Array(hello[header..<header + 6]) + number(piece.offset, 3) + number(part.count, 3) + part
        }
    }

    private func areSame(_ pair: Pair) throws -> Bool {
        let (ours, theirs) = (try #require(pair.server.exportKeys()), try #require(pair.client.exportKeys()))
        return ours.clientKey == theirs.clientKey && ours.serverKey == theirs.serverKey
            && ours.clientSalt == theirs.clientSalt && ours.serverSalt == theirs.serverSalt
            && ours.clientKey != ours.serverKey
    }

    @Test func bothSidesGetTheSameKeysForThePreferredProfile() throws {
        let pair = try Pair()
        #expect(pair.server.exportKeys() == nil)
        pair.shuttle()
        #expect(pair.client.state == .established && pair.server.state == .established)
        #expect(pair.client.profile == .aeadAES128GCM && pair.server.profile == .aeadAES128GCM)
        #expect(try areSame(pair))
    }

    @Test func fingerprintsAreFormattedAsInSDP() throws {
        let bytes = (0..<32).map { UInt8($0 * 8) }
        let fingerprint = try #require(Fingerprint(.sha256, bytes))
        #expect(fingerprint.text.hasPrefix("sha-256 00:08:10:18:") && fingerprint.text.hasSuffix(":F0:F8"))
        #expect(Fingerprint(.sha384, bytes) == nil)
        #expect(try #require(DTLSCertificate.make()).fingerprint != #require(DTLSCertificate.make()).fingerprint)
    }

    @Test func anUnannouncedCertificateGetsNoKeys() throws {
        let wrong = try #require(Fingerprint(.sha256, [UInt8](repeating: 1, count: 32)))
        let betrayed = try Pair(serverExpects: wrong)
        betrayed.shuttle()
        #expect(betrayed.server.state == .failed(.fingerprint) && betrayed.server.exportKeys() == nil)
        // The peer has no keys either, because the server never sent its Finished.
        #expect(betrayed.client.state == .handshaking && betrayed.client.exportKeys() == nil)

        let deceived = try Pair(clientExpects: wrong)
        deceived.shuttle()
        #expect(deceived.client.state == .failed(.fingerprint) && deceived.client.exportKeys() == nil)
    }

    @Test func noDatagramExceedsTheMTU() throws {
        let pair = try Pair()
        var count = 0
        while !pair.toServer.sent.isEmpty || !pair.toClient.sent.isEmpty {
            for (sink, other) in [(pair.toServer, pair.server), (pair.toClient, pair.client)] {
                for datagram in sink.take() {
                    #expect(datagram.bytes.count <= DTLSConnection.mtu)
                    pair.give(datagram.bytes, to: other)
                    count += 1
                }
            }
        }
        // There is one datagram per flight, because records are packed together.
        #expect(count == 4, "\(count) datagrams")
    }

    @Test func aFragmentedClientHelloIsReassembled() throws {
        for pieces in [
            [(0, 60), (60, 1000)], [(60, 1000), (0, 60)], [(0, 60), (40, 1000)], [(0, 60), (0, 60), (60, 1000)],
        ] {
            let pair = try Pair()
            let hello = try #require(pair.toServer.take().first).bytes
            for piece in fragments(hello, pieces.map { (offset: $0.0, length: $0.1) }) {
                pair.give(piece, to: pair.server)
            }
            pair.shuttle()
            // The verification in Finished covers whole messages, not their fragments (RFC 6347 §4.2.6).
            #expect(pair.server.state == .established, "\(pieces)")
            #expect(pair.client.state == .established, "\(pieces)")
        }
    }

    @Test func anEmptyFragmentFailsTheHandshakeWithoutATrap() throws {
        let pair = try Pair()
        let hello = try #require(pair.toServer.take().first).bytes
        for piece in fragments(hello, [(offset: 0, length: 0)]) { pair.give(piece, to: pair.server) }
        pair.shuttle()
        #expect(pair.server.exportKeys() == nil)
        guard case .failed(.handshake) = pair.server.state else {
            Issue.record("\(pair.server.state)")
            return
        }
    }

    @Test func anyLostDatagramIsRetransmitted() throws {
        // Lose a different datagram of the handshake in each round.
        for lost in 0..<8 {
            let pair = try Pair()
            var count = 0
            for _ in 0..<20 {
                while !pair.toServer.sent.isEmpty || !pair.toClient.sent.isEmpty {
                    for datagram in pair.toServer.take() {
                        if count != lost { pair.give(datagram.bytes, to: pair.server) }
                        count += 1
                    }
                    for datagram in pair.toClient.take() {
                        if count != lost { pair.give(datagram.bytes, to: pair.client) }
                        count += 1
                    }
                }
                pair.pass(100)
            }
            #expect(pair.server.state == .established && pair.client.state == .established, "datagram \(lost)")
            #expect(try areSame(pair))
        }
    }

    @Test func aFlightIsRetransmittedWithBackoffForThirtySeconds() throws {
        let pair = try Pair()
        let first = try #require(pair.toServer.take().first).bytes
        var times: [Int64] = []
        while let next = pair.client.nextTimeout, next.nanoseconds < 40_000_000_000 {
            pair.now = next
            pair.client.handleTimeout(now: next, sink: pair.toServer)
            for datagram in pair.toServer.take() {
                times.append(next.nanoseconds / 1_000_000)
                #expect(datagram.bytes == first)
            }
        }
        #expect(times.prefix(6) == [100, 300, 700, 1500, 3100, 4700])
        #expect(pair.client.state == .failed(.timeout) && pair.now == MediaTime(nanoseconds: 30_000_000_000))
    }

    @Test func aFloodFailsTheHandshakeWithoutAResponse() throws {
        let pair = try Pair()
        let hello = try #require(pair.toServer.take().first).bytes
        let pieces = fragments(hello, (0..<500).map { (offset: $0 % 50, length: 1) })
        for piece in pieces { pair.give(piece, to: pair.server) }
        #expect(pair.server.state == .failed(.flooded))
        #expect(pair.toClient.sent.isEmpty)
    }

    @Test func earlyRecordsOfTheNextEpochAreLimited() throws {
        let pair = try Pair()
        let early = [22, 0xfe, 0xfd, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1, 0].map { UInt8($0) }
        var taken = 0
        for number in 0..<100 {
            var record = early
            record[10] = UInt8(number)
            let wasTaken = record.withUnsafeBytes {
                pair.server.receive($0, on: Pair.path, now: pair.now, sink: pair.toClient)
            }
            if wasTaken { taken += 1 }
        }
        #expect(taken == DTLSConnection.maxEarlyRecords)
        pair.shuttle()
        #expect(pair.server.state == .established || pair.server.state == .handshaking)
    }

    @Test func garbageChangesNothing() throws {
        let seed = UInt64.random(in: .min ... .max)
        print("seed \(seed)")
        var random = SeededGenerator(seed: seed)
        let pair = try Pair()
        for _ in 0..<100_000 {
            let count = Int.random(in: 0...60, using: &random)
            var bytes = (0..<count).map { _ in UInt8.random(in: 0...255, using: &random) }
            if let first = bytes.indices.first { bytes[first] = .random(in: 20...63, using: &random) }
            pair.give(bytes, to: pair.server)
        }
        #expect(pair.server.state == .handshaking)
        pair.shuttle()
        #expect(pair.server.state == .established && pair.client.state == .established)
    }

    @Test func corruptedHandshakesNeverTrap() throws {
        let seed = UInt64.random(in: .min ... .max)
        print("seed \(seed)")
        var random = SeededGenerator(seed: seed)
        for _ in 0..<300 {
            let pair = try Pair()
            for _ in 0..<8 {
                for datagram in pair.toServer.take() {
                    var bytes = datagram.bytes
                    if Bool.random(using: &random) {
                        bytes[Int.random(in: bytes.indices, using: &random)] = .random(in: 0...255, using: &random)
                    }
                    pair.give(bytes, to: pair.server)
                }
                for datagram in pair.toClient.take() {
                    var bytes = datagram.bytes
                    if Bool.random(using: &random) {
                        bytes[Int.random(in: bytes.indices, using: &random)] = .random(in: 0...255, using: &random)
                    }
                    pair.give(bytes, to: pair.client)
                }
                pair.pass(500)
            }
            let keys = (pair.server.exportKeys(), pair.client.exportKeys())
            if let ours = keys.0, let theirs = keys.1 { #expect(ours.clientKey == theirs.clientKey) }
        }
    }

    @Test func theLastFlightIsRetransmittedUntilItIsReleased() throws {
        let pair = try Pair()
        for datagram in pair.toServer.take() { pair.give(datagram.bytes, to: pair.server) }
        for datagram in pair.toClient.take() { pair.give(datagram.bytes, to: pair.client) }
        let last = pair.toServer.take()
        for datagram in last { pair.give(datagram.bytes, to: pair.server) }
        let answer = pair.toClient.take().map(\.bytes)
        #expect(pair.server.state == .established && !answer.isEmpty)
        for _ in 0..<50 { for datagram in last { pair.give(datagram.bytes, to: pair.server) } }
        #expect(pair.toClient.take().count == DTLSConnection.maxAnswers * answer.count)
        pair.pass(9_999)
        #expect(pair.server.state == .established && pair.server.nextTimeout == MediaTime(nanoseconds: 10_000_000_000))
        pair.pass(1)
        #expect(pair.server.state == .released && pair.server.exportKeys() == nil && pair.server.nextTimeout == nil)
        for datagram in last { pair.give(datagram.bytes, to: pair.server) }
        #expect(pair.toClient.sent.isEmpty)
    }

    @Test func closeNotifyEndsTheAssociationUnlessTheHandshakeWasReleased() throws {
        let pair = try Pair()
        pair.shuttle()
        pair.client.close(sink: pair.toServer)
        #expect(pair.client.state == .closed)
        pair.shuttle()
        #expect(pair.server.state == .closed)

        let forgetful = try Pair()
        forgetful.shuttle()
        forgetful.server.releaseHandshake()
        forgetful.client.close(sink: forgetful.toServer)
        forgetful.shuttle()
        #expect(forgetful.server.state == .released)
    }
}
