import RTC
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

    @Test func congestionControlTakesAtMost8kBASubscriber() {
        let tables = SentPackets.capacity * 4 + 20 * 8 + 2 * 32
        let total = MemoryLayout<CongestionControl>.size + tables + 200
        print(
            "Congestion control takes \(total) bytes a subscriber, \(MemoryLayout<CongestionControl>.size) without tables."
        )
        #expect(total < 8_000)
    }
}
