import Layout
import MediaFiles
import TestSupport
import Testing
import Wire

@testable import Composing

@Suite("Chunks that are composed while the archive is recorded")
struct SettledChunksTests {
    /// The lines of a log that were written until a time, and the chunks that are settled then.
    private static func settled(_ lines: [(Int64, ArchiveEvent)], until time: Int64) -> ArraySlice<ComposedChunk> {
        let written = ComposePlanTests.log(lines.filter { $0.0 <= time })
        let facts = ["x.webm": ComposePlanTests.both, "y.webm": ComposePlanTests.both]
        let plan = ComposePlan(written, facts: facts, soFar: time)
        return plan.chunks.prefix(plan.settled(at: time))
    }

    private static let lines: [(Int64, ArchiveEvent)] = [
        (0, ComposePlanTests.stream("x")), (0, ComposePlanTests.file("x")), (130_000, ComposePlanTests.stream("y")),
        (130_000, ComposePlanTests.file("y")), (140_000, .end(reason: "")),
    ]

    @Test("a minute is settled ten seconds after its end, and a shorter chunk when the layout has changed after it")
    func times() {
        #expect(Self.settled(Self.lines, until: 69_999).isEmpty)
        #expect(Self.settled(Self.lines, until: 70_000).map(\.frames) == [0..<1_500])
        #expect(Self.settled(Self.lines, until: 129_999).map(\.frames) == [0..<1_500])
        #expect(Self.settled(Self.lines, until: 130_000).map(\.frames) == [0..<1_500, 1_500..<3_000])
        #expect(Self.settled(Self.lines, until: 139_999).map(\.frames) == [0..<1_500, 1_500..<3_000])
        #expect(Self.settled(Self.lines, until: 140_040).map(\.frames) == [0..<1_500, 1_500..<3_000, 3_000..<3_250])
    }

    // The random logs have no screens: if a stream is published again as a screen, chunks before that change too.
    @Test("what is settled is in the plan of the whole archive, whatever happens later")
    func prefixes() {
        let seed = UInt64.random(in: 0...(.max))
        var random = SeededGenerator(seed: seed)
        for _ in 0..<100 {
            let (whole, facts) = ComposePropertyTests.randomLog(&random, withScreens: false)
            let plan = ComposePlan(whole, facts: facts)
            let last = whole.lines.last?.time.wholeMilliseconds ?? 0
            for _ in 0..<5 {
                let now = Int64.random(in: 0...last, using: &random)
                let written = ArchiveLog(whole.lines.filter { $0.time.wholeMilliseconds <= now })
                let soFar = ComposePlan(written, facts: facts, soFar: now)
                let settled = soFar.settled(at: now)
                #expect(soFar.chunks.isEmpty || settled < soFar.chunks.count, "seed \(seed)")
                #expect(soFar.chunks.prefix(settled) == plan.chunks.prefix(settled), "seed \(seed), \(now) ms")
            }
        }
    }

    @Test("the recorded time runs with the time of day, and stands still during pauses")
    func recordedTime() {
        func day(_ milliseconds: Int64) -> Timestamp { Timestamp(milliseconds: 1_000_000 + milliseconds) }
        func time(_ lines: [(Int64, ArchiveEvent)], _ now: Int64) -> Duration {
            ComposePlanTests.log(lines).recordedTime(at: day(now))
        }
        let began: (Int64, ArchiveEvent) = (0, .began(at: day(0)))
        let paused: (Int64, ArchiveEvent) = (4_000, .pause(at: day(4_000)))
        let resumed: (Int64, ArchiveEvent) = (4_000, .resume(at: day(9_000)))
        #expect(time([(0, .pause(at: day(0))), (0, .resume(at: day(1)))], 5_000) == .zero, "nothing has arrived yet")
        #expect(time([began], 3_000) == .seconds(3))
        #expect(time([began, paused], 8_000) == .seconds(4))
        #expect(time([began, paused, resumed], 10_000) == .seconds(5))
        #expect(time([began, (7_000, .gone(stream: "x"))], 6_000) == .seconds(7), "the clock was set back")
        #expect(time([began], 1 << 50) == ArchiveLog.maxTime)
    }

    @Test("a recording in progress has video once it has a frame, also after minutes of audio alone")
    func factsSoFar() async throws {
        try await TestArchive.with { archive in
            let files = try JobFiles(folder: archive.folder)
            defer { files.unlock() }
            var bytes: [UInt8] = []
            var writer = try #require(WebMWriter(video: .vp8, date: 0, application: "Confab"))
            // More blocks than `MatroskaStart` looks at.
            for time in stride(from: Int64(0), to: 420_000, by: 20) {
                let block = WebMWriter.Block(isVideo: false, time: time, isKeyframe: true, bytes: [0xf8])
                for edit in writer.write(block) { edit.apply(to: &bytes) }
            }
            try archive.write(bytes, to: "x.webm")
            #expect(files.factsSoFar("x.webm") == SourceFacts(hasVideo: false, hasAudio: true))
            let frame = WebMWriter.Block(isVideo: true, time: 420_000, isKeyframe: true, bytes: [0, 0, 0])
            for edit in writer.write(frame) { edit.apply(to: &bytes) }
            try archive.write(bytes, to: "x.webm")
            #expect(files.factsSoFar("x.webm") == SourceFacts(hasVideo: true, hasAudio: true))
            #expect(files.factsSoFar("y.webm") == nil)
        }
    }

    @Test("a chunk needs the clusters from a keyframe before it to one ten seconds after it")
    func ranges() throws {
        var bytes: [UInt8] = []
        var writer = try #require(WebMWriter(video: .vp8, date: 0, application: "Confab"))
        var next: Int64 = 0
        func write(until end: Int64) {
            while next < end {
                let block = WebMWriter.Block(
                    isVideo: true, time: next, isKeyframe: next % 2_000 == 0, bytes: [UInt8](repeating: 0, count: 50))
                for edit in writer.write(block) { edit.apply(to: &bytes) }
                next += 40
            }
        }
        func clusters() throws -> MatroskaClusters {
            let (file, size) = (bytes, Int64(bytes.count))
            func read(_ offset: Int64, _ count: Int) -> [UInt8] { Array(file.dropFirst(Int(offset)).prefix(count)) }
            let start = try #require(MatroskaStart(size: size, read: read))
            return MatroskaClusters(start, size: size, read: read)
        }
        let cell = LayoutCell(id: "x", x: 0, y: 0, width: 640, height: 480)
        let source = DrawnSource(cell: cell, file: "x.webm", start: 1_000)
        // 4 s to 6 s of recorded time are 3 s to 5 s of the file.
        let chunk = ComposedChunk(frames: 100..<150, sources: [source])
        write(until: 15_900)
        var found = try clusters()
        #expect(chunk.range(of: source, found) == nil, "frames until 15 s may be written late")
        #expect(chunk.extent(of: source, found, size: 77) == 77)
        write(until: 16_100)
        found = try clusters()
        let range = try #require(chunk.range(of: source, found))
        func offset(of time: Int64) -> Int64? { found.all.first { $0.time == time }?.offset }
        #expect(range.header.lowerBound == 0 && range.header.upperBound == offset(of: 0))
        #expect(range.clusters.lowerBound == offset(of: 2_000) && range.clusters.upperBound == offset(of: 16_000))
        // The part on which the chunk depends stays the same until the end.
        let extent = chunk.extent(of: source, found, size: 77)
        write(until: 30_000)
        for edit in writer.finish() { edit.apply(to: &bytes) }
        found = try clusters()
        #expect(extent == range.clusters.upperBound && chunk.extent(of: source, found, size: 77) == extent)
        let arguments = FFmpegArguments(canvas: ArchiveCanvas(), options: ComposeOptions())
        let command = arguments.chunk(chunk, ranges: ["x.webm": range], output: "out").arguments
        let clusterRange = "start,\(range.clusters.lowerBound),end,\(range.clusters.upperBound)"
        #expect(
            command.contains(
                "concat:subfile,,start,0,end,\(range.header.upperBound),,:x.webm|subfile,,\(clusterRange),,:x.webm"))
        #expect(!command.contains("-ss"))
    }
}
