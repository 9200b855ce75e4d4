import CAllocations
import RTC
import TestSupport
import Testing

@testable import SFU

@Suite struct MemoryTests {
    /// Estimates the router's memory from its large parts. Memory for encryption is not included, because OpenSSL
    /// allocates it.
    @Test func theMemoryOfEachPartIsBounded() {
        let encoding =
            NACKGenerator.maxOutstanding * 24 + 64 * MemoryLayout<FeedPacket>.stride
            + MemoryLayout<ReceiverStatistics>.size
        let history = PacketHistory.capacity * (PacketHistory.slotSize + 8 + MemoryLayout<RTPPacket?>.stride + 8)
        let outgoing = 256 + MemoryLayout<RTPRewriter>.size + 8 * MemoryLayout<MappedCodec>.stride
        let retransmissions = PacketHistory.capacity * 4
        let arrivals = TransportFeedback.window * 4 + TransportFeedback.window / 8
        print(
            "A published encoding takes \(encoding) bytes, video \(history) more, a publisher's arrivals \(arrivals).")
        print("A subscriber's transceiver takes \(outgoing) bytes, after reported losses \(retransmissions) more.")
        #expect(encoding < 32_000 && history < 1_000_000)
        #expect(outgoing + retransmissions < 4096)
    }
}

/// Measures what the parts of a subscriber allocate, with OpenSSL's allocations and the allocator's headers.
@Suite(
    "Memory of a subscriber",
    .enabled(if: confab_counts_allocations() != 0, "a sanitizer or another C library uses its own allocator")
)
struct SubscriberMemoryTests {
    private static let subscribers = 40

    /// Returns the bytes that the result of `make` keeps.
    private func bytes<Part>(_ name: String, of make: () throws -> Part) rethrows -> Int64 {
        confab_allocations_begin()
        let part = try make()
        _ = confab_allocations_end()
        let bytes = confab_allocated_bytes()
        withExtendedLifetime(part) {}
        print("\(name): \(bytes) bytes")
        return bytes
    }

    /// Connects subscribers to a publisher's audio and video.
    /// - Parameter losses: the number of datagrams per thousand that are lost.
    /// - Returns: the bytes that the router allocated for each and still holds after ten seconds of media.
    private func measure(losses: Int) throws -> Int64 {
        let room = try SimulatedRoom(seed: 5)
        let publisher = room.client()
        try publisher.publish()
        try room.connect()
        room.run(3000)
        let server = room.server
        (server.onSignals.isOn, server.onPackets.isOn, server.onTicks.isOn) = (true, true, true)
        let watching = (0..<Self.subscribers).map { _ in room.client() }
        for client in watching { try client.watch(slots: 1) }
        try room.connect()
        for client in watching { client.subscribe(to: publisher) }
        room.network.weather.losses = losses
        room.run(10_000)
        let bytes = server.onSignals.bytes + server.onPackets.bytes + server.onTicks.bytes
        return bytes / Int64(Self.subscribers)
    }

    @Test func aSubscriberOfAudioAndVideoTakesFewKilobytes() throws {
        let (perfect, lossy) = (try measure(losses: 0), try measure(losses: 20))
        print("The router takes \(perfect) bytes for a subscriber, \(lossy) if packets are lost.")
        #expect(perfect < 20_000)
        #expect(lossy < 26_000)
    }

    @Test func thePartsOfASubscriberAreSmall() throws {
        let key = [UInt8](repeating: 7, count: 16)
        let salt = [UInt8](repeating: 8, count: 12)
        var generator = SeededGenerator(seed: 9)
        let credentials = ICECredentials(using: &generator)
        let certificate = try #require(DTLSCertificate.make())
        #expect(bytes("congestion control") { Downlink() } < 2_500)
        #expect(bytes("SRTP, sending") { SRTPSender(profile: .aeadAES128GCM, key: key, salt: salt) } < 3_000)
        #expect(bytes("SRTP, receiving") { SRTPReceiver(profile: .aeadAES128GCM, key: key, salt: salt) } < 2_000)
        #expect(bytes("transport with ICE") { PeerTransport(server: credentials, certificate: certificate) } < 1_500)
    }
}
