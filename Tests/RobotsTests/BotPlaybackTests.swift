import RTC
import Testing

@testable import MediaFiles
@testable import Peers
@testable import Robots

@Suite("A bot's clip")
struct BotPlaybackTests {
    private static let start = MediaTime(nanoseconds: 5_000_000_000)

    private func video(frames: Int, keyframes: Int, step: UInt64 = 1) -> [UInt8] {
        var bytes = IVFHeader(width: 320, height: 240, unitNumerator: 1, unitDenominator: 10).bytes
        for number in 0..<frames {
            let frame = vp8Frame(isKeyframe: number % keyframes == 0, size: 12, filler: UInt8(number & 0xff))
            bytes += IVFFrame.header(time: UInt64(number) * step, size: frame.count) + frame
        }
        return bytes
    }

    private func audio(packets: Int) -> [UInt8] {
        var writer = OggWriter(serial: 1)
        var bytes = writer.page([OpusHead(channels: 1, preSkip: 0).bytes])
        bytes += writer.page([OpusTags.bytes(vendor: "")])
        for _ in 0..<packets { bytes += writer.page([[0x78, 1]]) }
        return bytes
    }

    private func clip(_ files: [UInt8]...) throws -> MediaClip {
        var clip = MediaClip()
        for file in files { try clip.add(file) }
        return clip
    }

    /// Returns the packets that are sent until a time, in milliseconds from the start.
    private func play(
        _ playback: inout Playback, until milliseconds: Int64
    ) -> [(kind: Playback.Kind, at: Int64, isKeyframe: Bool, start: Int)] {
        var sent: [(kind: Playback.Kind, at: Int64, isKeyframe: Bool, start: Int)] = []
        let end = Self.start + .milliseconds(milliseconds)
        while let due = playback.nextDue, due < end, let item = playback.next(now: due) {
            sent.append(
                (item.kind, (item.at - Self.start).milliseconds, item.item.isKeyframe, item.item.range.lowerBound))
        }
        return sent
    }

    @Test("with several videos has them as layers, the largest first and with the audio")
    func layers() throws {
        func sized(_ width: UInt16) -> [UInt8] {
            let frame = vp8Frame(isKeyframe: true, size: 12, filler: 0)
            return IVFHeader(width: width, height: width, unitNumerator: 1, unitDenominator: 10).bytes
                + IVFFrame.header(time: 0, size: frame.count) + frame
        }
        var clip = try clip(sized(160), audio(packets: 10), sized(640), sized(320))
        #expect(clip.rids == ["f", "h", "q"])
        #expect((0..<3).map { clip.layer($0).width } == [640, 320, 160])
        #expect((0..<3).map { clip.layer($0).hasAudio } == [true, false, false])
        #expect(clip.layer(0).rids.isEmpty && clip.width == 640)
        #expect(throws: MediaFileError.self) { try clip.add(sized(80)) }
    }

    @Test("loops without a gap, with increasing times")
    func rounds() throws {
        let clip = try clip(video(frames: 20, keyframes: 10), audio(packets: 100))
        var playback = Playback(clip, beginning: Self.start)
        let sent = play(&playback, until: 6_000)
        #expect(sent.filter { $0.kind == .video }.map(\.at) == (0..<60).map { $0 * 100 })
        #expect(sent.filter { $0.kind == .audio }.map(\.at) == (0..<300).map { $0 * 20 })
        #expect(sent.filter { $0.kind == .video && $0.isKeyframe }.map(\.at) == (0..<6).map { $0 * 1_000 })
        #expect(zip(sent, sent.dropFirst()).allSatisfy { $0.at <= $1.at })
    }

    @Test("with video and audio of similar length starts each round together")
    func film() throws {
        // A clip with 1900 ms of audio and 2000 ms of video.
        var playback = Playback(
            try clip(video(frames: 20, keyframes: 10), audio(packets: 95)), beginning: Self.start)
        let sound = play(&playback, until: 4_000).filter { $0.kind == .audio }.map(\.at)
        let round: [Int64] = (0..<95).map { $0 * 20 }
        #expect(sound == round + round.map { $0 + 2_000 })
    }

    @Test("with a video much shorter than its audio loops each separately")
    func loops() throws {
        var playback = Playback(
            try clip(video(frames: 10, keyframes: 10), audio(packets: 250)), beginning: Self.start)
        let sent = play(&playback, until: 5_000)
        #expect(sent.filter { $0.kind == .video }.map(\.at) == (0..<50).map { $0 * 100 })
        #expect(sent.filter { $0.kind == .audio }.count == 250)
    }

    @Test("shows the next keyframe early on request and stays in sync")
    func keyframe() throws {
        var playback = Playback(try clip(video(frames: 40, keyframes: 10)), beginning: Self.start)
        #expect(play(&playback, until: 450).count == 5)
        let asked = Self.start + .milliseconds(450)
        playback.showKeyframe(now: asked)
        let sent = play(&playback, until: 1_500)
        #expect(sent.map(\.at) == [450, 1_100, 1_200, 1_300, 1_400])
        #expect(sent[0].isKeyframe)
    }

    @Test("a simulcast layer continues without a pause after a requested keyframe")
    func layerKeyframe() throws {
        var playback = Playback(
            try clip(video(frames: 40, keyframes: 10)), beginning: Self.start, maxHold: .zero)
        _ = play(&playback, until: 450)
        playback.showKeyframe(now: Self.start + .milliseconds(450))
        let sent = play(&playback, until: 900)
        #expect(sent.map(\.at) == [450, 550, 650, 750, 850])
        #expect(sent.map(\.isKeyframe) == [true, false, false, false, false])
    }

    @Test("repeats the current keyframe on request, rate-limited")
    func again() throws {
        var playback = Playback(try clip(video(frames: 40, keyframes: 10)), beginning: Self.start)
        _ = play(&playback, until: 150)
        for milliseconds in stride(from: 150, to: 950, by: 10) as StrideTo<Int64> {
            playback.showKeyframe(now: Self.start + .milliseconds(milliseconds))
        }
        // The requests share one keyframe.
        let first = play(&playback, until: 300)
        #expect(first.map(\.at) == [150])
        #expect(first[0].isKeyframe)
        // It was sent at 150 ms, so the next one may be sent at 450 ms at the earliest.
        playback.showKeyframe(now: Self.start + .milliseconds(300))
        let second = play(&playback, until: 1_150)
        #expect(second.map(\.at) == [450, 1_100])
        #expect(second[0].start == first[0].start, "the same keyframe is sent again")
    }

    @Test("repeats the first keyframe at once for a subscriber that comes just after it")
    func beginning() throws {
        var playback = Playback(try clip(video(frames: 40, keyframes: 10)), beginning: Self.start)
        let begun = play(&playback, until: 10)
        playback.showKeyframe(now: Self.start + .milliseconds(10))
        let repeated = play(&playback, until: 50)
        #expect(begun.map(\.at) == [0] && repeated.map(\.at) == [10])
        #expect(repeated.map(\.start) == begun.map(\.start))
    }

    @Test("skips to a distant keyframe, together with its audio")
    func jump() throws {
        var playback = Playback(
            try clip(video(frames: 100, keyframes: 50), audio(packets: 500)), beginning: Self.start)
        _ = play(&playback, until: 1_000)
        playback.showKeyframe(now: Self.start + .milliseconds(1_000))
        let sent = play(&playback, until: 1_200)
        let pictures = sent.filter { $0.kind == .video }
        #expect(pictures.map(\.at) == [1_000, 1_100])
        #expect(pictures[0].isKeyframe && !pictures[1].isKeyframe)
        // The audio has 5000 ms, and two bytes per packet after the headers.
        let sounds = sent.filter { $0.kind == .audio }
        #expect(sounds.map(\.at) == (50..<60).map { $0 * 20 })
        let whole = try opus(audio(packets: 500))
        #expect(sounds.first?.start == whole.packets[250].range.lowerBound)
    }

    @Test("does not catch up after a long pause")
    func late() throws {
        var playback = Playback(try clip(video(frames: 20, keyframes: 10)), beginning: Self.start)
        _ = play(&playback, until: 250)
        let later = Self.start + .seconds(60)
        #expect(playback.next(now: later)?.at == later)
        #expect(playback.next(now: later) == nil)
        #expect(playback.nextDue == later + .milliseconds(100))
    }

    @Test("of one frame repeats it with increasing times")
    func oneFrame() throws {
        var playback = Playback(try clip(video(frames: 1, keyframes: 1)), beginning: Self.start)
        #expect(play(&playback, until: 1_000).count == 31)
        var still = Playback(try clip(video(frames: 10, keyframes: 5, step: 0)), beginning: Self.start)
        #expect(play(&still, until: 10).map(\.at) == Array(0..<10))
    }

    @Test("rejects unsupported files with a message")
    func refusals() throws {
        var clip = MediaClip()
        var other = video(frames: 2, keyframes: 1)
        other.replaceSubrange(8..<12, with: Array("VP90".utf8))
        #expect { try clip.add(other) } throws: { ($0 as? MediaFileError)?.code == .otherCodec }
        #expect { try clip.add(Array("RIFF".utf8)) } throws: { ($0 as? MediaFileError)?.code == .notThisFormat }
        #expect { try clip.add(Array(video(frames: 1, keyframes: 1).prefix(40))) } throws: {
            ($0 as? MediaFileError)?.code == .damaged
        }
        #expect { try clip.add(audio(packets: 0)) } throws: { ($0 as? MediaFileError)?.code == .damaged }
        for _ in MediaClip.rids { try clip.add(video(frames: 1, keyframes: 1)) }
        #expect { try clip.add(video(frames: 1, keyframes: 1)) } throws: {
            ($0 as? MediaFileError)?.message == "is one video file too many; a bot plays 3 layers"
        }
    }

    @Test("has a small sample with a keyframe every second that loops seamlessly")
    func sample() {
        let sample = MediaClip.sample
        #expect(PackageResources.picture_ivf.count + PackageResources.sound_ogg.count < 150_000)
        #expect(sample.width == 320 && sample.height == 240)
        #expect(sample.video?.items.count == 60)
        #expect(sample.video?.length.milliseconds == 4_000)
        #expect(sample.audio?.length.milliseconds == 4_000)
        let keyframes = sample.video?.items.filter(\.isKeyframe).map(\.at.milliseconds) ?? []
        #expect(keyframes == [0, 1_000, 2_000, 3_000])
    }
}
