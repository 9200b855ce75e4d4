import Wire

/// A change to the stored data. It is committed before any later effect of the same input or timeout is carried out.
public enum Change: Hashable, Sendable {
    case block(owner: IdentityID, blocked: IdentityID, at: Timestamp)
    case unblock(owner: IdentityID, blocked: IdentityID)
    case report(Report)
    /// The operator's program has ended a chat because of what this person's camera showed. Adds only an entry to the audit log.
    case endedByCheck(IdentityID, MatchID, text: String, at: Timestamp)
    // People.
    /// Stores the profile of a person. `at` is the time when the profile was last used.
    case profile(IdentityID, PersonID, Profile, at: Timestamp)
    /// The device's identity becomes a device of the person `to`, who also receives the device's blocks.
    case linked(LinkedDevice, to: IdentityID)
    /// The identity is no longer linked to a person. Its secret belongs to a separate person again.
    case unlinked(IdentityID)
    /// The identity's secret is no longer accepted.
    case retired(IdentityID)
    /// Deletes all data of this person, and retires the identities of the person and of all linked devices. `contacts` are the
    /// people who lose this person as a contact.
    case deleted(IdentityID, contacts: [IdentityID] = [])
    /// Two people became contacts. `names` contains their names in the same order as their identities.
    case keptInTouch(IdentityID, IdentityID, names: [String], at: Timestamp)
    case lostTouch(IdentityID, IdentityID)
    // Sessions.
    /// A moderator or an application's server removed a member from a session, so the member's token no longer admits
    /// anyone.
    case revoked(Revocation)
    /// A mute of all members of the session began (true) or ended (false).
    case muted(SessionID, Bool, by: Moderator, at: Timestamp)
    /// An event to report to the application's server.
    case webhook(WebhookEvent)
    // Rooms.
    /// A persistent room was created, changed or used again.
    case roomStored(StoredRoom)
    /// The room ended, or is no longer persistent.
    case roomForgotten(RoomID)
    // Archives.
    /// An archive was started, or has changed.
    indirect case archiveStored(ArchiveRecord)
    /// An archive was deleted.
    case archiveForgotten(ArchiveID)
    /// A broadcast was started, or has changed.
    indirect case broadcastStored(BroadcastRecord)
    // Calls.
    case callPlaced(StoredCall)
    case callAccepted(CallID, at: Timestamp, people: [IdentityID])
    case callOver(CallID, people: [IdentityID])
    case callLogged(CallRecord, of: IdentityID)
    case callSeen(CallID, by: IdentityID)
    /// The person deleted this call from their call log, or all calls if nil.
    case callsForgotten(CallID?, by: IdentityID)
}

extension Change {
    /// What the shell needs to know about a change, besides how to store it.
    public struct Summary: Equatable, Sendable {
        /// The people whose state in memory no longer agrees with storage if this change is not committed.
        public var people: Set<IdentityID> = []
        /// The persistent room whose state in memory no longer agrees with storage if this change is not committed;
        /// nil if there is none.
        public var room: RoomID?
        /// The archive whose state in memory no longer agrees with storage if this change is not committed; nil if there
        /// is none.
        public var archive: ArchiveID?
        /// The broadcast whose state in memory no longer agrees with storage if this change is not committed; nil if there is
        /// none.
        public var broadcast: BroadcastID?
        /// The identity whose secret belongs to another person, or to no one, after this change; nil if there is none.
        public var provenIdentity: IdentityID?
        /// An estimate of the bytes that the change adds to the storage; 0 if it adds nothing, if the size of an
        /// earlier change already included them, or if they are limited otherwise.
        public var storedBytes = 0
        /// The event that metrics count for this change; nil if they count none.
        public var counted: Counted?
        /// The entry that this change adds to the audit log; nil if it adds none.
        public var auditEntry: AuditEntry?
    }

    /// An event that metrics count. It is derived from changes, because they include every outcome of a call.
    public enum Counted: Equatable, Sendable {
        case callPlaced
        /// The outcome as the caller sees it.
        case callEnded(CallOutcome)
    }

    /// The summary of this change, for `HubRunner`, the commit queue, metrics and storage.
    public var summary: Summary {
        let row = StoredSize.row
        switch self {
        case .block(let owner, _, _): return Summary(people: [owner], storedBytes: row)
        case .unblock(let owner, _): return Summary(people: [owner])
        case .report(let report): return Summary(people: [report.by], storedBytes: StoredSize.of(report))
        case .endedByCheck(let person, let match, let text, let at):
            let entry = AuditEntry(
                at: at, actor: AuditEntry.checkActor, action: "chat.end", subject: "\(person)",
                detail: text.isEmpty ? "\(match)" : "\(match): \(text)")
            return Summary(storedBytes: row + text.utf8.count, auditEntry: entry)
        case .profile(let person, _, let profile, at: _):
            return Summary(people: [person], storedBytes: 2 * row + profile.name.utf8.count)
        case .linked(let device, let person):
            return Summary(
                people: [device.identity, person], provenIdentity: device.identity,
                storedBytes: row + device.label.utf8.count)
        case .unlinked(let person): return Summary(people: [person], provenIdentity: person)
        case .retired(let person): return Summary(people: [person], provenIdentity: person, storedBytes: row)
        case .deleted(let person, let contacts):
            return Summary(people: Set(contacts).union([person]), provenIdentity: person, storedBytes: row)
        case .keptInTouch(let one, let other, let names, at: _):
            return Summary(people: [one, other], storedBytes: names.reduce(2 * row) { $0 + $1.utf8.count })
        case .lostTouch(let one, let other): return Summary(people: [one, other])
        // The size of `revoked` and `muted` includes the entry in the audit log.
        case .revoked(let revocation):
            let entry = AuditEntry(
                at: revocation.at, by: revocation.by, action: "session.remove", revocation.session,
                detail: "\(revocation.of)")
            return Summary(
                people: Set([revocation.by.member].compactMap(\.self)), storedBytes: 2 * row, auditEntry: entry)
        case .muted(let session, let isMuted, let moderator, let at):
            let entry = AuditEntry(
                at: at, by: moderator, action: isMuted ? "session.mute" : "session.unmute", session)
            return Summary(people: Set([moderator.member].compactMap(\.self)), storedBytes: 2 * row, auditEntry: entry)
        // Storage limits events for each project. The budget of an address is for what its people do.
        case .webhook: return Summary()
        // The size is that of the whole room, because all of it is written again.
        case .roomStored(let room):
            let lists = 16 * (room.bans.count + room.revokedTokens.count)
            return Summary(room: room.id, storedBytes: 2 * row + room.name.text.utf8.count + lists)
        case .roomForgotten(let id): return Summary(room: id)
        // Only applications' servers and moderators start archives, and their number is limited.
        case .archiveStored(let archive): return Summary(archive: archive.id)
        case .archiveForgotten(let id): return Summary(archive: id)
        case .broadcastStored(let broadcast): return Summary(broadcast: broadcast.id)
        // The size includes the call's entries in the logs of both people.
        case .callPlaced(let call):
            let names = call.callerName.utf8.count + call.calleeName.utf8.count
            return Summary(
                people: [call.caller, call.callee], storedBytes: 4 * row + call.session.text.utf8.count + 2 * names,
                counted: .callPlaced)
        case .callAccepted(_, _, let people), .callOver(_, let people): return Summary(people: Set(people))
        case .callLogged(let record, let person):
            return Summary(
                people: [person], counted: record.direction == .outgoing ? .callEnded(record.outcome) : nil)
        case .callSeen(_, let person), .callsForgotten(_, let person): return Summary(people: [person])
        }
    }
}

/// Estimates how much storage something takes, for the budget of the address that caused it.
///
/// The numbers are estimates for rows with their indexes. They only need to be correct within a factor of about two.
public enum StoredSize {
    /// The size in bytes of a row of fixed-size columns, such as identities and times.
    public static let row = 128

    /// Returns the estimated size of a push registration in bytes.
    public static func of(_ registration: PushRegistration) -> Int {
        2 * row + registration.endpoint.utf8.count + (registration.p256dh?.utf8.count ?? 0)
            + (registration.auth?.utf8.count ?? 0)
    }

    fileprivate static func of(_ report: Report) -> Int {
        let sample = report.sample.map { row + $0.jpeg.count } ?? 0
        return report.lines.reduce(2 * row + report.reason.utf8.count + sample) { $0 + row / 2 + $1.text.utf8.count }
    }
}
