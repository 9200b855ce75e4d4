import TestSupport
import Testing

@testable import RTC

/// A client and a server over a simulated network.
private final class Call {
    static let serverAddress = TransportAddress(v4: 0x0a00_0001, port: 40000)
    static let otherServerAddress = TransportAddress(v4: 0x0a00_0002, port: 40000)
    static let clientAddress = TransportAddress(v4: 0xc0a8_0001, port: 5000)

    let network: SimulatedMediaNetwork
    let server: SimulatedPeer
    let client: SimulatedPeer
    var random: SeededGenerator

    init(
        seed: UInt64 = 1, weather: NetworkConditions = NetworkConditions(), serverExpects: Fingerprint? = nil,
        clientExpects: Fingerprint? = nil
    ) throws {
        random = SeededGenerator(seed: seed)
        network = SimulatedMediaNetwork(seed: seed &+ 1, weather: weather)
        let (ours, theirs) = (ICECredentials(using: &random), ICECredentials(using: &random))
        server = SimulatedPeer(
            network, PeerTransport(server: ours, certificate: try #require(DTLSCertificate.make())),
            Self.serverAddress, Self.otherServerAddress)
        client = SimulatedPeer(
            network,
            PeerTransport(client: theirs, certificate: try #require(DTLSCertificate.make()), random: random),
            Self.clientAddress)
        server.transport.setRemote(theirs, fingerprint: serverExpects ?? client.transport.localFingerprint)
        client.transport.setRemote(ours, fingerprint: clientExpects ?? server.transport.localFingerprint)
        describeServer()
    }

    /// Adds the candidates in the server's description.
    private func describeServer() {
        client.transport.add(Path(socket: 0, remote: Self.serverAddress), priority: 10)
        client.transport.add(Path(socket: 0, remote: Self.otherServerAddress), priority: 5)
    }

    var areConnected: Bool { server.isConnected && client.isConnected }

    @discardableResult
    func connect() -> Bool { network.run(for: .seconds(30)) { areConnected } }

    func restart() {
        let (ours, theirs) = (ICECredentials(using: &random), ICECredentials(using: &random))
        server.transport.restart(local: ours, remote: theirs)
        client.transport.restart(local: theirs, remote: ours)
        describeServer()
    }
}

private func isClientHello(_ bytes: [UInt8]) -> Bool { bytes.count > 13 && bytes[0] == 22 && bytes[13] == 1 }

@Suite struct TransportTests {
    private let nobody = TransportAddress(v4: 0x0808_0808, port: 53)

    @Test func twoPeersConnectAndMediaFlowsBothWays() throws {
        let call = try Call()
        #expect(call.connect())
        #expect(call.server.states == [.new, .connecting, .connected])
        #expect(call.server.transport.profile == .aeadAES128GCM)
        for sequence in 0..<UInt16(100) {
            #expect(call.client.send([1, 2, UInt8(sequence)], sequence: sequence))
            #expect(call.server.send([3, 4, UInt8(sequence)], sequence: sequence))
        }
        call.network.run(for: .seconds(1))
        #expect(call.server.packets.map(\.last) == (0..<100).map { UInt8($0) })
        #expect(call.client.packets.map(\.last) == (0..<100).map { UInt8($0) })
        #expect(call.server.packets.first?.count == 15)
    }

    @Test func controlPacketsAreDistinguishedFromMedia() throws {
        let call = try Call()
        #expect(call.connect())
        var report = [UInt8](repeating: 0, count: 64)
        (report[0], report[1], report[3]) = (0x80, 201, 1)
        let length = try #require(report.withUnsafeMutableBytes { call.client.transport.protectControl($0, length: 8) })
        call.client.host.send(Array(report.prefix(length)), on: try #require(call.client.transport.selectedPath))
        call.network.run(for: .seconds(1))
        #expect(call.server.reports.map(\.count) == [8] && call.server.packets.isEmpty)
    }

    @Test(arguments: 1...UInt64(40)) func aThirdOfTheDatagramsCanBeLost(seed: UInt64) throws {
        let weather = NetworkConditions(losses: 300, duplicates: 100, delay: 5...120)
        let call = try Call(seed: seed, weather: weather)
        #expect(call.connect(), "\(call.server.states) \(call.client.states)")
        call.network.weather = NetworkConditions()
        call.network.run(for: .seconds(1))
        call.client.send([9], sequence: 1)
        call.server.send([9], sequence: 1)
        call.network.run(for: .seconds(1))
        #expect(call.server.packets.count == 1 && call.client.packets.count == 1)
    }

    @Test func theWrongCertificateGetsNoMedia() throws {
        let wrong = try #require(Fingerprint(.sha256, [UInt8](repeating: 1, count: 32)))
        for call in [try Call(serverExpects: wrong), try Call(clientExpects: wrong)] {
            #expect(!call.connect())
            let failed: [TransportState] = [call.server.transport.state, call.client.transport.state]
            #expect(failed.contains(.failed(.dtls(.fingerprint))))
            #expect(!call.client.send([1], sequence: 1) || !call.server.send([1], sequence: 1))
            call.network.run(for: .seconds(1))
            #expect(call.server.packets.isEmpty && call.client.packets.isEmpty)
        }
    }

    @Test func aClientHelloFromAStrangerChangesNothing() throws {
        let call = try Call()
        // Before the client connects, an attacker who knows only the server's address sends a ClientHello many times.
        let stranger = DTLSConnection(
            .client, certificate: try #require(DTLSCertificate.make()),
            remote: call.server.transport.localFingerprint,
            path: Path(socket: 0, remote: Call.serverAddress), now: call.network.now)
        let sink = SentDatagrams()
        stranger.start(now: call.network.now, sink: sink)
        let hello = try #require(sink.take().first).bytes
        var answers = 0
        call.network.filter = { [nobody] _, _, to in
            if to == nobody { answers += 1 }
            return true
        }
        for _ in 0..<100 {
            call.network.inject(hello, from: nobody, to: Call.serverAddress)
            call.network.run(for: .milliseconds(3)) { call.areConnected }
        }
        #expect(call.connect() && answers == 0)
        for _ in 0..<10 { call.network.inject(hello, from: nobody, to: Call.serverAddress) }
        call.network.run(for: .seconds(1))
        #expect(call.areConnected && answers == 0)
        #expect(call.server.transport.counters.unvalidated == 110)
    }

    @Test func earlyReplayedAndUnvalidatedMediaIsRejected() throws {
        let call = try Call()
        call.network.inject([0x80, 96] + [UInt8](repeating: 0, count: 60), from: nobody, to: Call.serverAddress)
        #expect(call.connect())
        #expect(call.server.transport.counters.early == 1)
        let packet = try #require(call.client.protected([1, 2, 3], sequence: 9))
        for from in [nobody, Call.clientAddress, Call.clientAddress] {
            call.network.inject(packet, from: from, to: Call.serverAddress)
        }
        var forged = try #require(call.client.protected([1, 2, 3], sequence: 10))
        forged[13] ^= 1
        call.network.inject(forged, from: Call.clientAddress, to: Call.serverAddress)
        call.network.run(for: .seconds(1))
        #expect(call.server.packets.count == 1)
        let counters = call.server.transport.counters
        #expect(counters.unvalidated == 1 && counters.replayed == 1 && counters.forged == 1)
    }

    @Test func theHandshakeIsReleasedWithTheFirstMediaOrAfterTenSeconds() throws {
        let call = try Call()
        var hello: [UInt8]?
        call.network.filter = { bytes, _, _ in
            if isClientHello(bytes) { hello = bytes }
            return true
        }
        #expect(call.connect())
        let packet = try #require(hello)
        call.network.inject(packet, from: Call.clientAddress, to: Call.serverAddress)
        call.network.run(for: .milliseconds(100))
        #expect(call.server.transport.counters.late == 0)
        call.client.send([1], sequence: 1)
        call.network.run(for: .milliseconds(100))
        call.network.inject(packet, from: Call.clientAddress, to: Call.serverAddress)
        call.network.run(for: .milliseconds(100))
        #expect(call.server.transport.counters.late == 1)
        // The client releases the handshake only after ten seconds, because it received no media.
        call.network.run(for: .seconds(11))
        call.network.inject(packet, from: Call.serverAddress, to: Call.clientAddress)
        call.network.run(for: .milliseconds(100))
        #expect(call.client.transport.counters.late == 1 && call.areConnected)
    }

    @Test func closeNotifyClosesTheTransport() throws {
        let call = try Call()
        #expect(call.connect())
        call.client.transport.close(sink: call.client.host)
        #expect(call.client.transport.state == .closed && call.client.transport.nextTimeout == nil)
        call.network.run(for: .seconds(1))
        #expect(call.server.transport.state == .closed && !call.server.send([1], sequence: 1))
    }

    @Test func aPeerThatIsSilentForThirtySecondsIsDisconnectedAndCanReturn() throws {
        let call = try Call()
        #expect(call.connect())
        call.client.send([1], sequence: 1)
        call.server.send([1], sequence: 1)
        call.network.run(for: .seconds(20))
        call.network.filter = { _, _, _ in false }
        call.network.run(for: .seconds(23))
        #expect(call.areConnected)
        call.network.run(for: .seconds(10))
        guard case .disconnected = call.server.transport.state, case .disconnected = call.client.transport.state
        else {
            Issue.record("\(call.server.transport.state) \(call.client.transport.state)")
            return
        }
        #expect(call.server.transport.selectedPath == nil && !call.server.send([1], sequence: 2))
        call.network.run(for: .seconds(30))
        #expect(call.client.transport.state == .failed(.noPath))
        call.network.filter = nil
        call.restart()
        #expect(call.connect())
        call.client.send([2], sequence: 2)
        call.server.send([2], sequence: 2)
        call.network.run(for: .seconds(1))
        #expect(call.server.packets.count == 2 && call.client.packets.count == 2)
    }

    @Test func aRestartKeepsMediaFlowingAndTheKeys() throws {
        let call = try Call(weather: NetworkConditions(losses: 0, delay: 20...20))
        #expect(call.connect())
        call.restart()
        for sequence in 1..<UInt16(100) {
            #expect(call.client.send([1], sequence: sequence) && call.server.send([1], sequence: sequence))
            call.network.run(for: .milliseconds(20))
        }
        #expect(call.server.packets.count >= 97 && call.client.packets.count >= 97)
        #expect(call.server.states == [.new, .connecting, .connected])
        #expect(call.client.states == [.new, .connecting, .connected])
        call.network.run(for: .seconds(120))
        #expect(call.areConnected)
    }

    @Test func aClientWhoseAddressChangesIsFollowed() throws {
        let call = try Call()
        #expect(call.connect())
        call.client.send([1], sequence: 1)
        call.network.run(for: .seconds(3))
        let moved = TransportAddress(v4: 0xc0a8_0002, port: 6000)
        call.client.host.addresses = [moved]
        #expect(
            call.network.run(for: .seconds(10)) { call.server.transport.selectedPath?.remote == moved })
        call.server.send([2], sequence: 2)
        call.client.send([2], sequence: 2)
        call.network.run(for: .seconds(1))
        #expect(call.client.packets.count == 1 && call.server.packets.count == 2)
        #expect(call.server.states == [.new, .connecting, .connected])
    }

    @Test func aServerTransportNeverSendsFirst() throws {
        let certificate = try #require(DTLSCertificate.make())
        var random = SeededGenerator(seed: 1)
        let transport = PeerTransport(server: ICECredentials(using: &random), certificate: certificate)
        #expect(transport.nextTimeout == nil && transport.state == .new)
        let sink = SentDatagrams()
        transport.handleTimeout(now: MediaTime(nanoseconds: 0), sink: sink)
        transport.close(sink: sink)
        #expect(sink.sent.isEmpty && transport.state == .closed)
    }

    @Test func aSecondFingerprintIsRejected() throws {
        let call = try Call()
        let remote = ICECredentials(using: &call.random)
        let other = try #require(Fingerprint(.sha512, [UInt8](repeating: 1, count: 64)))
        #expect(!call.server.transport.setRemote(remote, fingerprint: other))
        #expect(call.connect())
    }

    @Test func randomDatagramsNeverTrapATransport() throws {
        let seed = UInt64.random(in: .min ... .max)
        print("seed \(seed)")
        let call = try Call(seed: seed)
        var captured: [[UInt8]] = []
        call.network.filter = { bytes, _, _ in
            if captured.count < 500 { captured.append(bytes) }
            return true
        }
        #expect(call.connect())
        call.client.send([1, 2, 3], sequence: 1)
        call.network.run(for: .seconds(1))
        let paths = [Path(socket: 0, remote: Call.clientAddress), Path(socket: 0, remote: nobody)]
        var random = SeededGenerator(seed: seed)
        let sink = SentDatagrams()
        for round in 0..<100_000 {
            var bytes: [UInt8]
            if round % 2 == 0 {
                bytes = (0..<Int.random(in: 0...100, using: &random)).map { _ in .random(in: 0...255, using: &random) }
            } else {
                bytes = captured[round / 2 % captured.count]
                bytes[Int.random(in: bytes.indices, using: &random)] ^= .random(in: 1...255, using: &random)
            }
            bytes.withUnsafeMutableBytes {
                let received = call.server.transport.receive(
                    $0, on: paths[round % 3 == 0 ? 1 : 0], now: call.network.now, sink: sink)
                #expect(received == .nothing)
            }
        }
        #expect(call.areConnected)
        call.client.send([4, 5, 6], sequence: 2)
        call.network.run(for: .seconds(1))
        #expect(call.server.packets.count == 2)
    }
}
