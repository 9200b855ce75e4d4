import MediaFiles
import Wire

/// What has to happen with the files of a stream, in this order.
public enum HLSChange: Hashable, Sendable {
    /// Clients may request the file. Its content is these pieces in order, and it never changes.
    case store(HLSFile, [[UInt8]])
    /// The file is not needed any more.
    case remove(HLSFile)
}

/// The playlists of a broadcast (RFC 8216; with parts: draft-pantos-hls-rfc8216bis), and which of its files are fetchable.
///
/// A pure machine: it gets what a ``Segmenter`` returns and the time, and returns what to store and remove. It keeps the bytes only of
/// the segment in progress. The order of events:
///
/// 1. `begin` with each initialization section: the first, and one for each later start of the encoder, which is a discontinuity.
/// 2. `append` with each part.
/// 3. `finish` once. Then nothing changes any more, and files stay until their owner removes all of them.
public struct HLSStream: Sendable {
    /// The maximum number of segments in a playlist of everything: ten hours of 3.84 s, and as much for shorter ones.
    public static let maxListed = 20_000
    /// How many segments must be there until players may begin. They must also have three target durations together: players begin
    /// that long before the end of a playlist (RFC 8216 §6.3.3), and it may not be shorter (§6.2.2).
    public static let readyAfter = 3

    public let settings: HLSSettings
    /// The playlist of segments. Before the first segment, it names none.
    public private(set) var playlist: String
    /// Whether `finish` was called, or the playlist is full.
    public private(set) var isEnded = false
    /// The last part; nil before the first one.
    public private(set) var last: HLSPosition?

    private var initializations: [(number: Int, value: MP4Initialization)] = []
    private var initializationCount = 0
    private var open: OpenSegment?
    private var listed: [HLSSegment] = []
    private var expired: [(segment: HLSSegment, until: Timestamp)] = []
    private var isDiscontinuous = false
    private var nextSegment = 0
    private var nextPart = 0
    private var discontinuitySequence = 0
    /// The sum of the durations of all complete segments.
    private var completed: Duration = .zero
    /// The sum of the durations in `listed`, and the longest that it was.
    private var listedDuration: Duration = .zero, longestPlaylist: Duration = .zero
    private var storedBytes = 0
    private var traffic = HLSTraffic()
    /// The lines of all segments, if none of them is ever removed.
    private var lines = ""

    public init(_ settings: HLSSettings) {
        self.settings = settings
        playlist = ""
        render()
    }

    /// Whether players may begin: the first segments are there. Stays true.
    public var isReady: Bool {
        // Only a playlist with parts names those of the segment in progress.
        let inProgress = settings.partTarget == nil ? nil : open?.segment.duration
        return nextSegment >= Self.readyAfter
            && completed + (inProgress ?? .zero) >= .seconds(3 * settings.targetDuration)
    }

    /// The number of the last segment that is complete; nil before the first one.
    public var lastSegment: Int? { nextSegment > 0 ? nextSegment - 1 : nil }

    /// The part that comes next; nil without low latency, before the first part, and at the end.
    public var nextPartFile: HLSFile? {
        settings.partTarget != nil && last != nil && !isEnded ? .part(nextPart) : nil
    }

    /// The multivariant playlist; nil before the first initialization section.
    public var index: String? {
        initializations.last.map { traffic.index(of: $0.value, settings) }
    }

    /// Takes the initialization section of an encoder that starts. What comes next is a discontinuity, unless it is the first.
    public mutating func begin(_ initialization: MP4Initialization, at now: Timestamp) -> [HLSChange] {
        guard !isEnded else { return [] }
        var changes = close(at: now)
        // If an encoder failed before its first part, remove its initialization section.
        if let previous = initializations.last?.number, !isUsed(previous) {
            initializations.removeLast()
            changes.append(.remove(.initialization(previous)))
        }
        isDiscontinuous = nextSegment > 0
        initializationCount += 1
        initializations.append((initializationCount, initialization))
        changes.append(.store(.initialization(initializationCount), [initialization.bytes]))
        render()
        return changes
    }

    /// Takes the next part.
    ///
    /// A part that neither starts a segment nor belongs to one is left out, and so is everything after the end.
    ///
    /// - Parameters:
    ///   - now: the time of timers.
    ///   - wall: the time of day at which the part's first frame was shown.
    public mutating func append(_ part: MediaPart, at now: Timestamp, wall: Timestamp) -> [HLSChange] {
        guard !isEnded, let initialization = initializations.last?.number, part.startsSegment || open != nil else {
            return []
        }
        var changes = part.startsSegment ? close(at: now, next: part.start) : []
        guard !isEnded else {
            render()
            return changes
        }
        if open == nil {
            open = OpenSegment(
                segment: HLSSegment(
                    number: nextSegment, initialization: initialization, isDiscontinuous: isDiscontinuous, time: wall,
                    firstPart: nextPart), start: part.start)
            isDiscontinuous = false
        }
        open?.append(part)
        if settings.partTarget != nil {
            changes.append(.store(.part(nextPart), [part.bytes]))
            nextPart += 1
        }
        last = HLSPosition(segment: nextSegment, part: (open?.segment.parts.count ?? 1) - 1)
        changes += expire(at: now)
        render()
        return changes
    }

    /// Ends the stream: completes the segment in progress, and adds `EXT-X-ENDLIST`.
    public mutating func finish(at now: Timestamp) -> [HLSChange] {
        guard !isEnded else { return [] }
        let changes = close(at: now)
        isEnded = true
        render()
        return changes
    }

    /// Ends the stream without the segment in progress, which could not be stored.
    public mutating func abandon() -> [HLSChange] {
        (open, isEnded) = (nil, true)
        render()
        return []
    }

    /// Returns the files that were fetchable for long enough after they left the playlist. `append` calls this too.
    public mutating func expire(at now: Timestamp) -> [HLSChange] {
        var changes: [HLSChange] = []
        while let oldest = expired.first, !isEnded, oldest.until <= now || isTooLarge {
            expired.removeFirst()
            storedBytes -= oldest.segment.size
            changes += oldest.segment.files(settings).map(HLSChange.remove)
        }
        let needed =
            expired.first?.segment.initialization ?? listed.first?.initialization ?? open?.segment.initialization
            ?? initializationCount
        for unused in initializations.prefix(while: { $0.number < needed }) {
            changes.append(.remove(.initialization(unused.number)))
        }
        initializations.removeAll { $0.number < needed }
        return changes
    }

    /// Completes the segment in progress.
    ///
    /// - Parameter next: when the next segment starts, which is the end of this one; nil if the next one has another encoder.
    private mutating func close(at now: Timestamp, next: Duration? = nil) -> [HLSChange] {
        guard var finished = open else { return [] }
        open = nil
        if let next, next > finished.start { finished.segment.duration = next - finished.start }
        let segment = finished.segment
        nextSegment += 1
        listed.append(segment)
        listedDuration += segment.duration
        completed += segment.duration
        storedBytes += segment.size
        traffic.take(segment)
        if settings.window == .everything {
            lines += segment.lines(after: listed.dropLast().last, settings)
            isEnded = listed.count >= Self.maxListed
        }
        var changes: [HLSChange] = [.store(.segment(segment.number), finished.pieces)]
        while isOldestToLeave {
            let oldest = listed.removeFirst()
            listedDuration -= oldest.duration
            if oldest.isDiscontinuous { discontinuitySequence += 1 }
            // RFC 8216 §6.2.2.
            expired.append((oldest, now + oldest.duration + longestPlaylist))
        }
        changes += expire(at: now)
        return changes
    }

    /// Whether the first segment leaves the playlist.
    private var isOldestToLeave: Bool {
        guard let oldest = listed.first, listed.count > 1 else { return false }
        // A playlist may not become shorter than three target durations (RFC 8216 §6.2.2). Encoders that fail again and again
        // make very short segments.
        let shortened = listedDuration - oldest.duration
        let isLongEnough = shortened >= .seconds(3 * settings.targetDuration)
        switch settings.window {
        case .everything: return false
        case .segments(let count):
            return listed.count > count && (isLongEnough || listed.count > 4 * count) || isTooLarge && expired.isEmpty
        case .duration(let most):
            return listed.count > Self.maxListed || isLongEnough && shortened >= most
        }
    }

    private var isTooLarge: Bool {
        if case .segments = settings.window { return storedBytes > settings.maxBytes }
        return false
    }

    private func isUsed(_ initialization: Int) -> Bool {
        listed.last?.initialization == initialization || expired.last?.segment.initialization == initialization
    }

    private mutating func render() {
        longestPlaylist = max(longestPlaylist, listedDuration + (open?.segment.duration ?? .zero))
        var text = HLSSegment.header(
            settings, first: listed.first?.number ?? nextSegment, discontinuities: discontinuitySequence)
        if settings.window == .everything {
            text += lines
        } else {
            var previous: HLSSegment?
            var age = listedDuration + (open?.segment.duration ?? .zero)
            for segment in listed {
                age -= segment.duration
                let hasParts = age < .seconds(3 * settings.targetDuration)
                text += segment.lines(after: previous, settings, hasParts: hasParts)
                previous = segment
            }
        }
        if settings.partTarget != nil, let open {
            text += open.segment.lines(after: listed.last, settings, isComplete: false)
        }
        // After a discontinuity, players need the name of the initialization section before that of a part.
        if let hint = nextPartFile, !isDiscontinuous { text += "#EXT-X-PRELOAD-HINT:TYPE=PART,URI=\"\(hint.name)\"\n" }
        if isEnded { text += "#EXT-X-ENDLIST\n" }
        playlist = text
    }
}

/// The segment that parts are added to.
private struct OpenSegment {
    var segment: HLSSegment
    let start: Duration
    private(set) var pieces: [[UInt8]] = []

    init(segment: HLSSegment, start: Duration) { (self.segment, self.start) = (segment, start) }

    mutating func append(_ part: MediaPart) {
        pieces.append(part.bytes)
        segment.size += part.bytes.count
        segment.duration = part.start + part.duration - start
        segment.parts.append(.init(duration: part.duration, isIndependent: part.isIndependent))
    }
}
