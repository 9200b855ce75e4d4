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

    @Test func theRecordStaysSmallWhilePacketsAreReported() {
        var packets = SentPackets()
        for index in 0..<10_000 {
            _ = packets.add(bytes: 1000, at: time(Int64(5 * index)))
            if index >= 50 { _ = packets.arrived(Int64(index - 50), now: time(Int64(5 * index))) }
        }
        #expect(packets.count - packets.oldest == Int64(SentPackets.initialCapacity))
    }

    @Test func withdrawnPacketsDoNotEnlargeTheRecord() {
        var packets = SentPackets()
        for index in 0..<10_000 {
            _ = packets.add(bytes: 1000, at: time(Int64(index)))
            packets.removeLast()
            _ = packets.add(bytes: 1000, at: time(Int64(index)))
            _ = packets.arrived(Int64(index), now: time(Int64(index)))
        }
        #expect(packets.count - packets.oldest == Int64(SentPackets.initialCapacity))
    }

    @Test func aLatePacketIsFoundForASecond() throws {
        var packets = SentPackets()
        for index in 0..<5000 {
            let now = time(Int64(2 * index))
            #expect(packets.add(bytes: index % 2000, at: now) == UInt16(index))
            if index % 10 == 0 { packets.markLost(Int64(index)) } else { _ = packets.arrived(Int64(index), now: now) }
            guard index >= 500, (index - 499) % 10 == 0 else { continue }
            let late = index - 499
            let number = try #require(packets.extended(UInt16(late)))
            let packet = packets.packet(number, now: now)
            #expect(packet.bytes == late % 2000 && packet.wasLost && !packet.hasArrived)
        }
    }

    @Test func noUnreportedPacketIsForgotten() throws {
        let seed = UInt64.random(in: 0...UInt64.max)
        print("The seed is \(seed).")
        var random = SeededGenerator(seed: seed)
        var packets = SentPackets()
        var (sent, reported): ([(bytes: Int, at: Int64)], Int) = ([], 0)
        var now: Int64 = 0
        for _ in 0..<2000 {
            now += Int64.random(in: 0...200, using: &random)
            for _ in 0..<Int.random(in: 0...40, using: &random) {
                let bytes = Int.random(in: 0...2000, using: &random)
                _ = packets.add(bytes: bytes, at: time(now))
                sent.append((bytes, now))
            }
            // Report some of the packets, or none while the path is blocked.
            let most = min(sent.count - reported, Int.random(in: 0..<4, using: &random) == 0 ? 200 : 0)
            let first = max(reported, sent.count - SentPackets.capacity)
            reported = max(reported + most, sent.count - SentPackets.capacity)
            for number in first..<max(first, reported) {
                let packet = packets.arrived(Int64(number), now: time(now))
                #expect(!packet.hasArrived && packet.bytes == sent[number].bytes)
                #expect(abs((packet.sentAt - time(sent[number].at)).nanoseconds) < 70_000)
            }
        }
    }
}
