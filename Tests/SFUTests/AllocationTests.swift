import CAllocations
import RTC
import Testing

@testable import SFU

@Suite("Allocations on the packet path")
struct AllocationTests {
    private static let subscribers = 10
    private static let packets: UInt64 = 100_000

    @Test(
        "100 000 packets of a running call allocate nothing",
        .enabled(if: confab_counts_allocations() != 0, "a sanitizer or another C library uses its own allocator")
    )
    func nothingForAPacket() throws {
        let room = try SimulatedRoom(seed: 4)
        let publisher = room.client()
        try publisher.publish()
        let watching = (0..<Self.subscribers).map { _ in room.client() }
        for client in watching { try client.watch(slots: 1) }
        try room.connect()
        for client in watching { client.subscribe(to: publisher) }
        // First let buffers and tables grow to their final size.
        room.run(3000)
        room.server.onPackets.isOn = true
        room.server.onTicks.isOn = true
        let before = room.router.counters
        func passed() -> UInt64 {
            let now = room.router.counters
            return now.packetsIn + now.packetsForwarded - before.packetsIn - before.packetsForwarded
        }
        var seconds = 0
        while passed() < Self.packets, seconds < 600 {
            room.run(1000)
            seconds += 1
        }
        let (onPackets, onTicks) = (room.server.onPackets.total, room.server.onTicks.total)
        print("\(passed()) packets in \(seconds) simulated seconds: \(onPackets) allocations, and \(onTicks) in ticks.")
        #expect(passed() >= Self.packets)
        #expect(onPackets == 0)
        // Once a second, the router writes reports for each client, which may allocate.
        #expect(onTicks <= UInt64(seconds * (Self.subscribers + 1) * 6))
    }
}
