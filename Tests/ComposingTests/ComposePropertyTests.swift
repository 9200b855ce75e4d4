import Composing
import Layout
import MediaFiles
import TestSupport
import Testing
import Wire

@Suite("Properties of every plan")
struct ComposePropertyTests {
    /// A log of people who join, leave, mute, share screens and change classes and layouts, in any order, also senseless ones.
    static func randomLog(
        _ random: inout SeededGenerator, withScreens: Bool = true
    ) -> (ArchiveLog, [String: SourceFacts]) {
        var lines: [(Int64, ArchiveEvent)] = []
        var facts: [String: SourceFacts] = [:]
        var time: Int64 = 0
        let people = Int.random(in: 1...70, using: &random)
        let kinds = ["bestFit", "pip", "verticalPresentation", "horizontalPresentation", "custom"]
        for index in 0..<Int.random(in: 1...400, using: &random) {
            time += Int64.random(in: 0...1_500, using: &random)
            let id = "s\(Int.random(in: 0..<people, using: &random))"
            switch Int.random(in: 0..<12, using: &random) {
            case 0...2:
                let isScreen = Int.random(in: 0..<9, using: &random) == 0 && withScreens
                lines.append((time, ComposePlanTests.stream(id, isScreen: isScreen)))
            case 3...5:
                let name = "f\(index).webm"
                lines.append((time, ComposePlanTests.file(id, name)))
                facts[name] = SourceFacts(
                    hasVideo: Int.random(in: 0..<5, using: &random) > 0, hasAudio: Bool.random(using: &random),
                    firstFrame: Int64.random(in: 0...3_000, using: &random))
                if Int.random(in: 0..<9, using: &random) == 0 { facts[name] = nil }
            case 6: lines.append((time, .gone(stream: id)))
            case 7: lines.append((time, .video(stream: id, isOn: Bool.random(using: &random))))
            case 8:
                lines.append(
                    (time, .classes(stream: id, [["focus"], ["full"], []].randomElement(using: &random) ?? [])))
            case 9:
                let kind = kinds.randomElement(using: &random) ?? ""
                let whileSharing = Bool.random(using: &random) ? kinds.randomElement(using: &random) : nil
                lines.append((time, .layout(ArchiveLayout(kind, screenshareType: whileSharing))))
            case 10:
                let (audio, video) = (Bool.random(using: &random), Bool.random(using: &random))
                lines.append((time, .include(stream: id, audio: audio, video: video)))
            default:
                lines.append((time, .rotation(stream: id, degrees: Int.random(in: 0...3, using: &random) * 90)))
            }
        }
        if Bool.random(using: &random) { lines.append((time + 777, .end(reason: ""))) }
        return (ComposePlanTests.log(lines), facts)
    }

    @Test("chunks cover all frames, cells are even and inside, and no limit is exceeded")
    func properties() {
        let seed = UInt64.random(in: 0...(.max))
        var random = SeededGenerator(seed: seed)
        for _ in 0..<150 {
            let (log, facts) = Self.randomLog(&random)
            let size = [(640, 480), (480, 640), (1280, 720), (1080, 1920)].randomElement(using: &random) ?? (640, 480)
            var options = ComposeOptions()
            options.canvas = ArchiveCanvas(width: size.0, height: size.1)
            let plan = ComposePlan(log, facts: facts, options: options)
            check(plan, log, "seed \(seed)")
        }
    }

    private func check(_ plan: ComposePlan, _ log: ArchiveLog, _ seed: Comment) {
        let length = log.lines.last?.time ?? .zero
        #expect(plan.frames == Int(length / .milliseconds(ComposedFormat.frame)), seed)
        #expect(plan.chunks.reduce(0) { $0 + $1.frames.count } == plan.frames, seed)
        #expect(plan.frames == 0 || plan.chunks.first?.frames.lowerBound == 0, seed)
        #expect(
            zip(plan.chunks, plan.chunks.dropFirst()).allSatisfy { $0.frames.upperBound == $1.frames.lowerBound }, seed)
        for chunk in plan.chunks {
            #expect(!chunk.frames.isEmpty && chunk.frames.count <= ComposePlan.maxChunk, seed)
            #expect(chunk.sources.count <= ComposedLayout.maxDrawn, seed)
            #expect(Set(chunk.sources.map(\.cell.id)).count == chunk.sources.count, seed)
            for source in chunk.sources {
                let cell = source.cell
                #expect([cell.x, cell.y, cell.width, cell.height].allSatisfy { $0 % 2 == 0 && $0 >= 0 }, seed)
                #expect(cell.x + cell.width <= plan.canvas.width && cell.y + cell.height <= plan.canvas.height, seed)
                // No picture is drawn before its file begins.
                #expect(source.start <= Int64(chunk.frames.lowerBound) * ComposedFormat.frame, seed)
            }
        }
        checkSound(plan, seed)
    }

    private func checkSound(_ plan: ComposePlan, _ seed: Comment) {
        let ranges = plan.heard.flatMap(\.ranges)
        for time in Set(ranges.map(\.lowerBound)) {
            #expect(ranges.count { $0.contains(time) } <= ComposedFormat.maxHeard, seed)
        }
        for source in plan.heard {
            #expect(zip(source.ranges, source.ranges.dropFirst()).allSatisfy { $0.upperBound < $1.lowerBound }, seed)
            #expect((source.ranges.first?.lowerBound ?? -1) >= source.start, seed)
        }
    }
}
