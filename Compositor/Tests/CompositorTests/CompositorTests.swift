import Layout
import LiveComposing
import Testing

@testable import Compositor

/// Composes in simulated time, and lets ffmpeg and ffprobe judge what comes out.
@Suite("A composed broadcast", .enabled(if: TestMedia.hasFFmpeg, "ffmpeg is not installed"))
struct CompositorTests {
    private static let configuration = CompositorConfiguration(width: 640, height: 360, delay: .milliseconds(600))

    private static func cell(_ stream: UInt32, _ x: Int, _ width: Int = 320) -> CompositorCell {
        CompositorCell(stream: stream, x: x, y: 0, width: width, height: 360)
    }

    private static func layout(_ cells: [CompositorCell], at milliseconds: Int = 0) -> CompositorInput {
        .layout(CompositorLayout(cells), at: .milliseconds(milliseconds))
    }

    @Test("the output has every frame and both tracks, and each stream appears and disappears at the right frame")
    func pictures() throws {
        try TestMedia.with { media in
            var broadcast = try SimulatedBroadcast(Self.configuration)
            let inputs: [CompositorInput] =
                [.open(stream: 1, .vp8, configuration: []), .open(stream: 2, .vp8, configuration: [])]
                + [Self.layout([Self.cell(1, 0, 640)]), Self.layout([Self.cell(1, 0), Self.cell(2, 320)], at: 1_000)]
                + [Self.layout([Self.cell(2, 0, 640)], at: 3_000)]
                + (try media.video(TestMedia.gray(80, seconds: 4), of: 1))
                + (try media.video(TestMedia.gray(180, seconds: 3), of: 2, at: .seconds(1)))
                + (try media.audio("sine=f=440:d=4", of: 1))
            try broadcast.run(inputs, until: .seconds(4), latency: .milliseconds(100))
            try broadcast.stop(at: .milliseconds(3_800))
            let file = try ComposedFile(broadcast.file, media, width: 640, height: 360)
            #expect(file.frames == 96)
            #expect(file.tracks.contains("codec_name=h264|profile=Main|width=640|height=360|level=31"))
            #expect(file.tracks.contains("codec_name=aac") && file.tracks.contains("channels=1"))
            #expect(abs(file.samples.count - 48_000 * 384 / 100) <= 4_096)
            for frame in [0, 12, 24] { #expect(file.shows(80, frame, 320, 180), "frame \(frame)") }
            for frame in [25, 50, 74] {
                #expect(file.shows(80, frame, 160, 180) && file.shows(180, frame, 480, 180), "frame \(frame)")
                // The cells are higher than the frames.
                #expect(file.shows(16, frame, 160, 20) && file.shows(16, frame, 480, 340))
            }
            for frame in [75, 95] { #expect(file.shows(180, frame, 320, 180), "frame \(frame)") }
            #expect(broadcast.faults.isEmpty)
            Self.check(broadcast.fragments)
        }
    }

    /// Checks that fragments follow each other, and that each fourth begins with a keyframe.
    private static func check(_ fragments: [CompositorFragment]) {
        #expect(!fragments.isEmpty)
        for (index, fragment) in fragments.enumerated() {
            #expect(fragment.time == .milliseconds(480 * index) && fragment.duration == .milliseconds(480))
            #expect(fragment.isKeyframe == (index % 4 == 0))
            #expect(fragment.bytes[4..<8].elementsEqual("moof".utf8))
        }
    }

    @Test("flash and beep are together within 40 ms, also of a stream that joins later", arguments: [0, 740])
    func lipSync(start: Int) throws {
        try TestMedia.with { media in
            var broadcast = try SimulatedBroadcast(Self.configuration)
            let inputs =
                [.open(stream: 1, .vp8, configuration: []), Self.layout([Self.cell(1, 0, 640)])]
                + (try media.flashes(of: 1, at: .milliseconds(start), seconds: 4))
            try broadcast.run(inputs, until: .seconds(5))
            let file = try ComposedFile(broadcast.file, media, width: 640, height: 360)
            let (worst, flashes) = file.lipSync(320, 180)
            print("flash and beep are at most \(Int(worst * 1_000)) ms apart, measured")
            #expect(flashes >= 3 && worst <= 0.04)
        }
    }

    @Test("shows streams of each codec")
    func codecs() throws {
        try TestMedia.with { media in
            var broadcast = try SimulatedBroadcast(Self.configuration)
            var inputs: [CompositorInput] = []
            var cells: [CompositorCell] = []
            for (index, codec) in CompositorCodec.allCases.enumerated() {
                let (stream, brightness) = (UInt32(index + 1), 60 + 40 * index)
                inputs.append(.open(stream: stream, codec, configuration: []))
                cells.append(CompositorCell(stream: stream, x: index * 160, y: 0, width: 160, height: 90))
                let image = TestMedia.gray(brightness, size: "160x90", seconds: 1)
                inputs += try codec == .h264 ? media.h264(image, of: stream) : media.video(image, codec, of: stream)
            }
            try broadcast.run([Self.layout(cells)] + inputs, until: .milliseconds(1_600))
            let file = try ComposedFile(broadcast.file, media, width: 640, height: 360)
            for index in cells.indices {
                for frame in [1, 23] {
                    #expect(file.shows(60 + 40 * index, frame, index * 160 + 80, 40), "\(index) \(frame)")
                }
            }
            #expect(broadcast.faults.isEmpty && file.frames == 24)
        }
    }

    @Test("a stream that was hidden or whose camera was off is black until its next keyframe, then shown again")
    func hidden() throws {
        try TestMedia.with { media in
            var broadcast = try SimulatedBroadcast(Self.configuration)
            let full = [Self.cell(1, 0, 640)]
            try broadcast.run(
                [.open(stream: 1, .vp8, configuration: []), Self.layout(full), Self.layout([], at: 1_000)]
                    + [Self.layout(full, at: 2_000)] + (try media.video(TestMedia.gray(80, seconds: 3), of: 1)),
                until: .milliseconds(2_980))
            // Its camera is turned off in its cell.
            try broadcast.run([.open(stream: 1, nil, configuration: [])], until: .seconds(5))
            let file = try ComposedFile(broadcast.file, media, width: 640, height: 360)
            for frame in [0, 24, 50, 74] { #expect(file.shows(80, frame, 320, 180), "frame \(frame)") }
            for frame in [25, 49, 76, 95] { #expect(file.shows(16, frame, 320, 180), "frame \(frame)") }
            #expect(broadcast.faults.isEmpty)
        }
    }

    @Test("is black and silent without streams, and a stream without frames is a black cell")
    func black() throws {
        try TestMedia.with { media in
            var broadcast = try SimulatedBroadcast(Self.configuration)
            let inputs = [.open(stream: 1, .vp8, configuration: []), Self.layout([Self.cell(1, 0)])]
            try broadcast.run(inputs, until: .milliseconds(2_600))
            let file = try ComposedFile(broadcast.file, media, width: 640, height: 360)
            #expect(file.frames == 48 && file.shows(16, 0, 160, 180) && file.shows(16, 47, 500, 180))
            #expect(file.samples.allSatisfy { abs(Int($0)) <= 2 })
            // Each 500 ms, until there is one.
            #expect((4...6).contains(broadcast.requests.count))
        }
    }

    @Test("a damaged stream is reported once, requests a keyframe, and continues; the others are not affected")
    func damage() throws {
        try TestMedia.with { media in
            var broadcast = try SimulatedBroadcast(Self.configuration)
            var inputs: [CompositorInput] =
                [.open(stream: 1, .vp8, configuration: []), .open(stream: 2, .vp8, configuration: [])]
                + [Self.layout([Self.cell(1, 0), Self.cell(2, 320)])]
            for input in try media.video(TestMedia.gray(80, seconds: 3), of: 1) {
                guard case .video(_, let time, let isKeyframe, let bytes) = input else { continue }
                // No keyframe at 2 s, and damaged frames for half a second before that.
                let isDamaged = (.milliseconds(1_000)..<Duration.milliseconds(1_500)).contains(time)
                inputs.append(
                    .video(stream: 1, at: time, isKeyframe: isKeyframe, isDamaged ? [0xff, 0xff, 0xff] : bytes))
            }
            inputs += try media.video(TestMedia.gray(180, seconds: 3), of: 2)
            inputs += [.audio(stream: 2, at: .seconds(1), [0xff, 0xff, 0xff])]
            try broadcast.run(inputs, until: .milliseconds(3_500))
            #expect(broadcast.faults.map(\.stream) == [2, 1])
            #expect(broadcast.requests.contains(1) && (broadcast.stats.last?.damaged ?? 0) >= 2)
            let file = try ComposedFile(broadcast.file, media, width: 640, height: 360)
            // Its last image stands, until the keyframe at 2 s.
            for frame in [20, 40, 60] { #expect(file.shows(80, frame, 160, 180) && file.shows(180, frame, 480, 180)) }
        }
    }

    @Test("a slow machine encodes faster and then less, at keyframes, and the times of frames stay right")
    func slow() throws {
        try TestMedia.with { media in
            var broadcast = try SimulatedBroadcast(Self.configuration)
            // Only the last step but one is fast enough.
            broadcast.cost = { preset, stride in .milliseconds(stride > 1 ? 10 : preset == "ultrafast" ? 90 : 120) }
            let inputs =
                [.open(stream: 1, .vp8, configuration: []), Self.layout([Self.cell(1, 0, 640)])]
                + (try media.flashes(of: 1, seconds: 18))
            try broadcast.run(inputs, until: .seconds(18))
            let presets = broadcast.stats.map { "\($0.preset) \($0.interval)" }
            #expect(
                presets.contains { $0.hasPrefix("superfast") } && presets.contains { $0.hasPrefix("ultrafast 0.04") })
            #expect(presets.last?.hasPrefix("ultrafast 0.08") == true)
            #expect((broadcast.stats.last?.behind ?? .seconds(9)) < .seconds(2))
            Self.check(broadcast.fragments)
            // Decodes without errors, although the encoder changed.
            let file = try ComposedFile(broadcast.file, media, width: 640, height: 360)
            let expected = broadcast.fragments.indices.reduce(0) { sum, index in
                // The step of a group is in the stats at its beginning.
                let interval = index < 4 ? CompositorClock.interval : broadcast.stats[index / 4 - 1].interval
                return sum + Int(.milliseconds(480) / interval)
            }
            #expect(file.frames == expected)
            // Three groups have all frames. The preset changed twice in them.
            let (worst, flashes) = file.lipSync(320, 180, frames: 3 * CompositorClock.framesPerGroup)
            #expect(flashes == 6 && worst <= 0.04)
        }
    }

    @Test("has the same header for each preset, in each size that OpenTok has")
    func headers() throws {
        for (width, height) in [(640, 480), (480, 640), (1_280, 720), (720, 1_280), (1_920, 1_080), (1_080, 1_920)] {
            let configuration = CompositorConfiguration(width: width, height: height)
            let headers = try EncoderPace.steps.map { try VideoEncoder(configuration, preset: $0.preset).header }
            #expect(!headers[0].isEmpty && Set(headers).count == 1, "\(width)x\(height)")
        }
    }
}
