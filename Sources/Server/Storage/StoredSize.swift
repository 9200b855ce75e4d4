import Signaling
import Wire

/// Estimates how much storage a change takes, for the budget of the address that caused it.
///
/// The numbers are estimates for rows with their indexes. They only need to be correct within a factor of about two.
enum StoredSize {
    /// The size in bytes of a row of fixed-size columns, such as identities and times.
    static let row = 128

    static func of(_ registration: PushRegistration) -> Int {
        2 * row + registration.endpoint.utf8.count + (registration.p256dh?.utf8.count ?? 0)
            + (registration.auth?.utf8.count ?? 0)
    }

    fileprivate static func of(_ report: Report) -> Int {
        report.lines.reduce(2 * row + report.reason.utf8.count) { $0 + row / 2 + $1.text.utf8.count }
    }
}

extension Change {
    /// The bytes that the change adds to the storage; 0 if it only updates or deletes.
    var storedBytes: Int {
        switch self {
        case .block, .retired, .deleted: StoredSize.row
        case .report(let report): StoredSize.of(report)
        case .profile(_, _, let profile, at: _): 2 * StoredSize.row + profile.name.utf8.count
        case .linked(let device, to: _): StoredSize.row + device.label.utf8.count
        case .keptInTouch(_, _, let names, at: _): names.reduce(2 * StoredSize.row) { $0 + $1.utf8.count }
        // Count an entry in the audit log too.
        case .revoked, .muted: 2 * StoredSize.row
        // Count the whole room, because each change writes all of it again.
        case .roomStored(let room):
            2 * StoredSize.row + room.name.text.utf8.count + 16 * (room.bans.count + room.revokedTokens.count)
        // Count the call's entries in the logs of both people too.
        case .callPlaced(let call):
            4 * StoredSize.row + call.session.text.utf8.count
                + 2 * (call.callerName.utf8.count + call.calleeName.utf8.count)
        case .unblock, .unlinked, .lostTouch, .roomForgotten, .callAccepted, .callOver, .callLogged, .callSeen,
            .callsForgotten:
            0
        }
    }
}
