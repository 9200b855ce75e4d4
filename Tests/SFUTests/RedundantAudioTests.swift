import RTC
import TestSupport
import Testing

@testable import SFU

@Suite("Redundant audio")
struct RedundantAudioTests {
    private static let red = Codec(.red, payloadType: 63, fmtp: "111/111")

    /// Two copies, of 2 and 3 bytes, and the primary block of one byte.
    private static let payload: [UInt8] = [
        0x80 | 111, 0x1e, 0x00, 0x02, 0x80 | 111, 0x0f, 0x00, 0x03, 111, 1, 2, 3, 4, 5, 6,
    ]

    @Test("the copies count backwards from the packet")
    func blocks() {
        Self.payload.withUnsafeBytes { bytes in
            #expect(RedundantAudio.primary(bytes).map(Array.init) == [6])
            #expect(RedundantAudio.block(1, in: bytes) == .init(payloadType: 111, age: 960, range: 11..<14))
            #expect(RedundantAudio.block(2, in: bytes) == .init(payloadType: 111, age: 1920, range: 9..<11))
            #expect(RedundantAudio.block(3, in: bytes) == nil && RedundantAudio.block(0, in: bytes) == nil)
        }
    }

    @Test("headers that do not match the payload give no block and read nothing outside", arguments: 0..<14)
    func truncated(_ length: Int) {
        Self.payload[..<length].withUnsafeBytes { bytes in
            for distance in -1...9 {
                if let block = RedundantAudio.block(distance, in: bytes) { #expect(block.range.upperBound <= length) }
            }
        }
        var random = SeededGenerator(seed: UInt64(length))
        for _ in 0..<200 {
            let noise = (0..<length).map { _ in UInt8.random(in: 0...255, using: &random) }
            noise.withUnsafeBytes { bytes in
                for distance in 1...8 {
                    if let block = RedundantAudio.block(distance, in: bytes) {
                        #expect(block.range.upperBound <= length && !block.range.isEmpty)
                    }
                }
                if let primary = RedundantAudio.primary(bytes) { #expect(primary.count <= length) }
            }
        }
    }

    @Test("each packet is forwarded once, in whatever order it arrives or is recovered")
    func once() {
        var arrived = ArrivedAudio()
        #expect(arrived.receive(100, timestamp: 0) == 0)
        #expect(arrived.receive(101, timestamp: 960) == 0)
        #expect(arrived.receive(101, timestamp: 960) == nil)
        #expect(arrived.receive(104, timestamp: 3840) == 2)
        #expect(arrived.insert(103) && !arrived.insert(103))
        #expect(arrived.receive(103, timestamp: 2880) == nil, "it was recovered")
        #expect(arrived.receive(102, timestamp: 1920) == 0, "it is late, not lost")
        #expect(arrived.receive(102, timestamp: 1920) == nil)
        #expect(arrived.receive(99, timestamp: 0) == 0)
        #expect(arrived.receive(1000, timestamp: 0) == RedundantAudio.maxBlocks)
        #expect(!arrived.insert(900) && arrived.insert(999))
        #expect(arrived.receive(1064, timestamp: 0) == 8 && arrived.receive(1000, timestamp: 0) == nil)
        #expect(arrived.receive(1127, timestamp: 0) == 8 && arrived.receive(1064, timestamp: 0) == nil)
    }

    /// A publisher of redundant audio over a line with losses, a subscriber with Opus only, and one with redundant audio.
    private func listen(losses: Int, distance: Int = 1, delay: ClosedRange<Int64> = 10...10) throws -> (
        SimulatedSlot, SimulatedSlot, Router
    ) {
        let room = try SimulatedRoom(seed: 3)
        let (publisher, plain, redundant) = (room.client(), room.client(), room.client())
        try publisher.publish(audio: Self.red, video: nil, others: [.audio: [Codec(.opus, payloadType: 111)]])
        publisher.microphone?.isRedundant = true
        publisher.microphone?.distance = distance
        try plain.watch(slots: 1)
        try redundant.watch(slots: 1, audio: Codec(.opus, payloadType: 111), others: [Self.red])
        try room.connect()
        plain.subscribe(to: publisher)
        redundant.subscribe(to: publisher)
        room.run(500)
        // Only the publisher's line is bad: subscribers are on lines of their own.
        room.network.weather = NetworkConditions(delay: delay)
        let line = try #require(publisher.send?.address)
        var random = SeededGenerator(seed: 5)
        room.network.filter = { _, from, _ in from != line || Int.random(in: 0..<1000, using: &random) >= losses }
        room.run(20_000)
        room.network.filter = nil
        room.run(200)
        return (try plain.audio(), try redundant.audio(), room.router)
    }

    @Test("a subscriber without it hears packets that were lost on the publisher's line", arguments: [1, 2])
    func recovered(_ distance: Int) throws {
        let (plain, redundant, router) = try listen(losses: 100, distance: distance)
        // About 100 of 1000 packets are lost, one or two in a row.
        #expect(router.counters.packetsRecovered > 60)
        let frames = Set(plain.arrivals.map(\.tag.frame))
        let expected = try #require(frames.max()) - (try #require(frames.min())) + 1
        let missing = Int(expected) - frames.count
        print("distance \(distance): \(missing) of \(expected) packets are missing")
        #expect(missing < (distance == 1 ? 25 : 8))
        for slot in [plain, redundant] {
            #expect(slot.unreadable == 0 && slot.duplicates == 0)
            #expect(slot.faults().allSatisfy { $0.contains("is followed by") }, "only what is missing")
            let numbers = slot.arrivals.map(\.tag.frame)
            #expect(Set(numbers).count == numbers.count, "nothing twice")
        }
        #expect(plain.arrivals.allSatisfy { $0.payloadType == 109 })
        #expect(Set(redundant.arrivals.map(\.payloadType)) == [63, 111])
    }

    @Test("a packet that arrives after its copy is not forwarded again")
    func reordered() throws {
        let (plain, redundant, router) = try listen(losses: 0, delay: 10...60)
        #expect(router.counters.packetsRecovered > 50)
        for slot in [plain, redundant] {
            #expect(slot.duplicates == 0 && slot.unreadable == 0)
            let numbers = slot.arrivals.map(\.tag.frame)
            #expect(Set(numbers).count == numbers.count && numbers.count > 1000)
            #expect(slot.faults(clock: .milliseconds(130)) == [])
        }
    }

    @Test("a full line that loses nothing carries plain Opus, and a good line the copies, too")
    func full() throws {
        let room = try SimulatedRoom(seed: 3)
        let (publisher, watcher) = (room.client(), room.client())
        try publisher.publish(audio: Self.red, others: [.audio: [Codec(.opus, payloadType: 111)]])
        publisher.microphone?.isRedundant = true
        try watcher.watch(slots: 1, audio: Codec(.opus, payloadType: 111), others: [Self.red])
        try room.connect()
        watcher.subscribe(to: publisher)
        let slot = try watcher.audio()
        func payloadTypes(in milliseconds: Int64) -> Set<UInt8> {
            let before = slot.arrivals.count
            room.run(milliseconds)
            return Set(slot.arrivals[before...].map(\.payloadType))
        }
        #expect(payloadTypes(in: 2000) == [63])
        let address = try #require(watcher.receive).address
        room.network.links[address] = SimulatedLink(bitsPerSecond: 150_000, longestQueue: .seconds(2))
        room.run(8000)
        #expect(payloadTypes(in: 2000) == [111])
        #expect(slot.unreadable == 0)
        #expect(try #require(room.router.subscriber(watcher.key)?.downlink).control.lossRatio < 0.005)
    }

    @Test("redundancy is for lines that lose packets, and for those that are not full")
    func worth() {
        let downlink = Downlink()
        downlink.updateRedundancy(downlink.control.handleTimeout(now: MediaTime(nanoseconds: 0)))
        #expect(downlink.takesRedundantAudio)
        downlink.control.receive(remb: .kilobits(300), now: MediaTime(nanoseconds: 0))
        downlink.updateRedundancy(downlink.control.handleTimeout(now: MediaTime(nanoseconds: 0)))
        #expect(!downlink.takesRedundantAudio)
    }

    @Test("a subscriber that numbers Opus differently gets plain Opus")
    func otherNumbers() throws {
        let room = try SimulatedRoom()
        let (publisher, watcher) = (room.client(), room.client())
        try publisher.publish(audio: Self.red, video: nil, others: [.audio: [Codec(.opus, payloadType: 111)]])
        publisher.microphone?.isRedundant = true
        try watcher.watch(
            slots: 1, audio: Codec(.opus, payloadType: 96), others: [Codec(.red, payloadType: 97, fmtp: "96/96")])
        try room.connect()
        watcher.subscribe(to: publisher)
        room.run(1000)
        let slot = try watcher.audio()
        #expect(slot.arrivals.count > 40 && slot.faults() == [] && slot.unreadable == 0)
        #expect(slot.arrivals.allSatisfy { $0.payloadType == 96 })
    }
}
