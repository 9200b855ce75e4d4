import TestSupport
import Testing

@testable import RTC

@Suite struct SentPacketsTests {
    private func time(_ milliseconds: Int64) -> MediaTime { MediaTime(nanoseconds: milliseconds * 1_000_000) }

    @Test func aPacketIsFoundByItsNumberUntilItsPlaceIsTaken() {
        var packets = SentPackets()
        #expect(packets.extended(0) == nil)
        for index in 0..<70_000 {
            let number = packets.add(bytes: 100 + index % 1000, at: time(Int64(index)))
            #expect(number == UInt16(truncatingIfNeeded: index))
        }
        let oldest = 70_000 - SentPackets.capacity
        for index in oldest..<70_000 {
            let number = packets.extended(UInt16(truncatingIfNeeded: index))
            #expect(number == Int64(index))
            let packet = packets.packet(Int64(index), now: time(70_010))
            #expect(packet.bytes == 100 + index % 1000 && !packet.hasArrived)
            #expect(abs((packet.sentAt - time(Int64(index))).nanoseconds) < 70_000)
        }
        #expect(packets.extended(UInt16(truncatingIfNeeded: oldest - 1)) == nil)
        #expect(packets.extended(UInt16(truncatingIfNeeded: 70_000)) == nil)
    }

    @Test func arrivalsAreMarkedOnce() {
        var packets = SentPackets()
        _ = packets.add(bytes: 5000, at: time(1))
        #expect(packets.packet(0, now: time(9)).bytes == 2047)
        #expect(!packets.arrived(0, now: time(9)).hasArrived)
        #expect(packets.packet(0, now: time(9)).hasArrived && packets.packet(0, now: time(9)).bytes == 2047)
    }
}
