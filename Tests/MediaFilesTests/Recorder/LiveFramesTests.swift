import RTC
import Testing

@testable import MediaFiles

/// Frames of one packet each: VP8 with a frame each 40 ms, and Opus with a packet each 20 ms.
@Suite("Frames for a broadcast")
struct LiveFramesTests {
    private static func time(_ milliseconds: Int64) -> MediaTime { MediaTime(nanoseconds: milliseconds * 1_000_000) }

    /// A frame of VP8 in one packet (RFC 7741 §4): the descriptor, and the frame's header.
    private static func video(_ index: Int64, isKeyframe: Bool = false) -> PacketOrder.Packet {
        let header: [UInt8] = isKeyframe ? [0x10, 2, 0, 0x9d, 1, 0x2a, 0x40, 1, 0xf0, 0] : [0x11, 2, 0]
        return PacketOrder.Packet(
            number: index, timestamp: UInt32(index * 3_600), marker: true,
            payload: [0x10] + header + [UInt8(truncatingIfNeeded: index)], arrival: time(index * 40))
    }

    private static func audio(_ index: Int64) -> PacketOrder.Packet {
        PacketOrder.Packet(
            number: index, timestamp: UInt32(index * 960), marker: false, payload: [0xf8, 1, 2, 3],
            arrival: time(index * 20))
    }

    /// The times of frames in milliseconds, and other outputs by their names.
    private static func texts(_ outputs: [LiveFrames.Output]) -> [String] {
        outputs.map { output in
            switch output {
            case .begin(let video): "begin \(video)"
            case .endVideo: "end"
            case .video(let time, let isKeyframe, _): "\(isKeyframe ? "key" : "video") \(time.nanoseconds / 1_000_000)"
            case .audio(let time, _): "audio \(time.nanoseconds / 1_000_000)"
            case .requestKeyframe: "request"
            }
        }
    }

    private static func started() -> LiveFrames {
        var frames = LiveFrames()
        frames.begin(.vp8, isNew: true, now: time(0))
        frames.begin(nil, isNew: true, now: time(0))
        return frames
    }

    @Test("leave as soon as they are complete, with the times of their arrival")
    func times() {
        var frames = Self.started()
        frames.take(isVideo: true, Self.video(0, isKeyframe: true), now: Self.time(0))
        frames.take(isVideo: false, Self.audio(0), now: Self.time(0))
        frames.take(isVideo: false, Self.audio(1), now: Self.time(20))
        frames.take(isVideo: true, Self.video(1), now: Self.time(40))
        #expect(Self.texts(frames.takeOutputs()) == ["begin vp8", "key 0", "audio 0", "audio 20", "video 40"])
        #expect(frames.takeOutputs().isEmpty)
    }

    @Test("that are missing are waited for, for 300 ms; then a keyframe is requested, and nothing leaves before it")
    func loss() {
        var frames = Self.started()
        frames.take(isVideo: true, Self.video(0, isKeyframe: true), now: Self.time(0))
        _ = frames.takeOutputs()
        frames.take(isVideo: true, Self.video(2), now: Self.time(80))
        frames.tick(now: Self.time(379))
        #expect(frames.takeOutputs().isEmpty)
        frames.tick(now: Self.time(381))
        #expect(Self.texts(frames.takeOutputs()) == ["request"])
        frames.take(isVideo: true, Self.video(3), now: Self.time(390))
        frames.tick(now: Self.time(1_380))
        #expect(frames.takeOutputs().isEmpty)
        // Repeated after a second.
        frames.tick(now: Self.time(1_382))
        #expect(Self.texts(frames.takeOutputs()) == ["request"])
        frames.take(isVideo: true, Self.video(4, isKeyframe: true), now: Self.time(1_400))
        #expect(Self.texts(frames.takeOutputs()) == ["key 160"])
    }

    @Test("that arrive late, but within the wait, are put into order")
    func order() {
        var frames = Self.started()
        frames.take(isVideo: true, Self.video(0, isKeyframe: true), now: Self.time(0))
        frames.take(isVideo: true, Self.video(2), now: Self.time(80))
        frames.take(isVideo: true, Self.video(1), now: Self.time(300))
        #expect(Self.texts(frames.takeOutputs()) == ["begin vp8", "key 0", "video 40", "video 80"])
    }

    @Test("end with a muted video, and begin again with a keyframe of its next source")
    func muted() {
        var frames = Self.started()
        frames.take(isVideo: true, Self.video(0, isKeyframe: true), now: Self.time(0))
        _ = frames.takeOutputs()
        frames.setForwarded(isVideo: true, false, now: Self.time(50))
        frames.setForwarded(isVideo: true, false, now: Self.time(60))
        frames.tick(now: Self.time(5_000))
        #expect(Self.texts(frames.takeOutputs()) == ["end"])
        frames.setForwarded(isVideo: true, true, now: Self.time(6_000))
        frames.begin(.vp8, isNew: false, now: Self.time(6_000))
        frames.take(isVideo: true, Self.video(150), now: Self.time(6_000))
        #expect(frames.takeOutputs().isEmpty)
        frames.take(isVideo: true, Self.video(151, isKeyframe: true), now: Self.time(6_040))
        #expect(Self.texts(frames.takeOutputs()).prefix(1) == ["begin vp8"])
    }

    @Test("of audio and video are put together by their sender reports, also if one travels longer")
    func reports() throws {
        var frames = Self.started()
        // The video of each moment arrives 100 ms after the audio.
        let origin = NTPTime(1_000 << 32)
        frames.report(isVideo: false, ntp: origin, timestamp: 0, arrival: Self.time(10))
        frames.report(isVideo: true, ntp: origin, timestamp: 0, arrival: Self.time(110))
        var late = Self.video(1, isKeyframe: true)
        late.arrival = Self.time(140)
        frames.take(isVideo: false, Self.audio(2), now: Self.time(50))
        frames.take(isVideo: true, late, now: Self.time(140))
        #expect(Self.texts(frames.takeOutputs()) == ["audio 50", "begin vp8", "key 50"])
    }
}
