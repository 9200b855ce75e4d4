import Testing

@testable import RTC

@Suite("The pacer")
struct PacerTests {
    private func time(_ milliseconds: Int64) -> MediaTime { MediaTime(nanoseconds: milliseconds * 1_000_000) }

    /// Sends video packets of 1000 bytes whenever there is room, in steps of 5 ms.
    /// - Returns: how many were sent.
    private func send(
        _ pacer: inout Pacer, at bitrate: Bitrate, from start: Int64, for milliseconds: Int64, audio: Int = 0
    ) -> Int {
        var packets = 0
        for step in 0..<milliseconds / 5 {
            pacer.sent(audio)
            while pacer.hasRoomForVideo(at: bitrate, now: time(start + step * 5)) {
                pacer.sent(1000)
                packets += 1
            }
        }
        return packets
    }

    @Test("video gets 10 % more than the bitrate, and at most 20 ms of it at once")
    func video() {
        var pacer = Pacer()
        let burst = send(&pacer, at: .kilobits(800), from: 0, for: 5)
        #expect(burst == 3, "2.2 kB, and the packet that was begun")
        let second = send(&pacer, at: .kilobits(800), from: 5, for: 1000)
        #expect((108...112).contains(second))
    }

    @Test("what is sent besides takes its part")
    func besides() {
        var pacer = Pacer()
        _ = send(&pacer, at: .kilobits(800), from: 0, for: 5)
        // 440 kbit/s of 880 are audio.
        let video = send(&pacer, at: .kilobits(800), from: 5, for: 1000, audio: 275)
        #expect((53...57).contains(video))
    }

    @Test("a burst leaves no room for what is added, and that comes back with time")
    func added() {
        var pacer = Pacer()
        func room(at milliseconds: Int64) -> Int {
            pacer.room(at: .kilobits(1000), in: .kilobits(1000), now: time(milliseconds))
        }
        let before = room(at: 0)
        pacer.sent(20_000)
        // 40 ms at 2.5 Mbit/s are 12.5 kB. After 30 ms, 9375 bytes of the 20,000 are paid.
        let after = [room(at: 0), room(at: 30), room(at: 1000)]
        #expect(before == 12_500 && after == [0, 1875, 12_500])
    }

    @Test("however much was sent, video continues within half a second")
    func bounded() {
        var pacer = Pacer()
        for _ in 0..<10_000 { pacer.sent(1500) }
        let hasRoom = [0, 400].map { pacer.hasRoomForVideo(at: .kilobits(1000), now: time($0)) }
        #expect(hasRoom == [false, true])
    }
}
