import Signaling
import Wire

/// Which secrets came to prove somebody else lately, or nobody.
///
/// Storage is asked about a hello while the rules go on: what it says may be out of date when it arrives, and a device that
/// was just unlinked must not come in as its former person. So whoever asks notes ``number`` before, and asks again when
/// ``concern(_:since:)`` says so.
struct IdentityChanges {
    /// Identities kept in mind. A question takes milliseconds, in which only an attack brings so many changes; then who
    /// asked before is told to ask again.
    private static let most = 4096

    /// Of the last commit that had such a change.
    private(set) var number: UInt64 = 0
    private var changed: [IdentityID: UInt64] = [:]
    private var uncommitted: Set<IdentityID> = []
    /// Changes up to this one are not kept in mind any more.
    private var forgotten: UInt64 = 0

    /// The rules have decided it; storage does not know yet.
    mutating func begin(_ change: Change) {
        switch change {
        case .linked(let device, to: _): uncommitted.insert(device.identity)
        case .unlinked(let id), .retired(let id), .deleted(let id): uncommitted.insert(id)
        default: break
        }
    }

    /// Storage knows all that began.
    mutating func settle() {
        guard !uncommitted.isEmpty else { return }
        number += 1
        if changed.count + uncommitted.count > Self.most {
            forgotten = number - 1
            changed = [:]
        }
        for id in uncommitted { changed[id] = number }
        uncommitted = []
    }

    /// Whether what was asked about these may be out of date.
    func concern(_ identities: [IdentityID], since asked: UInt64) -> Bool {
        asked < forgotten
            || identities.contains { id in uncommitted.contains(id) || changed[id].map { $0 > asked } ?? false }
    }
}
