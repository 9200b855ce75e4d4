import Signaling
import Wire

/// A log of devices that were recently linked to another person, unlinked or deleted.
///
/// Storage looks up a hello while the hub continues, so the result may be out of date: a device that was just unlinked must
/// not be admitted as its former person. Callers note ``number`` before the lookup and repeat the lookup if
/// ``concern(_:since:)`` returns true.
struct RecentChanges {
    private let people: (Change) -> Set<IdentityID>
    /// Maximum number of identities remembered. A lookup takes milliseconds, so only an attack causes this many changes
    /// meanwhile. Older lookups then have to be repeated.
    private static let maxIdentities = 4096

    /// The number of the most recent commit that changed an identity.
    private(set) var number: UInt64 = 0
    private var changed: [IdentityID: UInt64] = [:]
    /// The number of uncommitted changes of each identity.
    private var uncommitted: [IdentityID: Int] = [:]
    /// Lookups that started before this commit must be repeated, because the log has dropped older changes.
    private var forgotten: UInt64 = 0

    /// - Parameter people: returns the identities for which a change makes earlier lookups outdated.
    init(_ people: @escaping (Change) -> Set<IdentityID>) { self.people = people }

    /// Records a change that is decided but not yet committed.
    mutating func begin(_ change: Change) {
        for id in people(change) { uncommitted[id, default: 0] += 1 }
    }

    /// Marks these changes as committed or failed. In both cases, lookups that started before must be repeated.
    mutating func settle(_ changes: some Sequence<Change>) {
        let settled = changes.flatMap { people($0) }
        guard !settled.isEmpty else { return }
        number += 1
        if changed.count + settled.count > Self.maxIdentities {
            forgotten = number - 1
            changed = [:]
        }
        for id in settled {
            changed[id] = number
            let left = uncommitted[id, default: 1] - 1
            uncommitted[id] = left > 0 ? left : nil
        }
    }

    /// True if a lookup of these identities that started at `start` may be out of date.
    func concern(_ identities: [IdentityID], since start: UInt64) -> Bool {
        start < forgotten
            || identities.contains { id in uncommitted[id] != nil || changed[id].map { $0 > start } ?? false }
    }
}

/// What to note before a lookup, for `HubRunner.isOutdated(_:since:)`.
struct LookupStart {
    var identities: UInt64 = .max
    var records: UInt64 = .max
}

extension Change {
    /// The identity whose secret belongs to another person, or to no one, after this change.
    var provenIdentity: IdentityID? {
        switch self {
        case .linked(let device, to: _): device.identity
        case .unlinked(let id), .retired(let id), .deleted(let id, _): id
        default: nil
        }
    }
}
