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
        let outgoing =
            MemoryLayout<ExtensionMap>.size + MemoryLayout<RTPRewriter>.size + 8 * MemoryLayout<MappedCodec>.stride
        let retransmissions = PacketHistory.capacity * 2
        let arrivals = TransportFeedback.window * 4 + TransportFeedback.window / 8
        print(
            "A published encoding takes \(encoding) bytes, video \(history) more, a publisher's arrivals \(arrivals).")
        print("A subscriber's transceiver takes \(outgoing) bytes, after reported losses \(retransmissions) more.")
        #expect(encoding < 32_000 && history < 1_000_000)
        #expect(Fanout.maxPending == PacketHistory.capacity / 2, "all packets that wait fit in the history")
        #expect(outgoing + retransmissions < 2048)
    }
}

/// Measures what the parts of a subscriber allocate, with OpenSSL's allocations and the allocator's headers.
@Suite(
    "Memory of a subscriber",
    .enabled(if: confab_counts_allocations() != 0, "a sanitizer or another C library uses its own allocator")
)
struct SubscriberMemoryTests {
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

    @Test func thePartsOfASubscriberAreSmall() throws {
        let key = [UInt8](repeating: 7, count: 16)
        let salt = [UInt8](repeating: 8, count: 12)
        var generator = SeededGenerator(seed: 9)
        let credentials = ICECredentials(using: &generator)
        let certificate = try #require(DTLSCertificate.make())
        // The first sender of a process also loads and tests Intel's library.
        _ = SRTPSender(profile: .aeadAES128GCM, key: key, salt: salt)
        #expect(bytes("congestion control") { Downlink() } < 2_500)
        #expect(bytes("SRTP, sending") { SRTPSender(profile: .aeadAES128GCM, key: key, salt: salt) } < 3_000)
        #expect(bytes("SRTP, receiving") { SRTPReceiver(profile: .aeadAES128GCM, key: key, salt: salt) } < 2_000)
        #expect(bytes("transport with ICE") { PeerTransport(server: credentials, certificate: certificate) } < 1_500)
    }
}
