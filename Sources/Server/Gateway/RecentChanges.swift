import Signaling
import Wire

/// A log of recent changes, such as devices that were linked to another person, unlinked or deleted.
///
/// Storage looks up a hello while the hub continues, so the result may be out of date: a device that was just unlinked
/// must not be admitted as its previous person. The same applies to rooms that are read again. Callers save ``number``
/// before the lookup and repeat the lookup if ``concern(_:since:)`` returns true.
struct RecentChanges<Key: Hashable> {
    private let keys: (Change) -> Set<Key>
    /// Maximum number of keys remembered. A lookup takes milliseconds, so only an attack causes this many changes in
    /// that time. Beyond this number, all changes are forgotten, and lookups that started earlier have to be repeated.
    private static var maxKeys: Int { 4096 }

    /// The number of the newest finished batch that changed at least one key, whether it was committed or failed. 0 if
    /// there is none.
    private(set) var number: UInt64 = 0
    private var changed: [Key: UInt64] = [:]
    /// The number of uncommitted changes to each key.
    private var uncommitted: [Key: Int] = [:]
    /// The number of the newest batch whose changes the log has dropped, with all earlier ones; 0 if none. Lookups
    /// that started before the end of that batch must be repeated.
    private var forgotten: UInt64 = 0

    /// - Parameter keys: returns the keys for which a change makes earlier lookups outdated.
    init(_ keys: @escaping (Change) -> Set<Key>) { self.keys = keys }

    /// Records a change that is decided but not yet committed.
    mutating func begin(_ change: Change) {
        for id in keys(change) { uncommitted[id, default: 0] += 1 }
    }

    /// Marks these changes as committed or failed. In both cases, lookups that started before this call must be
    /// repeated.
    mutating func settle(_ changes: some Sequence<Change>) {
        let settled = changes.flatMap { keys($0) }
        guard !settled.isEmpty else { return }
        number += 1
        if changed.count + settled.count > Self.maxKeys {
            forgotten = number - 1
            changed = [:]
        }
        for id in settled {
            changed[id] = number
            let left = uncommitted[id, default: 1] - 1
            uncommitted[id] = left > 0 ? left : nil
        }
    }

    /// True if a lookup of these keys that started at `start` may be out of date.
    func concern(_ keys: some Sequence<Key>, since start: UInt64) -> Bool {
        start < forgotten
            || keys.contains { id in uncommitted[id] != nil || changed[id].map { $0 > start } ?? false }
    }
}

/// The numbers to save before a lookup, for `HubRunner.isOutdated(_:since:)`.
struct LookupStart {
    var identities: UInt64 = .max
    var records: UInt64 = .max
}
