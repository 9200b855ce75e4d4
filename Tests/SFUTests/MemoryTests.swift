import RTC
import Testing

@testable import SFU

@Suite struct MemoryTests {
    /// Of the large pieces; what encryption takes is OpenSSL's.
    @Test func whatEachPartTakesIsKnown() {
        let encoding =
            NACKGenerator.mostOutstanding * 24 + 64 * MemoryLayout<PendingPacket>.stride
            + MemoryLayout<ReceiverStatistics>.size
        let history = PacketHistory.capacity * (PacketHistory.slotSize + 8 + MemoryLayout<RTPPacket?>.stride + 8)
        let outgoing = 256 + MemoryLayout<Rewriting>.size + 8 * MemoryLayout<MappedCodec>.stride
        let repeats = PacketHistory.capacity * 4
        let arrivals = TransportFeedback.window * 4 + TransportFeedback.window / 8
        print(
            "A published encoding \(encoding) bytes, with picture \(history) more; a publisher's arrivals \(arrivals).")
        print("A transceiver of a subscriber \(outgoing) bytes, with reported losses \(repeats) more.")
        #expect(encoding < 32_000 && history < 1_000_000)
        #expect(outgoing + repeats < 4096)
    }
}
