import Layout
import MediaFiles
import Wire

/// A stream in a composed video.
public struct DrawnSource: Hashable, Sendable {
    /// Where it is drawn. The id is that of the stream.
    public var cell: LayoutCell
    /// The file in the archive's folder; nil for a black cell.
    public var file: String?
    /// The recorded time of the file's beginning, in milliseconds.
    public var start: Int64
    /// The degrees by which the video is turned clockwise: 0, 90, 180 or 270.
    public var rotation: Int

    public init(cell: LayoutCell, file: String?, start: Int64, rotation: Int = 0) {
        (self.cell, self.file, self.start, self.rotation) = (cell, file, start, rotation)
    }
}

/// A part of the composed video in which cells and sources stay the same. Each is encoded by itself.
public struct ComposedChunk: Hashable, Sendable {
    /// The frames of the composed file.
    public var frames: Range<Int>
    /// In the order in which they are painted.
    public var sources: [DrawnSource]

    public init(frames: Range<Int>, sources: [DrawnSource]) { (self.frames, self.sources) = (frames, sources) }

    /// Whether no cell covers another one.
    public var isDisjoint: Bool {
        let cells = sources.map(\.cell)
        return !cells.enumerated().contains { index, left in
            cells[..<index].contains { right in
                left.x < right.x + right.width && right.x < left.x + left.width
                    && left.y < right.y + right.height && right.y < left.y + left.height
            }
        }
    }
}

/// A file that is heard.
public struct HeardSource: Hashable, Sendable {
    /// The name in the archive's folder.
    public var file: String
    /// The recorded time of the file's beginning, in milliseconds.
    public var start: Int64
    /// The recorded times in milliseconds at which it is heard, in order. At other times it is silent.
    public var ranges: [Range<Int64>]

    public init(file: String, start: Int64, ranges: [Range<Int64>]) {
        (self.file, self.start, self.ranges) = (file, start, ranges)
    }
}

/// What has to be done to compose an archive. A pure function of the event log, the files' facts and the options.
public struct ComposePlan: Hashable, Sendable {
    /// The maximum number of parts with different sources or cells. Each costs the start of a process. If there are more, the
    /// changes are moved to a coarser grid.
    public static let maxScenes = 4_000
    /// The maximum length of a chunk in frames: one minute. What a crash costs is at most this.
    public static let maxChunk = 60 * ComposedFormat.frameRate

    /// The size of the video.
    public var canvas: ArchiveCanvas
    /// The length of the composed file in frames.
    public var frames: Int
    /// They cover all frames without gaps. Empty without video.
    public var chunks: [ComposedChunk] = []
    /// Whether the file has audio.
    public var hasAudio: Bool
    /// Whether the file has video.
    public var hasVideo: Bool
    /// In the order in which the files begin.
    public var heard: [HeardSource] = []
    /// What differs from the event log, in sentences for the operator.
    public var notes: [String] = []

    /// - Parameters:
    ///   - facts: the readable files by name. A file that the log names and that is not here becomes a black cell.
    ///   - soFar: the milliseconds that were recorded until now, for an archive that is still recorded. The plan then ends there, and
    ///     ``settled(at:)`` are the chunks that are also in the plan of the whole archive.
    public init(
        _ log: ArchiveLog, facts: [String: SourceFacts], options: ComposeOptions = ComposeOptions(), soFar: Int64? = nil
    ) {
        let timeline = ArchiveTimeline(log, facts: facts, soFar: soFar)
        let opening = timeline.opening ?? ArchiveOpening(id: "", session: "")
        canvas = options.canvas ?? opening.canvas ?? ArchiveCanvas()
        hasAudio = options.hasAudio ?? opening.hasAudio
        hasVideo = options.hasVideo ?? opening.hasVideo
        frames = Int(timeline.end / ComposedFormat.frame)
        if log.skipped > 0 { notes.append("\(log.skipped) lines of the event log are unreadable and were skipped.") }
        for case .file(let file) in log.lines.map(\.event) where facts[file.name] == nil {
            notes.append("\(file.name) cannot be read, so its cell is black and it is silent.")
        }
        if timeline.opening == nil { notes.append("The event log has no first line, so the defaults are used.") }
        if !timeline.isComplete { notes.append("The event log has no last line, so its last known time is the end.") }
        guard frames > 0 else { return }
        if hasVideo {
            var scenes = Scenes(timeline, canvas: canvas, frames: frames, facts: facts, options: options)
            chunks = scenes.chunks()
            notes += scenes.notes
        }
        if hasAudio { heard = Self.heard(timeline) }
    }

    /// Returns the files that are heard, of at most `maxHeard` streams at each time.
    private static func heard(_ timeline: ArchiveTimeline) -> [HeardSource] {
        var sources: [HeardSource] = []
        var indices: [String: Int] = [:]
        let bounds = Set(timeline.heard.flatMap { [$0.range.lowerBound, $0.range.upperBound] }).sorted()
        var open: [ArchiveTimeline.Span] = []
        var next = timeline.heard[...]
        for (start, end) in zip(bounds, bounds.dropFirst()) {
            open.removeAll { $0.range.upperBound <= start }
            while let span = next.first, span.range.lowerBound <= start {
                open.append(span)
                next.removeFirst()
            }
            for span in open.sorted(by: { $0.order < $1.order }).prefix(ComposedFormat.maxHeard) {
                // One name cannot be two files.
                let index = indices[span.file] ?? sources.count
                if index == sources.count {
                    indices[span.file] = index
                    sources.append(HeardSource(file: span.file, start: span.start, ranges: []))
                }
                if let last = sources[index].ranges.last, last.upperBound == start {
                    sources[index].ranges[sources[index].ranges.count - 1] = last.lowerBound..<end
                } else {
                    sources[index].ranges.append(start..<end)
                }
            }
        }
        return sources
    }
}

/// Divides an archive into scenes: the times in which sources and cells stay the same.
private struct Scenes {
    let timeline: ArchiveTimeline
    let canvas: ArchiveCanvas
    let frames: Int
    let facts: [String: SourceFacts]
    let options: ComposeOptions
    var notes: [String] = []

    init(
        _ timeline: ArchiveTimeline, canvas: ArchiveCanvas, frames: Int, facts: [String: SourceFacts],
        options: ComposeOptions
    ) {
        (self.timeline, self.canvas, self.frames, self.facts) = (timeline, canvas, frames, facts)
        self.options = options
    }

    mutating func chunks() -> [ComposedChunk] {
        var grid = 1
        var scenes = self.scenes(grid: grid)
        while scenes.count > ComposePlan.maxScenes {
            grid *= 5
            scenes = self.scenes(grid: grid)
        }
        if grid > 1 {
            let step = Int64(grid) * ComposedFormat.frame
            notes.append("The layout changes too often, so its changes were moved to multiples of \(step) ms.")
        }
        return scenes.flatMap { scene in
            stride(from: scene.frames.lowerBound, to: scene.frames.upperBound, by: ComposePlan.maxChunk).map {
                let end = min(scene.frames.upperBound, $0 + ComposePlan.maxChunk)
                return ComposedChunk(frames: $0..<end, sources: scene.sources)
            }
        }
    }

    /// A change of what is drawn, at a frame.
    private enum Step {
        case leave(ArchiveTimeline.Span)
        case join(ArchiveTimeline.Span)
        case layout(ArchiveLayout)
        case classes(stream: String, [String])
        case aspect(stream: String, Double)
    }

    /// - Parameter grid: the frames at which the scene may change are multiples of this.
    private mutating func scenes(grid: Int) -> [ComposedChunk] {
        let steps = self.steps(grid: grid)
        var scenes: [ComposedChunk] = []
        var drawn: [ArchiveTimeline.Span] = []
        var layout = ArchiveLayout()
        var classes: [String: [String]] = [:]
        var aspects: [String: Double] = [:]
        let bounds = Set(steps.map(\.frame) + [0, frames]).sorted()
        var next = steps[...]
        for (start, end) in zip(bounds, bounds.dropFirst()) {
            while let step = next.first, step.frame <= start {
                next.removeFirst()
                switch step.step {
                case .leave(let span): drawn.removeAll { $0 == span }
                case .join(let span): drawn.append(span)
                case .layout(let new): layout = new
                case .classes(let stream, let list): classes[stream] = list
                case .aspect(let stream, let aspect): aspects[stream] = aspect
                }
            }
            let sources = self.sources(drawn, layout, classes, aspects)
            if let last = scenes.last, last.sources == sources {
                scenes[scenes.count - 1].frames = last.frames.lowerBound..<end
            } else {
                scenes.append(ComposedChunk(frames: start..<end, sources: sources))
            }
        }
        return scenes
    }

    /// Joins, layouts and classes are rounded up and leaves are rounded down, so that a cell is never shown without its video.
    private func steps(grid: Int) -> [(frame: Int, step: Step)] {
        let length = Int64(grid) * ComposedFormat.frame
        func up(_ time: Int64) -> Int { Int((time + length - 1) / length) * grid }
        func down(_ time: Int64) -> Int { Int(time / length) * grid }
        var steps: [(frame: Int, step: Step)] = []
        var joins: [(frame: Int, step: Step)] = []
        for span in timeline.seen {
            let start = up(span.range.lowerBound)
            // What a stream shows next begins in the same frame.
            let end =
                span.continues || span.range.upperBound == timeline.end
                ? up(span.range.upperBound) : down(span.range.upperBound)
            guard start < end else { continue }
            joins.append((start, .join(span)))
            steps.append((end, .leave(span)))
        }
        steps += joins
        steps += timeline.layouts.map { (up($0.time), .layout($0.value)) }
        steps += timeline.classes.map { (up($0.time), .classes(stream: $0.value.stream, $0.value.classes)) }
        steps += timeline.aspects.map { (up($0.time), .aspect(stream: $0.value.stream, $0.value.aspect)) }
        // A stable order, so that the last of several changes in a frame counts.
        let order = steps.enumerated().sorted { ($0.element.frame, $0.offset) < ($1.element.frame, $1.offset) }
        return order.map(\.element).filter { $0.frame < frames }
    }

    private mutating func sources(
        _ drawn: [ArchiveTimeline.Span], _ layout: ArchiveLayout, _ classes: [String: [String]],
        _ aspects: [String: Double]
    ) -> [DrawnSource] {
        let spans = drawn.sorted { ($0.order, $0.range.lowerBound) < ($1.order, $1.range.lowerBound) }
        // A stream has one cell, even if a damaged log lets two of its files overlap.
        var newest: [String: ArchiveTimeline.Span] = [:]
        for span in spans { newest[span.stream] = span }
        let streams = spans.filter { newest[$0.stream] == $0 }.map { span in
            let stream = timeline.streams[span.stream]
            return LayoutStream(
                id: span.stream, connection: stream?.connection ?? span.stream,
                classes: options.classes[span.stream] ?? classes[span.stream] ?? [],
                isScreen: stream?.videoType == .screen, aspect: aspect(of: span, aspects))
        }
        return cells(streams, options.layout ?? layout).compactMap { cell in
            guard let span = newest[cell.id] else { return nil }
            let isReadable = facts[span.file] != nil
            return DrawnSource(
                cell: cell, file: isReadable ? span.file : nil, start: isReadable ? span.start : 0,
                rotation: isReadable ? span.rotation : 0)
        }
    }

    /// The aspect of a stream's video as it is drawn; nil while it is unknown.
    private func aspect(of span: ArchiveTimeline.Span, _ aspects: [String: Double]) -> Double? {
        aspects[span.stream].map { span.rotation % 180 == 0 ? $0 : 1 / $0 }
    }

    /// The layouts that were needed, because a style sheet takes time to parse.
    private var known: [ArchiveLayout: DrawnLayout] = [:]

    private mutating func cells(_ streams: [LayoutStream], _ layout: ArchiveLayout) -> [LayoutCell] {
        if let drawn = known[layout] { return drawn.cells(streams) }
        var drawn = DrawnLayout(layout, on: canvas)
        if drawn == nil {
            notes.append("The layout \"\(layout.type)\" is not supported, so bestFit was used instead.")
            drawn = DrawnLayout(ArchiveLayout(), on: canvas)
        }
        known[layout] = drawn
        return drawn?.cells(streams) ?? []
    }
}
