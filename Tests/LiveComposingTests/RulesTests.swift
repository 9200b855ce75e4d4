import Layout
import TestSupport
import Testing

@testable import LiveComposing

@Suite("The compositor's clock")
struct CompositorClockTests {
    @Test("makes a frame due each 40 ms, after the delay, and shows the time of the server's timeline")
    func frames() {
        var clock = CompositorClock(start: .seconds(100), now: .seconds(7), delay: .milliseconds(600))
        #expect(clock.time == .seconds(100) && clock.due == .milliseconds(7_600))
        for _ in 0..<25 { clock.advance() }
        #expect(clock.next == 25 && clock.time == .seconds(101) && clock.due == .milliseconds(8_600))
        #expect(clock.behind(now: .milliseconds(8_500)) == .zero)
        #expect(clock.behind(now: .milliseconds(8_650)) == .milliseconds(50))
        #expect(clock.timeline(now: .milliseconds(8_600)) == .milliseconds(101_600))
    }
}

@Suite("The encoder's pace")
struct EncoderPaceTests {
    private static let group = Duration.milliseconds(1_920)

    @Test(
        "falls step by step while the compositor is two seconds late and does not gain, and never below the last step")
    func falls() {
        var pace = EncoderPace()
        pace.groupBegins(behind: .milliseconds(1_999), load: 100, now: .zero)
        #expect(pace.step == .init(preset: "veryfast", stride: 1))
        var behind = Duration.seconds(2)
        let expected = ["superfast 1", "ultrafast 1", "ultrafast 2", "ultrafast 12", "ultrafast 12"]
        for (index, step) in expected.enumerated() {
            behind += .milliseconds(100)
            pace.groupBegins(behind: behind, load: 100, now: Self.group * index)
            #expect("\(pace.step.preset) \(pace.step.stride)" == step)
        }
    }

    @Test("stays while the compositor catches up")
    func catchesUp() {
        var pace = EncoderPace()
        for behind in [2.5, 2.2, 2.0] { pace.groupBegins(behind: .seconds(behind), load: 100, now: .zero) }
        #expect(pace.step.preset == "superfast")
    }

    @Test("rises after 30 s on time at half load, and waits twice as long after that was too slow")
    func rises() {
        var pace = EncoderPace()
        pace.groupBegins(behind: .seconds(3), load: 100, now: .zero)
        var now = Duration.zero
        /// Returns how many seconds pass until the step is `preset`.
        func seconds(until preset: String, load: Int) -> Int? {
            for second in 0..<200 {
                now += .seconds(1)
                pace.groupBegins(behind: .milliseconds(10), load: load, now: now)
                if pace.step.preset == preset { return second }
            }
            return nil
        }
        #expect(seconds(until: "veryfast", load: 51) == nil)
        #expect(seconds(until: "veryfast", load: 50) == 30)
        pace.groupBegins(behind: .seconds(2), load: 100, now: now)
        #expect(pace.step.preset == "superfast")
        #expect(seconds(until: "veryfast", load: 50) == 60)
    }

    @Test("has steps whose fragments have the same duration and begin at the same frames")
    func steps() {
        for step in EncoderPace.steps { #expect(CompositorClock.framesPerFragment.isMultiple(of: step.stride)) }
        #expect(CompositorClock.framesPerGroup.isMultiple(of: CompositorClock.framesPerFragment))
    }
}

@Suite("The place of a frame in its cell")
struct PlacementTests {
    private static func cell(_ fit: LayoutFit, _ width: Int = 640, _ height: Int = 360) -> CompositorCell {
        CompositorCell(stream: 1, x: 100, y: 50, width: width, height: height, fit: fit)
    }

    @Test("is the whole cell for a frame of the same shape")
    func same() {
        for fit in [LayoutFit.contain, .cover] {
            let place = Placement(width: 1_280, height: 720, in: Self.cell(fit))
            #expect(place.source == .init(x: 0, y: 0, width: 1_280, height: 720))
            #expect(place.target == .init(x: 100, y: 50, width: 640, height: 360))
        }
    }

    @Test("leaves black beside a frame that is contained, and cuts off a frame that covers")
    func shapes() {
        let narrow = Placement(width: 640, height: 480, in: Self.cell(.contain))
        #expect(narrow.target == .init(x: 180, y: 50, width: 480, height: 360))
        let wide = Placement(width: 1_000, height: 250, in: Self.cell(.contain))
        #expect(wide.target == .init(x: 100, y: 150, width: 640, height: 160))
        let cut = Placement(width: 640, height: 480, in: Self.cell(.cover))
        #expect(cut.source == .init(x: 0, y: 60, width: 640, height: 360))
        let sides = Placement(width: 1_000, height: 250, in: Self.cell(.cover))
        #expect(sides.source == .init(x: 278, y: 0, width: 444, height: 250))
        #expect(sides.target == .init(x: 100, y: 50, width: 640, height: 360))
    }

    @Test("is even and inside for random sizes", arguments: [UInt64.random(in: 0...UInt64.max)])
    func random(seed: UInt64) {
        print("seed \(seed)")
        var random = SeededGenerator(seed: seed)
        for _ in 0..<10_000 {
            let (width, height) = (Int.random(in: 1...4_096, using: &random), Int.random(in: 1...4_096, using: &random))
            let fit = Bool.random(using: &random) ? LayoutFit.contain : .cover
            let cell = Self.cell(
                fit, Int.random(in: 1...2_048, using: &random) * 2, Int.random(in: 1...2_048, using: &random) * 2)
            let place = Placement(width: width, height: height, in: cell)
            let (source, target) = (place.source, place.target)
            let evens = [target.x, target.y, target.width, target.height, source.x, source.y]
            #expect(evens.allSatisfy { $0.isMultiple(of: 2) })
            #expect(target.x >= cell.x && target.x + target.width <= cell.x + cell.width && target.width > 0)
            #expect(target.y >= cell.y && target.y + target.height <= cell.y + cell.height && target.height > 0)
            #expect(source.x >= 0 && source.x + source.width <= width && source.width > 0)
            #expect(source.y >= 0 && source.y + source.height <= height && source.height > 0)
        }
    }
}

@Suite("The queue of a stream's video")
struct VideoQueueTests {
    private static func frame(_ time: Int, key: Bool = false) -> VideoQueue.Frame {
        .init(time: .milliseconds(time), isKeyframe: key, bytes: [UInt8(truncatingIfNeeded: time)])
    }

    /// The times of the frames among items, and "open" for a decoder.
    private static func text(_ items: [VideoQueue.Item]) -> String {
        items.map { item in
            if case .frame(let frame) = item { String(frame.time.wholeMicroseconds / 1_000) } else { "open" }
        }.joined(separator: " ")
    }

    @Test("begins with a keyframe, and gives what is due in order")
    func due() {
        var queue = VideoQueue()
        queue.open(.vp8, configuration: [])
        queue.push(Self.frame(0))
        #expect(queue.needsKeyframe && queue.dropped == 1)
        for time in [40, 80, 120, 160] { queue.push(Self.frame(time, key: time == 40)) }
        #expect(Self.text(queue.take(until: .milliseconds(39))) == "")
        #expect(Self.text(queue.take(until: .milliseconds(100))) == "open 40 80")
        #expect(Self.text(queue.take(until: .milliseconds(120))) == "120")
        #expect(!queue.needsKeyframe && !queue.isEmpty)
    }

    @Test("opens another decoder only when its first frame is due")
    func codecs() {
        var queue = VideoQueue()
        queue.open(.vp8, configuration: [])
        queue.push(Self.frame(0, key: true))
        queue.open(.av1, configuration: [1])
        queue.push(Self.frame(40))
        #expect(queue.needsKeyframe)
        queue.push(Self.frame(80, key: true))
        #expect(Self.text(queue.take(until: .milliseconds(79))) == "open 0")
        #expect(queue.take(until: .milliseconds(80)).first == .decoder(.av1, configuration: [1]))
    }

    @Test("keeps only the last of several decoders without a frame between them")
    func replacedDecoders() {
        var queue = VideoQueue()
        queue.open(.vp8, configuration: [])
        queue.push(Self.frame(0, key: true))
        for number in 1...9 { queue.open(.av1, configuration: [UInt8(number)]) }
        queue.push(Self.frame(40, key: true))
        let items = queue.take(until: .seconds(1))
        #expect(Self.text(items) == "open 0 open 40" && items[2] == .decoder(.av1, configuration: [9]))
    }

    @Test("gives the decoder again after it was cleared")
    func cleared() {
        var queue = VideoQueue()
        queue.open(.vp8, configuration: [3])
        queue.push(Self.frame(0, key: true))
        _ = queue.take(until: .zero)
        queue.clear()
        queue.push(Self.frame(40, key: true))
        let items = queue.take(until: .seconds(1))
        #expect(Self.text(items) == "open 40" && items.first == .decoder(.vp8, configuration: [3]))
    }

    @Test("counts configurations as it counts frames, and keeps nothing that was taken")
    func bytes() {
        var queue = VideoQueue()
        let configuration = [UInt8](repeating: 7, count: 64 << 10)
        for time in 0..<290 {
            queue.open(.h264, configuration: configuration)
            queue.push(Self.frame(time, key: true))
            #expect(queue.bytes <= VideoQueue.maxBytes && queue.storedBytes == queue.bytes)
        }
        #expect(queue.dropped > 0 && queue.bytes > 0)
        queue.clear()
        // Fewer than are removed at once.
        for time in 0..<20 { queue.push(.init(time: .milliseconds(time), isKeyframe: true, bytes: configuration)) }
        _ = queue.take(until: .milliseconds(9))
        #expect(queue.bytes == 10 * configuration.count && queue.storedBytes == queue.bytes)
        queue.decoderFailed()
        queue.clear()
        #expect(queue.bytes == configuration.count && queue.storedBytes == queue.bytes)
    }

    @Test("continues at a keyframe after the decoder failed")
    func failures() {
        var queue = VideoQueue()
        for time in 0..<6 { queue.push(Self.frame(time, key: time == 0 || time == 4)) }
        _ = queue.take(until: .milliseconds(1))
        queue.decoderFailed()
        #expect(!queue.needsKeyframe && queue.dropped == 2)
        #expect(Self.text(queue.take(until: .seconds(1))) == "4 5")
        queue.decoderFailed()
        #expect(queue.needsKeyframe && queue.isEmpty)
    }

    @Test("is bounded in frames and in bytes, and continues at a keyframe when it was full")
    func bounds() {
        var queue = VideoQueue()
        for time in 0..<2_000 { queue.push(Self.frame(time, key: time == 0)) }
        #expect(queue.needsKeyframe && queue.take(until: .seconds(10)).count <= VideoQueue.maxItems)
        let large = [UInt8](repeating: 0, count: CompositorMessage.maxBody)
        for time in 0..<20 { queue.push(.init(time: .milliseconds(time), isKeyframe: true, bytes: large)) }
        #expect(queue.take(until: .seconds(10)).count <= VideoQueue.maxBytes / CompositorMessage.maxBody)
        for time in 0..<2_000 {
            queue.open(.vp8, configuration: [])
            queue.push(Self.frame(time, key: true))
        }
        #expect(queue.take(until: .seconds(10)).count <= VideoQueue.maxItems)
    }
}
