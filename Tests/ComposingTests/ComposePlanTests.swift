import Composing
import Layout
import MediaFiles
import TestSupport
import Testing
import Wire

@Suite("Plans of composed archives")
struct ComposePlanTests {
    /// A log of lines with times in milliseconds.
    static func log(_ lines: [(Int64, ArchiveEvent)], canvas: ArchiveCanvas = ArchiveCanvas()) -> ArchiveLog {
        let opening = ArchiveEvent.archive(ArchiveOpening(id: "a", session: "s", canvas: canvas))
        return ArchiveLog(([(0, opening)] + lines).map { ArchiveLogLine($0.1, at: .milliseconds($0.0)) })
    }

    static func stream(_ id: String, classes: [String] = [], isScreen: Bool = false) -> ArchiveEvent {
        .stream(
            ArchivedStream(id: id, connection: "c-\(id)", videoType: isScreen ? .screen : .camera, classes: classes))
    }

    static func file(_ stream: String, _ name: String? = nil) -> ArchiveEvent {
        .file(ArchivedFile(stream: stream, name: name ?? "\(stream).webm", codec: .vp8))
    }

    static let both = SourceFacts(hasVideo: true, hasAudio: true)

    static func plan(
        _ lines: [(Int64, ArchiveEvent)], facts: [String: SourceFacts]? = nil,
        options: ComposeOptions = ComposeOptions()
    ) -> ComposePlan {
        let files = lines.compactMap { if case .file(let file) = $0.1 { file.name } else { nil } }
        let known = facts ?? Dictionary(files.map { ($0, both) }, uniquingKeysWith: { first, _ in first })
        return ComposePlan(log(lines), facts: known, options: options)
    }

    /// Chunks as text: the frames, and each stream with its rectangle.
    static func text(_ plan: ComposePlan) -> [String] {
        plan.chunks.map { chunk in
            let cells = chunk.sources.map {
                "\($0.cell.id)\($0.file == nil ? "?" : "") \($0.cell.x),\($0.cell.y) \($0.cell.width)x\($0.cell.height)"
            }
            return (["\(chunk.frames.lowerBound)..<\(chunk.frames.upperBound)"] + cells).joined(separator: " | ")
        }
    }

    @Test("what the log says for recovery and for people changes nothing")
    func remarks() {
        let lines: [(Int64, ArchiveEvent)] = [
            (0, Self.stream("x")), (0, Self.file("x")), (5_000, .gone(stream: "x")), (6_000, .end(reason: "")),
        ]
        let remarks: [(Int64, ArchiveEvent)] = [
            (0, .began(at: Timestamp(milliseconds: 9))), (1_000, .failed(stream: "y", reason: "notPublished")),
            (5_000, .fileEnd(stream: "x", name: "x.webm", size: 7)),
        ]
        let all = (lines + remarks).sorted { $0.0 < $1.0 }
        #expect(Self.plan(all) == Self.plan(lines) && !Self.plan(lines).chunks.isEmpty)
    }

    @Test("joins are rounded up to a frame and leaves down, and each change begins a chunk")
    func rounding() {
        let plan = Self.plan([
            (0, Self.stream("x")), (0, Self.file("x")), (1_001, Self.stream("y")), (1_001, Self.file("y")),
            (1_999, .gone(stream: "y")), (3_000, .end(reason: "")),
        ])
        #expect(
            Self.text(plan) == [
                "0..<26 | x 0,0 640x480", "26..<49 | x 0,0 320x480 | y 320,0 320x480", "49..<75 | x 0,0 640x480",
            ])
        #expect(plan.frames == 75 && plan.notes.isEmpty)
    }

    @Test("a stream appears with its first frame, and disappears while its video is off or is not included")
    func visibility() {
        var facts = Self.both
        facts.firstFrame = 400
        let lines: [(Int64, ArchiveEvent)] = [
            (0, Self.stream("x")), (0, Self.file("x")), (800, .video(stream: "x", isOn: false)),
            (1_200, .video(stream: "x", isOn: true)), (1_600, .include(stream: "x", audio: true, video: false)),
            (2_000, .end(reason: "")),
        ]
        let plan = Self.plan(lines, facts: ["x.webm": facts])
        #expect(
            Self.text(plan) == [
                "0..<10", "10..<20 | x 0,0 640x480", "20..<30", "30..<40 | x 0,0 640x480", "40..<50",
            ])
    }

    @Test("a file whose line was written late is placed at its own beginning")
    func lateFile() {
        let file = ArchivedFile(stream: "x", name: "x.webm", codec: .vp8, start: .milliseconds(400))
        let plan = Self.plan([
            (0, Self.stream("x")), (0, Self.stream("y")), (1_200, .audio(stream: "y", isOn: false)),
            (1_200, .file(file)), (2_000, .end(reason: "")),
        ])
        #expect(Self.text(plan) == ["0..<10", "10..<50 | x 0,0 640x480"])
        #expect(plan.chunks.last?.sources.first?.start == 400)
        #expect(plan.heard == [HeardSource(file: "x.webm", start: 400, ranges: [400..<2_000])])
    }

    @Test("the last frame of a file stays until the first frame of the stream's next file")
    func nextFile() {
        let lines: [(Int64, ArchiveEvent)] = [
            (0, Self.stream("x")), (0, Self.file("x")), (1_010, Self.file("x", "x1.webm")), (2_000, .end(reason: "")),
        ]
        let late = SourceFacts(hasVideo: true, hasAudio: true, firstFrame: 210)
        let plan = Self.plan(lines, facts: ["x.webm": Self.both, "x1.webm": late])
        #expect(plan.chunks.map(\.frames) == [0..<31, 31..<50])
        #expect(plan.chunks.map { $0.sources.map(\.file) } == [["x.webm"], ["x1.webm"]])
        #expect(plan.chunks[1].sources[0].start == 1_010)
    }

    @Test("a stream that ends before the first frame of its next file does not stay")
    func endBeforeNextFrame() {
        let lines: [(Int64, ArchiveEvent)] = [
            (0, Self.stream("x")), (0, Self.file("x")), (1_000, Self.file("x", "x1.webm")),
            (1_200, .gone(stream: "x")), (2_000, .end(reason: "")),
        ]
        let late = SourceFacts(hasVideo: true, hasAudio: false, firstFrame: 600)
        let plan = Self.plan(lines, facts: ["x.webm": Self.both, "x1.webm": late])
        #expect(Self.text(plan) == ["0..<30 | x 0,0 640x480", "30..<50"])
    }

    @Test("layouts and classes change within a log, and options replace them")
    func layouts() {
        let lines: [(Int64, ArchiveEvent)] = [
            (0, Self.stream("x")), (0, Self.file("x")), (0, Self.stream("y")), (0, Self.file("y")),
            (400, .layout(ArchiveLayout("pip"))), (800, .classes(stream: "y", ["full"])), (1_200, .end(reason: "")),
        ]
        #expect(
            Self.text(Self.plan(lines)) == [
                "0..<10 | x 0,0 320x480 | y 320,0 320x480", "10..<20 | x 0,0 640x480 | y 448,48 128x96",
                "20..<30 | y 0,0 640x480 | x 448,48 128x96",
            ])
        #expect(!Self.plan(lines).chunks[1].isDisjoint && Self.plan(lines).chunks[0].isDisjoint)
        var options = ComposeOptions()
        options.layout = ArchiveLayout("horizontalPresentation")
        options.classes = ["x": [], "y": ["focus"]]
        options.canvas = ArchiveCanvas(width: 1280, height: 720)
        #expect(
            Self.text(Self.plan(lines, options: options)) == ["0..<30 | y 0,0 1280x576 | x 0,576 256x144"])
    }

    @Test("the layout of rooms follows the shape of a video, as it is drawn")
    func room() {
        let lines: [(Int64, ArchiveEvent)] = [
            (0, Self.stream("x")), (0, Self.file("x")), (0, .layout(ArchiveLayout("room"))),
            (400, .size(stream: "x", width: 360, height: 640)), (800, .rotation(stream: "x", degrees: 90)),
            (1_200, .end(reason: "")),
        ]
        var options = ComposeOptions()
        options.canvas = ArchiveCanvas(width: 1280, height: 720)
        let plan = Self.plan(lines, options: options)
        #expect(plan.notes.isEmpty && Self.text(plan) == [0..<10, 10..<20, 20..<30].map { "\($0) | x 0,0 1280x720" })
        #expect(plan.chunks.map { $0.sources.map(\.cell.fit) } == [[.cover], [.contain], [.cover]])
        // Others do not depend on it.
        let others = Self.plan(lines.filter { if case .layout = $0.1 { false } else { true } }, options: options)
        #expect(others.chunks.map(\.frames) == [0..<20, 20..<30])
    }

    @Test("an unknown layout is replaced by bestFit, and a file that cannot be read by black, with a note or a cell")
    func unknown() {
        let lines: [(Int64, ArchiveEvent)] = [
            (0, Self.stream("x")), (0, Self.file("x")), (0, .layout(ArchiveLayout("spiral"))), (40, .end(reason: "")),
        ]
        let plan = Self.plan(lines, facts: [:])
        #expect(Self.text(plan) == ["0..<1 | x? 0,0 640x480"])
        #expect(plan.notes.first == "x.webm cannot be read, so its cell is black and it is silent.")
        #expect(plan.notes.dropFirst() == ["The layout \"spiral\" is not supported, so bestFit was used instead."])
    }

    @Test("a custom layout is drawn from its style sheet, and a sheet with a fault is replaced by bestFit")
    func custom() {
        let sheet = "stream { position: absolute; left: 50%; top: 50%; width: 50%; height: 50%; object-fit: cover }"
        let lines: [(Int64, ArchiveEvent)] = [
            (0, Self.stream("x")), (0, Self.file("x")), (0, .layout(ArchiveLayout("custom", stylesheet: sheet))),
            (40, .layout(ArchiveLayout("custom", stylesheet: "div {}"))), (80, .end(reason: "")),
        ]
        let plan = Self.plan(lines)
        #expect(Self.text(plan) == ["0..<1 | x 320,240 320x240", "1..<2 | x 0,0 640x480"])
        #expect(plan.chunks[0].sources[0].cell.fit == .cover)
        #expect(plan.notes == ["The layout \"custom\" is not supported, so bestFit was used instead."])
    }

    @Test("a long scene is divided into chunks of at most a minute")
    func minutes() {
        let plan = Self.plan([(0, Self.stream("x")), (0, Self.file("x")), (150_000, .end(reason: ""))])
        #expect(plan.chunks.map(\.frames) == [0..<1_500, 1_500..<3_000, 3_000..<3_750])
    }

    @Test("a layout that changes all the time has a bounded number of chunks")
    func bounded() {
        var lines: [(Int64, ArchiveEvent)] = [(0, Self.stream("x")), (0, Self.file("x"))]
        for index in 1...12_000 { lines.append((Int64(index) * 40, .video(stream: "x", isOn: index % 2 == 0))) }
        lines.append((12_001 * 40, .end(reason: "")))
        let plan = Self.plan(lines)
        #expect(plan.chunks.count <= ComposePlan.maxScenes && plan.frames == 12_001)
        #expect(plan.chunks.reduce(0) { $0 + $1.frames.count } == 12_001 && plan.notes.count == 1)
    }

    @Test("a log without its last line ends with the longest file, and an empty one makes nothing")
    func incomplete() {
        let known = SourceFacts(hasVideo: true, hasAudio: true, duration: 2_000)
        let plan = Self.plan([(0, Self.stream("x")), (1_000, Self.file("x"))], facts: ["x.webm": known])
        #expect(plan.frames == 75 && plan.notes.count == 1)
        let empty = ComposePlan(ArchiveLog(), facts: [:])
        #expect(empty.frames == 0 && empty.chunks.isEmpty && empty.notes.count == 2)
    }

    @Test("without video there are no chunks, and without audio nothing is heard")
    func tracks() {
        let lines: [(Int64, ArchiveEvent)] = [(0, Self.stream("x")), (0, Self.file("x")), (400, .end(reason: ""))]
        var options = ComposeOptions()
        options.hasVideo = false
        let sound = Self.plan(lines, options: options)
        #expect(sound.chunks.isEmpty && sound.heard == [HeardSource(file: "x.webm", start: 0, ranges: [0..<400])])
        options = ComposeOptions()
        options.hasAudio = false
        let picture = Self.plan(lines, options: options)
        #expect(picture.chunks.count == 1 && picture.heard.isEmpty)
    }

    @Test("the first fifty streams are heard, and a later one as soon as one of them leaves")
    func fifty() {
        var lines: [(Int64, ArchiveEvent)] = []
        for index in 0..<52 { lines += [(0, Self.stream("s\(index)")), (0, Self.file("s\(index)"))] }
        lines += [(1_000, .gone(stream: "s3")), (2_000, .end(reason: ""))]
        let heard = Self.plan(lines).heard
        #expect(heard.count == 51 && !heard.contains { $0.file == "s51.webm" })
        #expect(heard.first { $0.file == "s3.webm" }?.ranges == [0..<1_000])
        #expect(heard.first { $0.file == "s50.webm" }?.ranges == [1_000..<2_000])
    }
}
