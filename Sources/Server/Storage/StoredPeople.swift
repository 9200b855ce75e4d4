public import Signaling
public import Wire

/// Whose device a secret proves.
public enum DeviceOwner: Hashable, Sendable {
    /// Its own person, which every identity is at first.
    case itself
    case person(IdentityID)
    /// Nobody's any more: whoever comes with it is new.
    case retired

    /// Who that is, if anybody.
    func identity(of device: IdentityID) -> IdentityID? {
        switch self {
        case .itself: device
        case .person(let person): person
        case .retired: nil
        }
    }
}

extension Storage {
    /// Who comes in, and what is known of them.
    ///
    /// - Parameter isVouched: a program's token proves who it is. It does so also for those who had everything of theirs
    ///   deleted: these begin anew once, and not with every hello, with what was kept of them since.
    /// - Returns: `nil` when the secret proves nobody any more.
    func visitor(_ device: IdentityID, isVouched: Bool, at now: Timestamp) async throws -> FoundRecord? {
        if let found = try await visitor(device, at: now) { return found }
        guard isVouched else { return nil }
        var record = try await person(device, at: now)
        record.isRetired = false
        return FoundRecord(identity: device, record: record)
    }
}

/// One page of a call log.
public struct CallPage: Hashable, Sendable {
    /// Newest first.
    public var calls: [CallRecord]
    /// Where the next page begins; `nil` after the last.
    public var next: CallLogCursor?

    public init(calls: [CallRecord] = [], next: CallLogCursor? = nil) { (self.calls, self.next) = (calls, next) }

    /// - Parameter rows: newest first, one more than the page takes when there are more.
    init(rows: [CallRecord], limit: Int) {
        calls = Array(rows.prefix(limit))
        next = rows.count > limit ? calls.last.map { CallLogCursor(at: $0.at, call: $0.call) } : nil
    }

    static func limited(_ limit: Int) -> Int { min(max(1, limit), Limits.callLogRows) }
}

/// The place of a call in its owner's log. Calls that come or go meanwhile do not move it.
public struct CallLogCursor: Hashable, Sendable, Comparable {
    public var at: Timestamp
    public var call: CallID

    public init(at: Timestamp, call: CallID) { (self.at, self.call) = (at, call) }

    /// From what ``text`` made; `nil` for anything else.
    public init?(_ text: String) {
        let parts = text.split(separator: "-", omittingEmptySubsequences: false)
        guard parts.count == 2, let time = Int64(parts[0], radix: 16), time >= 0, let call = CallID(parts[1]) else {
            return nil
        }
        self.init(at: Timestamp(milliseconds: time), call: call)
    }

    /// It holds nothing that its owner is not told anyway.
    public var text: String { "\(String(max(0, at.milliseconds), radix: 16))-\(call)" }

    public static func < (left: Self, right: Self) -> Bool { (left.at, left.call) < (right.at, right.call) }
}

/// Everything that is kept of one person. Positions are not: they are never stored.
public struct HeldData: Equatable, Sendable {
    public struct Block: Hashable, Sendable {
        public var person: IdentityID
        public var at: Timestamp
    }

    public struct KeptContact: Hashable, Sendable {
        public var contact: Contact
        public var since: Timestamp
    }

    /// A way to wake a device, without what would let its reader do so.
    public struct KeptEndpoint: Equatable, Sendable {
        public var device: IdentityID
        public var registration: PushRegistration
        public var at: Timestamp
    }

    /// What this person said of somebody else.
    public struct KeptReport: Hashable, Sendable {
        public var match: MatchID
        public var reason: String
        public var at: Timestamp
    }

    public var profile: Profile?
    public var devices: [LinkedDevice] = []
    /// Oldest first, as everything here but calls.
    public var blocks: [Block] = []
    public var contacts: [KeptContact] = []
    /// Newest first.
    public var calls: [CallRecord] = []
    public var openCalls: [StoredCall] = []
    public var endpoints: [KeptEndpoint] = []
    public var reports: [KeptReport] = []
    public var ban: Ban?

    public init() {}
}

extension Profile {
    var withoutNUL: Profile {
        var profile = self
        profile.name = name.withoutNUL
        return profile
    }
}

extension StoredCall {
    var withoutNUL: StoredCall {
        var call = self
        (call.callerName, call.calleeName) = (callerName.withoutNUL, calleeName.withoutNUL)
        return call
    }

    func isOf(_ person: IdentityID) -> Bool { caller == person || callee == person }
}

extension CallRecord {
    var withoutNUL: CallRecord {
        var record = self
        record.otherName = otherName.withoutNUL
        // As the table keeps it.
        record.duration = duration.map { .milliseconds($0.wholeMilliseconds) }
        return record
    }

    var cursor: CallLogCursor { CallLogCursor(at: at, call: call) }
}
