import MediaFiles

/// A fragment of a broadcast, the smallest unit that viewers load (a Partial Segment of HLS).
public struct MediaPart: Hashable, Sendable {
    /// The boxes `moof` and `mdat`, for all tracks.
    public var bytes: [UInt8]
    /// When the first frame is decoded, from the encoder's start.
    public var start: Duration
    /// How long its frames are shown. More than 0.
    public var duration: Duration
    /// Whether it starts with a keyframe.
    public var isIndependent: Bool
    /// Whether a segment starts with it. Then it is independent.
    public var startsSegment: Bool

    public init(bytes: [UInt8], start: Duration, duration: Duration, isIndependent: Bool, startsSegment: Bool) {
        (self.bytes, self.start, self.duration) = (bytes, start, duration)
        (self.isIndependent, self.startsSegment) = (isIndependent, startsSegment)
    }
}

/// The reason why the output of an encoder cannot be divided into segments. The encoder has to be started again.
public enum SegmenterError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The bytes are not fragmented MP4 that players can play.
    case unreadable(MediaFileError)
    /// No keyframe came within the maximum duration of a segment.
    case noKeyframe(after: Duration)
    /// A part is longer than playlists promise.
    case partTooLong(Duration)
    /// A fragment does not start after the one before it.
    case timeWentBack

    /// A stable name, for logs and callbacks.
    public var code: String {
        switch self {
        case .unreadable(let error): error.code.name
        case .noKeyframe: "no_keyframe"
        case .partTooLong: "part_too_long"
        case .timeWentBack: "time_went_back"
        }
    }

    public var description: String {
        switch self {
        case .unreadable(let error): "The encoder's output \(error)."
        case .noKeyframe(let time): "The encoder sent no keyframe for \(time)."
        case .partTooLong(let time): "The encoder sent a fragment of \(time), which is too long."
        case .timeWentBack: "The encoder sent a fragment that starts before the one before it."
        }
    }
}

/// Divides the output of one run of an encoder into parts, and finds where segments start.
///
/// A part is a fragment. A segment starts with a keyframe, and ends before the first keyframe after `Rules.minSegment`. The end is
/// known when the next segment starts. Parts before the first keyframe are left out, because they cannot be decoded.
///
/// Takes bytes in pieces of any size. At most one fragment waits (``FragmentedMP4Reader``).
public struct Segmenter: Sendable {
    /// The durations that playlists promise.
    public struct Rules: Hashable, Sendable {
        /// A keyframe earlier in a segment does not start another one.
        public var minSegment: Duration
        /// Longer segments are an error.
        public var maxSegment: Duration
        /// Longer parts are an error; nil if viewers load only whole segments.
        public var maxPart: Duration?

        public init(minSegment: Duration, maxSegment: Duration, maxPart: Duration? = nil) {
            (self.minSegment, self.maxSegment, self.maxPart) = (minSegment, maxSegment, maxPart)
        }
    }

    /// What is in the output.
    public enum Item: Hashable, Sendable {
        /// Comes once, before all parts.
        case initialization(MP4Initialization)
        case part(MediaPart)
    }

    /// Times in playlists are rounded, so a part may seem this much longer.
    private static let tolerance: Duration = .milliseconds(1)
    /// The maximum number of bytes with audio alone that wait for a video frame.
    static let maxHeld = 1 << 20

    private let rules: Rules
    private var reader = FragmentedMP4Reader()
    private var leading: MP4Initialization.Track?
    private var failure: SegmenterError?
    /// Fragments without video, which are put before the next fragment with video.
    private var held: [UInt8] = []
    /// When the segment in progress started; nil before the first keyframe.
    private var segmentStart: Duration?
    private var lastStart: Duration?
    /// How many fragments were left out because no keyframe had come.
    public private(set) var skipped = 0

    public init(_ rules: Rules) { self.rules = rules }

    /// Takes the encoder's next bytes, and returns what they complete.
    ///
    /// - Throws: the same error for everything that follows.
    public mutating func take(_ bytes: some Collection<UInt8>) throws(SegmenterError) -> [Item] {
        if let failure { throw failure }
        do {
            return try takeItems(bytes)
        } catch {
            failure = error
            throw error
        }
    }

    private mutating func takeItems(_ bytes: some Collection<UInt8>) throws(SegmenterError) -> [Item] {
        var items: [Item] = []
        do {
            for item in try reader.take(bytes) {
                switch item {
                case .initialization(let initialization):
                    leading = initialization.leading
                    items.append(.initialization(initialization))
                case .fragment(let fragment): if let part = try take(fragment) { items.append(.part(part)) }
                }
            }
        } catch let error as SegmenterError {
            throw error
        } catch let error as MediaFileError {
            throw .unreadable(error)
        } catch {
            throw .unreadable(MediaFileError(.damaged, "\(error)"))
        }
        return items
    }

    private mutating func take(_ fragment: MP4Fragment) throws -> MediaPart? {
        guard let leading else { return nil }
        guard let run = fragment.run(of: leading.id), run.duration > 0 else {
            guard segmentStart != nil else { return nil }
            guard held.count + fragment.bytes.count <= Self.maxHeld else {
                throw MediaFileError(.tooLarge, "has more than \(Self.maxHeld) bytes of audio without a video frame")
            }
            held += fragment.bytes
            return nil
        }
        let start = leading.duration(of: run.start)
        let end = leading.duration(of: run.start + run.duration)
        if let lastStart, start <= lastStart { throw SegmenterError.timeWentBack }
        guard segmentStart != nil || run.startsWithSync else {
            skipped += 1
            return nil
        }
        let starts = run.startsWithSync && segmentStart.map { start - $0 >= rules.minSegment } ?? true
        // A segment ends where the next one starts, also if time is missing between them.
        let segmentEnd = starts ? start : end
        if let began = segmentStart, segmentEnd - began > rules.maxSegment + Self.tolerance {
            throw SegmenterError.noKeyframe(after: segmentEnd - began)
        }
        if starts, end - start > rules.maxSegment + Self.tolerance {
            throw SegmenterError.noKeyframe(after: end - start)
        }
        if let longest = rules.maxPart, end - start > longest + Self.tolerance {
            throw SegmenterError.partTooLong(end - start)
        }
        lastStart = start
        if starts { segmentStart = start }
        defer { held = [] }
        return MediaPart(
            bytes: held + fragment.bytes, start: start, duration: end - start, isIndependent: run.startsWithSync,
            startsSegment: starts)
    }
}
