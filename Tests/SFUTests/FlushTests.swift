import RTC
import TestSupport
import Testing

@testable import SFU

/// Forwarding in several flushes, because there are more packets than one flush may send.
@Suite("Long flushes")
struct FlushTests {
    private func busyRoom(
        seed: UInt64 = 1, watchers: Int = 12
    ) throws -> (SimulatedRoom, SimulatedClient, [SimulatedClient]) {
        let room = try SimulatedRoom(seed: seed, longestFlush: 10)
        let publisher = room.client()
        try publisher.publish()
        let watching = (0..<watchers).map { _ in room.client() }
        for client in watching { try client.watch(slots: 1) }
        try room.connect()
        for client in watching { client.subscribe(to: publisher) }
        return (room, publisher, watching)
    }

    @Test("a flush sends no more video than its limit, and everything arrives in order")
    func limit() throws {
        let (room, _, watching) = try busyRoom()
        var (most, unfinished): (UInt64, Int) = (0, 0)
        room.server.flushed = { [router = room.router] before in
            most = max(most, router.counters.packetsForwarded - before)
            if router.hasMore { unfinished += 1 }
        }
        room.run(4000)
        // One audio packet for each subscriber does not count.
        #expect(most <= 10 + 2 * 12, "\(most)")
        #expect(unfinished > 50, "\(unfinished)")
        for client in watching {
            let slot = try client.video()
            #expect(slot.faults() == [] && slot.frames.count > 100 && slot.frames.dropLast().allSatisfy(\.isComplete))
            #expect(try client.audio().faults() == [])
            #expect(slot.unreadable == 0 && slot.duplicates == 0)
        }
        #expect(room.router.counters.packetsDropped == 0)
    }

    @Test("subscribers that get nothing of an encoding do not use up a flush")
    func others() throws {
        let (room, publisher, watching) = try busyRoom(watchers: 30)
        room.run(2000)
        // All but the last subscriber are paused.
        for client in watching.dropLast() {
            let slot = try #require(room.router.subscriber(client.key)?.track("v0"))
            slot.allow(0, 0)
        }
        room.run(500)
        var unfinished = 0
        room.server.flushed = { [router = room.router] _ in if router.hasMore { unfinished += 1 } }
        room.run(2000)
        #expect(unfinished == 0)
        #expect(try watching[29].video().faults() == [])
        #expect(publisher.camera?.keyframesMade ?? 0 < 10)
    }

    @Test("a stream's wait for the others is measured, from the arrival of its oldest packet")
    func waits() throws {
        let (room, _, _) = try busyRoom(watchers: 30)
        let other = room.client()
        try other.publish()
        let viewer = room.client()
        try viewer.watch(slots: 1)
        room.run(2000)
        viewer.subscribe(to: other)
        _ = room.router.takeOldestArrival()
        var (longest, measured) = (MediaInterval.zero, 0)
        room.server.flushed = { [router = room.router, network = room.network] _ in
            guard let arrivedAt = router.takeOldestArrival() else { return }
            measured += 1
            longest = max(longest, network.now - arrivedAt)
            #expect(router.takeOldestArrival() == nil)
        }
        room.run(4000)
        #expect(measured > 200, "\(measured)")
        // A frame for 30 takes many flushes, 1 ms apart. The other room's frames wait for a few of them, and not for all.
        #expect(longest >= .milliseconds(1) && longest <= .milliseconds(10), "\(longest)")
    }

    @Test("losses are repaired with the right picture ids", arguments: 1...3 as ClosedRange<UInt64>)
    func losses(seed: UInt64) throws {
        let (room, _, watching) = try busyRoom(seed: seed)
        room.run(1000)
        room.network.weather = NetworkConditions(losses: 30, delay: 5...20)
        room.run(5000)
        room.network.weather = NetworkConditions()
        room.run(1000)
        #expect(room.router.counters.packetsRetransmitted > 20)
        for client in watching {
            let pictures = try client.video().inOrder.compactMap { arrival in
                arrival.picture.map { (arrival.tag.frame, $0) }
            }
            for ((frame, picture), (next, following)) in zip(pictures, pictures.dropFirst()) where next >= frame {
                let step = UInt32((following &- picture) & 0x7fff)
                #expect(step == next - frame, "seed \(seed): frame \(frame) to \(next)")
            }
        }
    }

    @Test("subscribers come and go between the flushes", arguments: 1...3 as ClosedRange<UInt64>)
    func changes(seed: UInt64) throws {
        let (room, publisher, watching) = try busyRoom(seed: seed)
        var random = SeededGenerator(seed: seed)
        for _ in 0..<300 {
            let client = watching[Int.random(in: 0..<watching.count, using: &random)]
            let leaves = Bool.random(using: &random)
            if leaves { client.unsubscribe(from: publisher) } else { client.subscribe(to: publisher) }
            room.run(Int64.random(in: 1...9, using: &random))
        }
        for client in watching { client.subscribe(to: publisher) }
        room.run(1500)
        for client in watching {
            let slot = try client.video()
            #expect(slot.faults() == [] && slot.duplicates == 0, "seed \(seed)")
            #expect(slot.inOrder.last.map { room.network.now - $0.at < .milliseconds(200) } ?? false, "seed \(seed)")
        }
    }
}
