import MediaFiles
import Wire

/// What composing must know of a file beside what the event log says.
public struct SourceFacts: Hashable, Sendable {
    /// Whether there is a track of video.
    public var hasVideo: Bool
    /// Whether there is a track of audio.
    public var hasAudio: Bool
    /// The time of the first frame in milliseconds from the start of the file.
    public var firstFrame: Int64
    /// The length of the file in milliseconds; nil if the file does not state it.
    public var duration: Int64?

    public init(hasVideo: Bool, hasAudio: Bool, firstFrame: Int64 = 0, duration: Int64? = nil) {
        (self.hasVideo, self.hasAudio, self.firstFrame, self.duration) = (hasVideo, hasAudio, firstFrame, duration)
    }
}

/// When each stream of an archive can be seen and heard. All times are milliseconds of recorded time.
struct ArchiveTimeline {
    /// A time in which a stream is seen or heard from one file.
    struct Span: Equatable {
        var stream: String
        var file: String
        /// The time of the file's beginning.
        var start: Int64
        /// The degrees by which the video is turned clockwise.
        var rotation: Int
        /// The place in the order of inclusion.
        var order: Int
        var range: Range<Int64>
        /// Whether the stream continues in the next span, from another file or with another rotation.
        var continues = false
    }

    /// A value from a time on.
    struct Change<Value> {
        var time: Int64
        var value: Value
    }

    var opening: ArchiveOpening?
    /// The last description of each stream.
    var streams: [String: ArchivedStream] = [:]
    var seen: [Span] = []
    var heard: [Span] = []
    var layouts: [Change<ArchiveLayout>] = []
    var classes: [Change<(stream: String, classes: [String])>] = []
    /// The width of a stream's video divided by its height.
    var aspects: [Change<(stream: String, aspect: Double)>] = []
    var end: Int64 = 0
    /// Whether the log has its last line.
    var isComplete = false

    /// - Parameters:
    ///   - facts: the readable files by name. A file that is not in it is black and silent.
    ///   - soFar: how much was recorded until now; nil if the archive has ended.
    init(_ log: ArchiveLog, facts: [String: SourceFacts], soFar: Int64? = nil) {
        var builder = Builder(facts: facts)
        for line in log.lines { builder.take(line.event, at: line.time.wholeMilliseconds) }
        builder.finish(at: soFar)
        self = builder.timeline
    }

    private init() {}
}

extension ArchiveTimeline {
    /// A file that a stream is being recorded to.
    private struct OpenFile: Equatable {
        var name: String
        var start: Int64
        var facts: SourceFacts
    }

    private struct Stream {
        var order: Int
        var isHere = true
        var file: OpenFile?
        var sendsVideo = true
        var includesAudio = true
        var includesVideo = true
        var rotation = 0
        var seen: Span?
        var heard: Span?
        /// The index of the last span in `timeline.seen`.
        var lastSeen: Int?
    }

    /// Follows the event log.
    private struct Builder {
        let facts: [String: SourceFacts]
        var timeline = ArchiveTimeline()
        private var streams: [String: Stream] = [:]
        private var included = 0

        init(facts: [String: SourceFacts]) { self.facts = facts }

        mutating func take(_ event: ArchiveEvent, at time: Int64) {
            timeline.end = max(timeline.end, time)
            switch event {
            case .archive(let opening):
                if timeline.opening == nil { timeline.opening = opening }
                timeline.layouts.append(Change(time: time, value: opening.layout ?? ArchiveLayout()))
            case .layout(let layout): timeline.layouts.append(Change(time: time, value: layout))
            case .end: timeline.isComplete = true
            case .size(let stream, let width, let height):
                timeline.aspects.append(Change(time: time, value: (stream, Double(width) / Double(height))))
            case .began, .fileEnd, .failed, .pause, .resume, .lost, .audio: break
            default: takeOfStream(event, at: time)
            }
        }

        private mutating func takeOfStream(_ event: ArchiveEvent, at lineTime: Int64) {
            guard let id = event.stream else { return }
            var time = lineTime
            var stream = streams[id] ?? include(id)
            switch event {
            case .stream(let description):
                timeline.streams[id] = description
                timeline.classes.append(Change(time: time, value: (id, description.classes)))
                // A stream that is published again is included later than those that stayed.
                if !stream.isHere { stream = include(id) }
            case .file(let file):
                let fallback = SourceFacts(hasVideo: file.codec != .opus, hasAudio: false)
                var known = facts[file.name] ?? fallback
                if file.codec == .opus { known.hasVideo = false }
                time = file.begin(line: .milliseconds(lineTime)).wholeMilliseconds
                stream.file = OpenFile(name: file.name, start: time, facts: known)
                stream.isHere = true
                if let length = known.duration, !timeline.isComplete { longest = max(longest, time + length) }
            case .video(_, let isOn): stream.sendsVideo = isOn
            case .rotation(_, let degrees): stream.rotation = degrees / 90 * 90
            case .classes(_, let classes): timeline.classes.append(Change(time: time, value: (id, classes)))
            case .include(_, let audio, let video): (stream.includesAudio, stream.includesVideo) = (audio, video)
            case .gone: (stream.isHere, stream.file) = (false, nil)
            default: break
            }
            update(&stream, id, at: time)
            streams[id] = stream
        }

        /// The end of the longest file, for a log without its last line.
        private var longest: Int64 = 0

        private mutating func include(_ id: String) -> Stream {
            included += 1
            return Stream(order: included)
        }

        /// Begins and ends the spans of a stream after its state has changed.
        private mutating func update(_ stream: inout Stream, _ id: String, at time: Int64) {
            let file = stream.isHere ? stream.file : nil
            let order = stream.order
            func span(_ file: OpenFile, from start: Int64, rotation: Int) -> Span {
                Span(
                    stream: id, file: file.name, start: file.start, rotation: rotation, order: order,
                    range: start..<Int64.max)
            }
            let seen = file.flatMap { file in
                file.facts.hasVideo && stream.sendsVideo && stream.includesVideo
                    ? span(file, from: max(time, file.start + file.facts.firstFrame), rotation: stream.rotation) : nil
            }
            if !Self.isSame(stream.seen, seen) {
                // The last frame of one file stays until the first one of the next.
                endSeen(&stream, at: seen?.range.lowerBound ?? time, continues: seen != nil)
                stream.seen = seen
            }
            let heard = file.flatMap { file in
                file.facts.hasAudio && stream.includesAudio ? span(file, from: time, rotation: 0) : nil
            }
            if !Self.isSame(stream.heard, heard) {
                endHeard(&stream, at: time)
                stream.heard = heard
            }
        }

        private static func isSame(_ left: Span?, _ right: Span?) -> Bool {
            left?.file == right?.file && left?.start == right?.start && left?.rotation == right?.rotation
        }

        private mutating func endSeen(_ stream: inout Stream, at time: Int64, continues: Bool) {
            guard var span = stream.seen else { return }
            stream.seen = nil
            if span.range.lowerBound < time {
                span.range = span.range.lowerBound..<time
                span.continues = continues
                timeline.seen.append(span)
                stream.lastSeen = timeline.seen.count - 1
            } else if let last = stream.lastSeen, timeline.seen[last].continues {
                // This span ends before its first frame, so the last frame of the span before it stays until now.
                let start = timeline.seen[last].range.lowerBound
                timeline.seen[last].range = start..<max(start, time)
                timeline.seen[last].continues = continues
            }
        }

        private mutating func endHeard(_ stream: inout Stream, at time: Int64) {
            guard var span = stream.heard else { return }
            stream.heard = nil
            guard span.range.lowerBound < time else { return }
            span.range = span.range.lowerBound..<time
            timeline.heard.append(span)
        }

        mutating func finish(at soFar: Int64?) {
            if !timeline.isComplete { timeline.end = max(timeline.end, soFar ?? longest) }
            timeline.end = min(timeline.end, ArchiveLog.maxTime.wholeMilliseconds)
            for id in streams.keys.sorted() {
                guard var stream = streams[id] else { continue }
                endSeen(&stream, at: timeline.end, continues: false)
                endHeard(&stream, at: timeline.end)
            }
            timeline.seen.sort { ($0.range.lowerBound, $0.order) < ($1.range.lowerBound, $1.order) }
            timeline.heard.sort { ($0.range.lowerBound, $0.order) < ($1.range.lowerBound, $1.order) }
        }
    }
}

extension SourceFacts {
    /// Takes the facts from the beginning of a file.
    public init(_ start: MatroskaStart) {
        self.init(
            hasVideo: start.hasVideo, hasAudio: start.hasAudio, firstFrame: start.firstFrame ?? 0,
            duration: start.duration)
    }
}
