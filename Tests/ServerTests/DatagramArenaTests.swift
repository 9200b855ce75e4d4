import Datagrams
import RTC
import Testing

@Suite("Datagram arena")
struct DatagramArenaTests {
    private let near = Path(socket: 0, remote: TransportAddress(v4: 0x7f00_0001, port: 1))
    private let far = Path(socket: 0, remote: TransportAddress(v4: 0x7f00_0001, port: 2))

    private func put(_ sizes: [(Int, Path)], into arena: DatagramArena) {
        for (size, path) in sizes {
            guard let memory = arena.prepare(size + 40) else { continue }
            for index in 0..<size { memory[index] = UInt8(truncatingIfNeeded: size) }
            arena.commit(size, on: path)
        }
    }

    @Test("consecutive datagrams of equal length to one address are joined; only the final datagram may be shorter")
    func joins() {
        let arena = DatagramArena(joins: true)
        put([(1200, near), (1200, near), (700, near), (700, near), (1200, far), (1200, near)], into: arena)
        let messages = arena.messages
        #expect(messages.map(\.count) == [3, 1, 1, 1])
        #expect(messages.map(\.length) == [3100, 700, 1200, 1200])
        #expect(messages.map(\.segment) == [1200, 700, 1200, 1200])
        let length = arena.bytes(of: messages[0]).count
        #expect(length == 3100)
    }

    @Test("a longer datagram starts a new message")
    func longer() {
        let arena = DatagramArena(joins: true)
        put([(100, near), (200, near)], into: arena)
        let messages = arena.messages
        #expect(messages.map(\.count) == [1, 1])
    }

    @Test("messages respect the kernel's limits on segments and bytes")
    func limits() {
        let arena = DatagramArena(joins: true)
        put(Array(repeating: (100, near), count: 100), into: arena)
        let short = arena.messages
        #expect(short.map(\.count) == [64, 36])
        arena.clear()
        put(Array(repeating: (1400, near), count: 50), into: arena)
        let long = arena.messages
        #expect(long.allSatisfy { $0.length <= DatagramArena.longestMessage })
        #expect(long.reduce(0) { $0 + $1.count } == 50)
    }

    @Test("without kernel support each datagram is sent separately")
    func alone() {
        let arena = DatagramArena(joins: false)
        put([(100, near), (100, near)], into: arena)
        let count = arena.messages.count
        #expect(count == 2)
    }

    @Test("the memory does not grow")
    func full() {
        let arena = DatagramArena(joins: true)
        var count = 0
        while arena.prepare(1500) != nil, count < 10_000 {
            arena.commit(1200, on: near)
            count += 1
        }
        #expect(count == (DatagramArena.size - 1500) / 1200 + 1)
        arena.clear()
        let isReady = arena.prepare(1500) != nil && arena.isEmpty
        #expect(isReady)
    }

    @Test("data that was not prepared is not sent")
    func unprepared() {
        let arena = DatagramArena(joins: true)
        arena.commit(10, on: near)
        _ = arena.prepare(10)
        arena.commit(11, on: near)
        arena.commit(0, on: near)
        let isEmpty = arena.isEmpty
        #expect(isEmpty)
    }
}
