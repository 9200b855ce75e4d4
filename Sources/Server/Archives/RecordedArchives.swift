import Composing
import Signaling
import Wire

/// The archives that are being recorded and will be composed. They take turns: each call of `next` returns a chunk of the one that has
/// waited longest.
struct RecordedArchives {
    typealias Instant = ContinuousClock.Instant

    /// How long to wait until there may be another chunk. Most have a minute.
    static let interval: Duration = .seconds(20)
    /// How long to wait after a failure, such as a missing ffmpeg or little space on the disk.
    static let retry: Duration = .seconds(60)
    /// How many times as long as the search for a chunk the pause after it is at least. A search reads the whole event log, which takes
    /// seconds if it is very long, on a thread of the server.
    static let minPause = 50

    /// A chunk of an archive, by its number.
    struct Chunk: Equatable {
        var archive: ArchiveRecord
        var index: Int
    }

    /// What has become of a chunk.
    enum Outcome: Equatable {
        case step(ComposeJob.Step)
        case failed
    }

    /// An archive, and when its next chunk is looked for.
    private struct Entry {
        var chunk: Chunk
        var due: Instant
    }

    private var entries: [Entry] = []

    /// When `next` has a chunk; nil if no archive is recorded.
    var nextTime: Instant? { entries.map(\.due).min() }

    mutating func append(_ archive: ArchiveRecord, now: Instant) {
        entries.append(Entry(chunk: Chunk(archive: archive, index: 0), due: now + Self.interval))
    }

    mutating func remove(_ archive: ArchiveID) { entries.removeAll { $0.chunk.archive.id == archive } }

    /// Returns the chunk that has waited longest; nil if none is due.
    func next(now: Instant) -> Chunk? {
        guard let first = entries.min(by: { $0.due < $1.due }), first.due <= now else { return nil }
        return first.chunk
    }

    /// Records what has become of a chunk.
    ///
    /// - Parameter took: how long it took to find that out.
    mutating func take(_ chunk: Chunk, _ outcome: Outcome, after took: Duration, now: Instant) {
        if outcome == .step(.ended) { return remove(chunk.archive.id) }
        for index in entries.indices where entries[index].chunk == chunk {
            switch outcome {
            case .step(.done):
                entries[index].chunk.index += 1
                entries[index].due = now
            case .step: entries[index].due = now + max(Self.interval, took * Self.minPause)
            case .failed: entries[index].due = now + Self.retry
            }
        }
    }
}
