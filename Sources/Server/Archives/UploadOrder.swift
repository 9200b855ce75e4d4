import Signaling
import Wire

/// Which archives are uploaded next.
///
/// One that could not be uploaded waits, longer after each attempt, and those that were not tried yet do not wait for it. So archives that
/// can never be uploaded, for example because a file was removed, do not delay the others.
struct UploadOrder {
    /// The pause after the first failure. Each further one doubles it, up to `longestPause`.
    static let firstPause: Duration = .seconds(5)
    static let longestPause: Duration = .seconds(600)
    /// How many archives that were not tried yet are read at a time.
    static let page = 100

    /// What is known of an archive that could not be uploaded.
    private struct Failure {
        var count: Int
        /// When it is tried again.
        var due: ContinuousClock.Instant
    }

    private var failures: [ArchiveID: Failure] = [:]

    /// How many archives to read, oldest first: with those that failed, which are among the oldest.
    var limit: Int { Self.page + failures.count }

    /// Returns the archives to upload now: all that were not tried yet, then one that failed and whose pause is over. Forgets failures
    /// of archives that are gone.
    ///
    /// - Parameter archives: the oldest complete archives, at most `limit`.
    mutating func next(of archives: [ArchiveRecord], now: ContinuousClock.Instant) -> [ArchiveRecord] {
        let present = Set(archives.map(\.id))
        failures = failures.filter { present.contains($0.key) }
        var next: [ArchiveRecord] = []
        var again: (archive: ArchiveRecord, due: ContinuousClock.Instant)?
        for archive in archives {
            guard let failure = failures[archive.id] else {
                next.append(archive)
                continue
            }
            if failure.due <= now, again.map({ failure.due < $0.due }) ?? true { again = (archive, failure.due) }
        }
        // Only one, because an attempt may take half a minute, and a new archive may arrive in the meantime.
        if let again { next.append(again.archive) }
        return next
    }

    /// Records that an archive could not be uploaded.
    mutating func failed(_ archive: ArchiveID, now: ContinuousClock.Instant) {
        let count = failures[archive]?.count ?? 0
        let pause = min(Self.firstPause * (1 << min(count, 10)), Self.longestPause)
        failures[archive] = Failure(count: count + 1, due: now + pause)
    }
}
