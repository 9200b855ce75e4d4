import Testing

@testable import RTC

@Suite("The pacer")
struct PacerTests {
    private func time(_ milliseconds: Int64) -> MediaTime { MediaTime(nanoseconds: milliseconds * 1_000_000) }

    /// Sends video packets of 1000 bytes whenever there is room, in steps.
    /// - Returns: how many were sent.
    private func send(
        _ pacer: inout Pacer, at bitrate: Bitrate, from start: Int64, for milliseconds: Int64, step: Int64 = 5,
        audio: Int = 0
    ) -> Int {
        var packets = 0
        for index in 0..<milliseconds / step {
            pacer.sent(audio)
            while pacer.hasRoomForVideo(at: bitrate, now: time(start + index * step)) {
                pacer.sent(1000)
                packets += 1
            }
        }
        return packets
    }

    @Test("video gets 10 % more than the bitrate, and at most 40 ms of it at once")
    func video() {
        var pacer = Pacer()
        let burst = send(&pacer, at: .kilobits(800), from: 0, for: 5)
        #expect(burst == 5, "4.4 kB, and the packet that was begun")
        let second = send(&pacer, at: .kilobits(800), from: 5, for: 1000)
        #expect((108...112).contains(second))
    }

    @Test("what the path carries in any case is not exceeded")
    func floor() {
        var pacer = Pacer()
        var packets = 0
        for index in 0..<200 as Range<Int64> {
            while pacer.hasRoomForVideo(at: .kilobits(300), orAt: .kilobits(800), now: time(index * 5)) {
                pacer.sent(1000)
                packets += 1
            }
        }
        #expect((98...105).contains(packets), "800 kbit/s, and 40 ms at the beginning")
    }

    @Test("ticks of 30 ms are enough for the whole bitrate", arguments: [500, 3000, 8000, 20_000] as [Int64])
    func ticks(kilobits: Int64) {
        var pacer = Pacer()
        let packets = send(&pacer, at: .kilobits(kilobits), from: 0, for: 3000, step: 30)
        #expect(Int64(packets) >= kilobits * 3 / 8)
    }

    @Test("what was sent before the first limit is not held against the video")
    func first() {
        var pacer = Pacer()
        for _ in 0..<1000 { pacer.sent(1000) }
        let hasRoom = pacer.hasRoomForVideo(at: .kilobits(500), now: time(0))
        #expect(hasRoom)
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

    @Test("however much was sent, video continues within 400 ms", arguments: [100, 1000, 20_000] as [Int64])
    func bounded(kilobits: Int64) {
        var pacer = Pacer()
        _ = pacer.hasRoomForVideo(at: .kilobits(kilobits), now: time(0))
        for _ in 0..<10_000 { pacer.sent(1500) }
        let hasRoom = [0, 300, 400].map { pacer.hasRoomForVideo(at: .kilobits(kilobits), now: time($0)) }
        #expect(hasRoom == [false, false, true])
    }

    @Test("video is paced at every bitrate", arguments: [100, 1000, 20_000] as [Int64])
    func fast(kilobits: Int64) {
        var pacer = Pacer()
        let packets = send(&pacer, at: .kilobits(kilobits), from: 0, for: 1000)
        // 10 % more than the bitrate, 40 ms of it at the beginning, and the packet that was begun.
        #expect(Int64(packets) <= kilobits * 115 / 800 + 2)
    }
}
