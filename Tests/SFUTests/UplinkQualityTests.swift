import RTC
import TestSupport
import Testing

@testable import SFU

@Suite("Quality of a publisher's upload")
struct UplinkQualityTests {
    typealias Second = UplinkQuality.Second

    /// Returns the levels after each second at which they changed.
    private func changes(_ seconds: [Second]) -> [String] {
        var quality = UplinkQuality()
        return seconds.enumerated().compactMap { index, second in
            guard quality.add(second) else { return nil }
            return "\(index + 1) \(quality.level) \(quality.trouble?.rawValue ?? "-")"
        }
    }

    private func times(_ count: Int, _ second: Second) -> [Second] { Array(repeating: second, count: count) }

    @Test("changes after two bad or four good seconds, and says why")
    func levels() {
        #expect(changes(times(3, Second(loss: 0.05))) == ["2 fair loss"])
        #expect(changes(times(3, Second(loss: 0.2))) == ["2 poor loss"])
        #expect(changes(times(3, Second(jitter: .milliseconds(80)))) == ["2 fair delay"])
        #expect(changes(times(3, Second(jitter: .milliseconds(300)))) == ["2 poor delay"])
        #expect(changes(times(3, Second(lacksLayer: true))) == ["2 fair bandwidth"])
        #expect(changes(times(2, Second(loss: 0.2)) + times(6, Second())) == ["2 poor loss", "6 good -"])
    }

    @Test("one burst of losses changes nothing")
    func burst() {
        #expect(changes([Second(), Second(loss: 0.5), Second(), Second(loss: 0.5), Second()]) == [])
        #expect(
            changes(times(2, Second(loss: 0.2)) + times(3, Second()) + times(1, Second(loss: 0.2))) == ["2 poor loss"])
    }

    @Test("a stream whose packets are lost is reported, and reported as good again")
    func reported() throws {
        let room = try SimulatedRoom()
        let clients = try room.clients(2)
        clients[0].subscribe(to: clients[1])
        room.run(5000)
        #expect(levels(of: clients[1], in: room) == [])
        try lose(from: clients[1], in: room)
        room.run(6000)
        #expect(levels(of: clients[1], in: room) == ["poor loss"])
        room.network.filter = nil
        room.run(8000)
        #expect(levels(of: clients[1], in: room) == ["poor loss", "good -"])
    }

    @Test("a stream whose video is turned off is judged by its audio, and by its video afresh when that is back")
    func videoOff() throws {
        let room = try SimulatedRoom()
        let clients = try room.clients(2)
        clients[0].subscribe(to: clients[1])
        room.run(3000)
        try lose(from: clients[1], in: room)
        room.run(6000)
        #expect(levels(of: clients[1], in: room) == ["poor loss"])
        room.network.filter = nil
        room.router.update(clients[1].stream, audio: true, video: false)
        room.run(1500)
        #expect(
            levels(of: clients[1], in: room) == ["poor loss", "good -"], "the video's losses do not count any more")
        room.router.update(clients[1].stream, audio: true, video: true)
        room.run(1500)
        #expect(levels(of: clients[1], in: room) == ["poor loss", "good -"], "nor do those before it was turned off")
        room.router.update(clients[1].stream, audio: true, video: false)
        try lose(from: clients[1], in: room)
        room.run(6000)
        #expect(levels(of: clients[1], in: room) == ["poor loss", "good -", "poor loss"])
    }

    @Test("a stream whose connection is replaced is judged afresh")
    func replaced() throws {
        let room = try SimulatedRoom()
        let clients = try room.clients(2)
        clients[0].subscribe(to: clients[1])
        room.run(3000)
        try lose(from: clients[1], in: room)
        room.run(6000)
        #expect(levels(of: clients[1], in: room) == ["poor loss"])
        room.network.filter = nil
        try clients[1].publish()
        try room.connect()
        room.run(1500)
        #expect(levels(of: clients[1], in: room) == ["poor loss", "good -"])
    }

    private func levels(of client: SimulatedClient, in room: SimulatedRoom) -> [String] {
        room.server.events.compactMap { event in
            guard case .streamQuality(let stream, "s", let level, let trouble) = event, stream == client.stream else {
                return nil
            }
            return "\(level) \(trouble?.rawValue ?? "-")"
        }
    }

    /// Loses every fifth packet of media that the client sends.
    private func lose(from client: SimulatedClient, in room: SimulatedRoom) throws {
        let publisher = try #require(client.send).address
        var packets = 0
        room.network.filter = { bytes, from, _ in
            guard from == publisher, bytes[0] >= 128 else { return true }
            packets += 1
            return packets % 5 > 0
        }
    }
}
