import Composing
import Signaling
import Wire

/// The archives that wait to be composed, in the order in which they stopped, and those of which a part can be composed while they are
/// recorded, for when none waits.
///
/// If another process composes an archive, only this archive waits for it, and later ones are composed first. A full disk and a missing
/// ffmpeg make all of them wait.
struct ComposeQueue {
    typealias Instant = ContinuousClock.Instant

    /// An archive that waits.
    private struct Entry {
        let archive: ArchiveRecord
        /// When it may be tried again; nil if it was not tried, or waits with all others.
        var due: Instant?
        var obstacle: ComposingObstacle?
    }

    private var entries: [Entry] = []
    private var recorded = RecordedArchives()
    /// The archive that is being composed or tried.
    private var current: ArchiveID?
    /// When the next one may be tried, after a failure that concerns all.
    private var resumesAt: Instant?

    /// Adds an archive that has stopped.
    mutating func append(_ archive: ArchiveRecord) {
        recorded.remove(archive.id)
        entries.append(Entry(archive: archive))
    }

    /// Adds an archive that is being recorded.
    mutating func appendRecorded(_ archive: ArchiveRecord, now: Instant) { recorded.append(archive, now: now) }

    /// Returns the archive to compose now; nil if none can be. It stays in the queue.
    func next(now: Instant) -> ArchiveRecord? {
        if let resumesAt, now < resumesAt { return nil }
        return entries.first { entry in entry.due.map { $0 <= now } ?? true }?.archive
    }

    /// Returns the archive to compose now, and remembers it until the next call; nil if none can be. It stays in the queue.
    mutating func begin(now: Instant) -> ArchiveRecord? {
        let archive = next(now: now)
        current = archive?.id
        return archive
    }

    /// Returns the chunk to compose now of an archive that is being recorded, and remembers the archive until the next call of `begin`; nil
    /// if there is none, or an archive that has stopped can be composed.
    mutating func beginChunk(now: Instant) -> RecordedArchives.Chunk? {
        guard next(now: now) == nil, resumesAt.map({ $0 <= now }) ?? true else { return nil }
        let chunk = recorded.next(now: now)
        current = chunk?.archive.id
        return chunk
    }

    /// Records what has become of a chunk from `beginChunk`.
    ///
    /// - Parameter took: how long it took to find that out.
    mutating func endChunk(
        _ chunk: RecordedArchives.Chunk, _ outcome: RecordedArchives.Outcome, after took: Duration, now: Instant
    ) {
        recorded.take(chunk, outcome, after: took, now: now)
    }

    /// Removes an archive that waits.
    ///
    /// - Returns: false if it is being composed or tried.
    mutating func giveUp(_ archive: ArchiveID) -> Bool {
        guard archive != current else { return false }
        remove(archive)
        return true
    }

    /// Returns when `begin` or `beginChunk` has something; nil if the queue is empty.
    func nextTime(now: Instant) -> Instant? {
        guard let first = (entries.map { $0.due ?? now } + [recorded.nextTime].compactMap(\.self)).min() else {
            return nil
        }
        return max(first, resumesAt ?? first)
    }

    /// Removes an archive that was composed or has failed.
    mutating func remove(_ archive: ArchiveID) { entries.removeAll { $0.archive.id == archive } }

    /// Records that an archive cannot be composed before this time.
    ///
    /// - Returns: the archives for which this is a new obstacle.
    mutating func postpone(_ archive: ArchiveID, _ obstacle: ComposingObstacle, until time: Instant) -> [ArchiveID] {
        if obstacle.concernsAll { resumesAt = time }
        return change { entry in
            guard obstacle.concernsAll || entry.archive.id == archive else { return }
            entry.obstacle = obstacle
            if !obstacle.concernsAll { entry.due = time }
        }
    }

    /// Records that an archive is being composed, so that nothing prevents others from being composed after it.
    ///
    /// - Returns: the archives that no longer have an obstacle.
    mutating func resume(_ archive: ArchiveID) -> [ArchiveID] {
        resumesAt = nil
        return change { entry in
            if entry.archive.id == archive || entry.obstacle?.concernsAll == true { entry.obstacle = nil }
        }
    }

    /// Changes all entries.
    ///
    /// - Returns: the archives whose obstacle has changed.
    private mutating func change(_ change: (inout Entry) -> Void) -> [ArchiveID] {
        var changed: [ArchiveID] = []
        for index in entries.indices {
            let before = entries[index].obstacle
            change(&entries[index])
            if entries[index].obstacle != before { changed.append(entries[index].archive.id) }
        }
        return changed
    }
}

extension ComposingObstacle {
    /// Returns nil for an error that does not pass.
    init?(_ error: ComposeError) {
        switch error {
        case .busy: self = .otherProcess
        case .diskFull: self = .diskSpace
        case .ffmpegMissing, .ffmpegTooOld, .ffmpegIncomplete: self = .ffmpeg
        case .noArchive, .nothingRecorded, .badCanvas, .outputExists, .cannotWrite, .failed: return nil
        }
    }

    /// Whether no archive can be composed.
    var concernsAll: Bool { self != .otherProcess }
}

extension ArchiveRecord {
    /// Whether composing waits for something that may never come. Such an archive can be deleted. Another process ends, and needs the
    /// files until then.
    var canBeGivenUp: Bool { status == .stopped && obstacle?.concernsAll == true }
}
