import MediaFiles
import Wire

extension ComposePlan {
    /// How much later than it happened something can be written, in milliseconds: frames wait up to 5 s for a keyframe at the start of a
    /// file, and about a second for lost packets and for the other track.
    static let lateness: Int64 = 10_000

    /// Returns the number of chunks at the start of this plan that are the same in the plan of the whole archive: those that ended long
    /// enough ago, and whose end does not depend on what happens next.
    ///
    /// This is only a forecast, because a recorder can be late without limit, for example if its disk is. A chunk that was composed in
    /// vain is not used: its name has the key of another command (``FFmpegCommand/key(sizes:)``).
    ///
    /// - Parameter soFar: the milliseconds that were recorded until now, as in `init`.
    public func settled(at soFar: Int64) -> Int {
        chunks.prefix { chunk in
            let end = Int64(chunk.frames.upperBound) * ComposedFormat.frame
            // A chunk ends at its maximum length, or because the scene changes. The last scene has not changed yet.
            let hasEnded = chunk.frames.count == Self.maxChunk || chunk.frames.upperBound < frames
            return hasEnded && end <= soFar - Self.lateness
        }.count
    }
}

/// The bytes of a file that is still being recorded which a chunk needs.
public struct RecordedRange: Hashable, Sendable {
    /// The bytes before the first cluster: the tracks and the parameters of their codecs.
    public var header: Range<Int64>
    /// The clusters that contain the chunk.
    public var clusters: Range<Int64>

    public init(header: Range<Int64>, clusters: Range<Int64>) { (self.header, self.clusters) = (header, clusters) }
}

extension ComposedChunk {
    /// Returns the size of the part of a source's file on which this chunk depends. It is the same while the file is recorded and after
    /// its end.
    ///
    /// - Parameters:
    ///   - clusters: of the file; nil if they are not known.
    ///   - size: of the file in bytes.
    func extent(of source: DrawnSource, _ clusters: MatroskaClusters?, size: Int64) -> Int64 {
        clusters?.end(after: fileTime(of: frames.upperBound, source) + ComposePlan.lateness) ?? size
    }

    /// Returns what to read of a source's file that is still being recorded; nil if frames of this chunk may not have been written yet.
    func range(of source: DrawnSource, _ clusters: MatroskaClusters) -> RecordedRange? {
        guard let first = clusters.all.first?.offset,
            let start = clusters.start(for: fileTime(of: frames.lowerBound, source)),
            let end = clusters.end(after: fileTime(of: frames.upperBound, source) + ComposePlan.lateness), start < end
        else { return nil }
        return RecordedRange(header: 0..<first, clusters: start..<end)
    }

    /// The time of a frame in a source's file, in milliseconds.
    private func fileTime(of frame: Int, _ source: DrawnSource) -> Int64 {
        Int64(frame) * ComposedFormat.frame - source.start
    }
}

extension ArchiveLog {
    /// Whether the archive has ended.
    var isComplete: Bool { lines.contains { if case .end = $0.event { true } else { false } } }

    /// The names of the files that are complete.
    var completeFiles: Set<String> {
        Set(lines.compactMap { if case .fileEnd(_, let name, _) = $0.event { name } else { nil } })
    }

    /// Returns how much was recorded of an archive that has not ended, from the times of day at which the recorded time began, stood still
    /// and continued. Zero before the first packet.
    ///
    /// - Parameter now: the time of day.
    func recordedTime(at now: Timestamp) -> Duration {
        var recorded = Duration.zero
        /// When the recorded time began to run; nil while it stands still.
        var runs: Timestamp?
        var hasBegun = false
        for line in lines {
            switch line.event {
            case .began(let time): (hasBegun, runs) = (true, time)
            case .pause where hasBegun: runs = nil
            case .resume(let time) where hasBegun: runs = time
            default: continue
            }
            recorded = line.time
        }
        let running = runs.map { max(.zero, now - $0) } ?? .zero
        return min(max(recorded + running, lines.last?.time ?? .zero), Self.maxTime)
    }
}
