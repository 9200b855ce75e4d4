import Peers
import RTC
import TestSupport
import Testing

@testable import Peers
@testable import Robots

@Suite("A source like libwebrtc") struct LibwebrtcSourceTests {
    @Test("reaches a subscriber through the router, whole and with the time of sending") func carries() throws {
        let world = try RobotWorld(seed: 21)
        let witness = Witness()
        let publisher = try world.publisher(1)
        let subscriber = try world.subscriber(2, of: [1], handler: witness)
        let packets = LibwebrtcPackets(seed: 21, from: world.network.now)
        let source = LibwebrtcSource(of: publisher, packets: packets)
        publisher.source = source
        #expect(world.network.run(for: .seconds(10)) { publisher.isConnected && subscriber.isConnected })
        world.network.run(for: .seconds(1))
        let before = witness.arrivals.count
        world.network.run(for: .seconds(10))
        let arrivals = witness.arrivals[before...]
        #expect((1480...1600).contains(arrivals.count), "\(arrivals.count)")
        #expect(witness.missing("a0").isEmpty && witness.missing("v0").isEmpty)
        #expect(arrivals.allSatisfy { arrival in arrival.sentAt.map { arrival.at - $0 < .milliseconds(500) } ?? false })
        #expect(witness.of("v0").contains { $0.startsKeyframe })
        #expect(source.keyframes > 0 && subscriber.malformed == 0)
    }

    @Test("sends abs-send-time, and packets of at most 1200 bytes before encryption") func extensions() throws {
        let network = SimulatedMediaNetwork(seed: 22, weather: NetworkConditions())
        let recorder = HeaderRecorder()
        let pair = try RobotPair(on: network, 1, Witness())
        pair.other.handler = recorder
        pair.one.source = LibwebrtcSource(of: pair.one, packets: LibwebrtcPackets(seed: 22, from: network.now))
        network.run(for: .seconds(4))
        let id = try #require(pair.one.tracks.first?.extensions[.absSendTime])
        #expect(recorder.times(id).count == recorder.packets.count && recorder.packets.count > 300)
        #expect(Set(recorder.times(id)).count > 100)
        #expect(recorder.packets.allSatisfy { $0.count <= 1198 })
        // The generator assumes this length.
        #expect(
            recorder.packets.allSatisfy { packet in
                packet.withUnsafeBytes { RTPPacket($0)?.payloadRange.lowerBound == 28 }
            })
    }
}

/// Keeps the received packets.
private final class HeaderRecorder: RobotHandler {
    private(set) var packets: [[UInt8]] = []

    func received(_ packet: RobotPacket, of reception: RobotReception, over connection: RobotConnection) {
        packets.append(Array(packet.bytes))
    }

    /// Returns the send times in the packets.
    func times(_ id: UInt8) -> [UInt32] {
        packets.compactMap { packet in
            packet.withUnsafeBytes { bytes in
                RTPPacket(bytes)?.headerExtension(id, in: bytes).flatMap {
                    HeaderExtensions.absoluteSendTime(UnsafeRawBufferPointer(rebasing: bytes[$0]))
                }
            }
        }
    }
}
