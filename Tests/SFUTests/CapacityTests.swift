import RTC
import Testing

@testable import SFU

@Suite("Router counters")
struct RouterCountersTests {
    @Test("a sum has all counters")
    func sum() {
        var (ones, sum) = (RouterCounters(), RouterCounters())
        for counter in RouterCounters.all { ones[keyPath: counter] = 1 }
        let values = Mirror(reflecting: ones).children.map { $0.value as? UInt64 }
        #expect(values.allSatisfy { $0 == 1 }, "a counter is missing in RouterCounters.all: \(ones)")
        for _ in 0..<3 { sum += ones }
        #expect(Mirror(reflecting: sum).children.allSatisfy { $0.value as? UInt64 == 3 })
    }
}

@Suite("Bandwidth limits")
struct CapacityTests {
    @Test(
        "what reached its limit has room again when a tenth of the limit is free",
        arguments: [
            ([50, 99, 100, 95, 90, 89, 95, 100], 100, [false, false, true, true, true, false, false, true]),
            ([0, 1_000_000], nil, [false, false]), ([200, 0], 100, [true, false]),
        ] as [([Int], Int?, [Bool])])
    func rule(_ rates: [Int], _ limit: Int?, _ expected: [Bool]) {
        var capacity = Capacity()
        let answers = rates.map { rate in
            capacity.update(rate: rate, limit: limit)
            return capacity.isFull
        }
        #expect(answers == expected)
    }

    private func full(_ room: SimulatedRoom) -> [RouterEvent] {
        room.server.events.filter { if case .full = $0 { true } else { false } }
    }

    @Test("a session that sends too much is reported each second, and once when it has room again")
    func session() throws {
        let room = try SimulatedRoom { $0.sessionBitrate = 500_000 }
        let clients = try room.clients(4)
        clients[0].subscribe(to: clients[1])
        room.run(3000)
        #expect(full(room) == [], "one subscriber takes less than 400 kbit/s")
        #expect(room.router.counters.fullSessions == 0)
        for client in clients[2...] { client.subscribe(to: clients[1]) }
        room.run(3200)
        #expect(full(room).count >= 2 && full(room).allSatisfy { $0 == .full(session: "s", true) })
        #expect(!room.router.isFull, "the server has no limit")
        #expect(room.router.counters.fullSessions == 1)
        for client in clients[2...] { client.unsubscribe(from: clients[1]) }
        room.run(3000)
        #expect(full(room).last == .full(session: "s", false))
        #expect(room.router.counters.fullSessions == 0)
        #expect(full(room).filter { $0 == .full(session: "s", false) }.count == 1)
        let video = try clients[0].video()
        #expect(video.faults() == [], "what exists is not affected")
    }

    @Test("while the server sends too much, every session is full, also one that has just begun")
    func server() throws {
        let room = try SimulatedRoom { $0.totalBitrate = 300_000 }
        let clients = try room.clients(3)
        clients[0].subscribe(to: clients[1])
        room.run(3000)
        #expect(room.router.isFull)
        let other = clients[2]
        room.router.publish(
            other.stream, session: "t", client: other.key, mids: Mids(audio: "a"), audio: true, video: false)
        room.router.unpublish(other.stream)
        room.router.publish(
            other.stream, session: "t", client: other.key, mids: Mids(audio: "a"), audio: true, video: false)
        room.run(1100)
        #expect(full(room).contains(.full(session: "t", true)))
        #expect(room.router.counters.fullSessions == 2)
        #expect(room.router.hasConnection(other.key, .send) && !room.router.hasConnection(Key(high: 9, low: 9), .send))
        room.router.unpublish(clients[1].stream)
        room.run(2100)
        #expect(!room.router.isFull)
        #expect(full(room).contains(.full(session: "s", false)) && full(room).contains(.full(session: "t", false)))
    }
}
