import RTC
import Testing

@testable import MediaFiles

@Suite("Recording a stream")
struct MediaRecorderTests {
    typealias Script = SimulatedPublisher.Script

    private static func record(_ script: Script, until end: Int64) throws -> SimulatedPublisher {
        let seed = UInt64.random(in: 0...999_999)
        print("recording a stream: seed \(seed)")
        var publisher = SimulatedPublisher(script, seed: seed)
        try publisher.run(until: end)
        try publisher.finish()
        return publisher
    }

    /// How much later each block is in the file than it was captured, with the time in the file, in milliseconds.
    private static func errors(_ file: SimulatedPublisher.File, isVideo: Bool) -> [(time: Int64, error: Int64)] {
        file.blocks.filter { $0.isVideo == isVideo && $0.bytes.count > 3 }.map {
            ($0.time, file.start + $0.time - SimulatedPublisher.stamp(of: $0.bytes))
        }
    }

    @Test(
        "audio and video stay together for an hour, whichever begins first, with drifting clocks and losses",
        arguments: [(Int64(0), Int64(0)), (0, 500), (2_000, 0)])
    func lipSync(_ starts: (video: Int64, audio: Int64)) throws {
        let script = Script(
            videoStart: starts.video, audioStart: starts.audio, clock: 1 + 200e-6, card: 1 - 150e-6, loss: 0.02)
        let publisher = try Self.record(script, until: 3_600_000)
        let file = try #require(publisher.files.first)
        #expect(publisher.files.count == 1)
        let audio = Self.errors(file, isVideo: false)
        let video = Self.errors(file, isVideo: true)
        #expect(video.count > 85_000 && audio.count > 170_000)
        var (next, worst, late): (Int, Int64, Int64) = (0, 0, 0)
        for frame in video {
            while next + 1 < audio.count, audio[next].time < frame.time { next += 1 }
            let difference = abs(audio[next].error - frame.error)
            worst = max(worst, difference)
            if frame.time > 10_000 { late = max(late, difference) }
        }
        print("lip sync: at most \(worst) ms apart, after ten seconds \(late) ms")
        #expect(worst <= 40 && late <= 20)
    }

    @Test("two publishers whose clocks differ stay together within 60 ms for ten minutes")
    func betweenPublishers() throws {
        let scripts = [
            Script(clock: 1 + 200e-6, card: 1 - 150e-6, loss: 0.02),
            Script(videoStart: 500, clock: 1 - 100e-6, card: 1 + 120e-6, loss: 0.02),
        ]
        // How much later each block is in its file than it was captured. Both are on the recorder's clock.
        let late = try scripts.flatMap { script -> [Int64] in
            let file = try #require(try Self.record(script, until: 600_000).files.first)
            let errors = Self.errors(file, isVideo: false) + Self.errors(file, isVideo: true)
            return errors.filter { $0.time > 10_000 }.map { $0.error }
        }
        let (least, greatest) = (try #require(late.min()), try #require(late.max()))
        print("two publishers: \(least) to \(greatest) ms late")
        #expect(greatest - least <= 60)
    }

    @Test("audio has a packet for each 20 ms, and a mute of ten seconds is ten seconds of silence")
    func mute() throws {
        let script = Script(isAudioMuted: { (12_000..<22_000).contains($0) })
        let publisher = try Self.record(script, until: 30_000)
        let file = try #require(publisher.files.first)
        let audio = file.audioBlocks
        for (one, next) in zip(audio, audio.dropFirst()) {
            #expect((15...25).contains(next.time - one.time), "at \(one.time) ms")
        }
        let silent = audio.filter { $0.bytes == FileInProgress.silence }
        #expect((495...505).contains(silent.count), "\(silent.count) silent packets")
        #expect(abs(Int64(audio.count) * 20 - 30_000) <= 100)
        let end = try #require(file.end)
        #expect(abs(end - file.start - 30_000) <= 100)
        #expect(abs(try #require(file.videoBlocks.last).time - 30_000) <= 150)
    }

    @Test("a stream whose audio begins late has silence from the beginning of its file")
    func lateAudio() throws {
        let publisher = try Self.record(Script(audioStart: 4_000), until: 8_000)
        let file = try #require(publisher.files.first)
        #expect(file.audioBlocks.first?.time == 0)
        #expect(file.audioBlocks.prefix(150).allSatisfy { $0.bytes == FileInProgress.silence })
        let audio = Self.errors(file, isVideo: false)
        #expect(audio.count > 190 && audio.allSatisfy { abs($0.error - 25) <= 30 })
    }

    @Test("after a loss no frame precedes the next keyframe, which is requested within 50 ms of giving up")
    func losses() throws {
        let outages = stride(from: Int64(5_000), to: 55_000, by: 5_000)
        let script = Script(loss: 0.02, isOutage: { time in outages.contains { ($0..<$0 + 150).contains(time) } })
        let publisher = try Self.record(script, until: 60_000)
        let file = try #require(publisher.files.first)
        var last: Int64 = -40
        for block in file.videoBlocks {
            let sent = SimulatedPublisher.stamp(of: block.bytes)
            #expect(block.isKeyframe || sent == last + 40, "at \(sent) ms")
            last = sent
        }
        #expect(publisher.losses.count == 10)
        for outage in outages {
            // The first packet after the outage arrives 20 to 50 ms after it was sent, and then the wait begins.
            let window = outage + 150 + 600...outage + 200 + 50 + 600 + 50
            #expect(publisher.requests.contains { window.contains($0) }, "outage at \(outage): \(publisher.requests)")
        }
        let audio = file.audioBlocks
        for (one, next) in zip(audio, audio.dropFirst()) { #expect((10...30).contains(next.time - one.time)) }
        // 150 ms are concealed for 100 ms and then silent.
        #expect(audio.contains { $0.bytes == [0xf8] } && audio.contains { $0.bytes == FileInProgress.silence })
    }

    @Test("without any keyframe the file has sound alone, and keyframes are requested again and again")
    func noKeyframe() throws {
        let publisher = try Self.record(Script(sendsKeyframes: false), until: 20_000)
        let file = try #require(publisher.files.first)
        #expect(publisher.files.count == 1 && file.videoBlocks.isEmpty && file.audioBlocks.count >= 995)
        #expect((15...25).contains(publisher.requests.count), "\(publisher.requests)")
        #expect(publisher.requests.first.map { $0 <= 50 } ?? false)
    }

    @Test("a keyframe is requested when none has come for ten seconds")
    func keyframeInterval() throws {
        let publisher = try Self.record(Script(), until: 45_000)
        let keyframes = try #require(publisher.files.first).videoBlocks.filter(\.isKeyframe).map(\.time)
        #expect(keyframes.count == 5)
        for (one, next) in zip(keyframes, keyframes.dropFirst()) { #expect((9_900...10_300).contains(next - one)) }
    }

    @Test("sizes that change with each frame are reported once a second")
    func sizeFlood() throws {
        let sizes = [PictureSize(width: 320, height: 180), PictureSize(width: 1_280, height: 720)]
        let script = Script(size: { sizes[Int($0 / 40) % 2] }, isKeyframe: { _ in true })
        let publisher = try Self.record(script, until: 60_000)
        #expect((50...61).contains(publisher.sizes.count), "\(publisher.sizes.count) sizes")
        #expect(publisher.files.count == 1 && publisher.files[0].videoBlocks.count > 1_400)
    }

    @Test("VP8 of other sizes stays in the same file, whose header has the largest size")
    func sizes() throws {
        let sizes = [PictureSize(width: 320, height: 180), PictureSize(width: 1_280, height: 720)]
        let script = Script(size: { sizes[Int($0 / 10_000) % 2] })
        let publisher = try Self.record(script, until: 45_000)
        let file = try #require(publisher.files.first)
        #expect(publisher.files.count == 1)
        #expect(publisher.sizes.count >= 4 && Set(publisher.sizes) == Set(sizes))
        let layout = try #require(WebMLayout(file.memory.bytes))
        let width = Int(try #require(layout.width))
        #expect(Array(file.memory.bytes[width..<width + 2]) == [0x05, 0x00])
    }

    @Test("a stream without audio gets no silence")
    func noAudio() throws {
        let publisher = try Self.record(Script(hasAudio: false), until: 5_000)
        let file = try #require(publisher.files.first)
        #expect(file.audioBlocks.isEmpty && file.videoBlocks.count >= 120)
    }

    @Test("nothing is written before both tracks have reports, for at most three seconds")
    func hold() throws {
        var publisher = SimulatedPublisher(Script(), seed: 1)
        try publisher.run(until: 400)
        #expect(publisher.files.isEmpty)
        try publisher.run(until: 1_000)
        #expect(publisher.files.count == 1)
        var late = SimulatedPublisher(Script(audioReportInterval: 60_000), seed: 1)
        late.script.audioStart = 100
        try late.run(until: 3_300)
        #expect(late.files.count == 1)
    }
}
