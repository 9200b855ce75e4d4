public import Signaling
public import Wire

/// The owner of a device, which is identified by its secret.
public enum DeviceOwner: Hashable, Sendable {
    /// The device is not linked to another person, so it is its own owner. Every new device starts in this state.
    case itself
    case person(IdentityID)
    /// The secret is no longer valid: its person was deleted, or the person's first device was unlinked. A client with this
    /// secret becomes a new person.
    case retired

    /// Returns the owner's identity; nil if there is none.
    func identity(of device: IdentityID) -> IdentityID? {
        switch self {
        case .itself: device
        case .person(let person): person
        case .retired: nil
        }
    }
}

extension Storage {
    /// Returns the person of a connecting device, with their record.
    ///
    /// - Parameter isVouched: whether a user token proves the identity. Such a user is admitted even if all of their
    ///   data was deleted. The record then contains only what was stored since the deletion.
    /// - Returns: `nil` if the secret is no longer valid and `isVouched` is false.
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
    /// The calls on this page, newest first.
    public var calls: [CallRecord]
    /// The cursor of the next page; `nil` on the last page.
    public var next: CallLogCursor?

    public init(calls: [CallRecord] = [], next: CallLogCursor? = nil) { (self.calls, self.next) = (calls, next) }

    /// - Parameter rows: newest first, with one row beyond the limit if there are more.
    init(rows: [CallRecord], limit: Int) {
        calls = Array(rows.prefix(limit))
        next = rows.count > limit ? calls.last.map { CallLogCursor(at: $0.at, call: $0.call) } : nil
    }

    static func limited(_ limit: Int) -> Int { min(max(1, limit), Limits.callLogRows) }
}

/// The position of a call in its owner's log. It stays valid when calls are added or deleted.
public struct CallLogCursor: Hashable, Sendable, Comparable {
    public var at: Timestamp
    public var call: CallID

    public init(at: Timestamp, call: CallID) { (self.at, self.call) = (at, call) }

    /// Parses ``text``. Returns `nil` if the text is invalid.
    public init?(_ text: String) {
        let parts = text.split(separator: "-", omittingEmptySubsequences: false)
        guard parts.count == 2, let time = Int64(parts[0], radix: 16), time >= 0, let call = CallID(parts[1]) else {
            return nil
        }
        self.init(at: Timestamp(milliseconds: time), call: call)
    }

    /// The cursor as text for clients: the time in milliseconds, in hexadecimal, and the call's id. The owner can see
    /// both anyway.
    public var text: String { "\(String(max(0, at.milliseconds), radix: 16))-\(call)" }

    public static func < (left: Self, right: Self) -> Bool { (left.at, left.call) < (right.at, right.call) }
}

/// All stored data of one person. Locations are never stored.
public struct PersonData: Equatable, Sendable {
    /// A person whom this person blocked.
    public struct Block: Hashable, Sendable {
        public var person: IdentityID
        public var at: Timestamp
    }

    /// A contact, and since when the two people have been contacts.
    public struct KeptContact: Hashable, Sendable {
        public var contact: Contact
        public var since: Timestamp
    }

    /// A stored push endpoint with its device.
    public struct KeptEndpoint: Equatable, Sendable {
        public var device: IdentityID
        public var registration: PushRegistration
        public var at: Timestamp
    }

    /// A report that this person filed.
    public struct KeptReport: Hashable, Sendable {
        public var match: MatchID
        public var reason: String
        public var at: Timestamp
    }

    /// A persistent room that this person created.
    public struct CreatedRoom: Hashable, Sendable {
        public var name: RoomName
        public var at: Timestamp
    }

    public var profile: Profile?
    public var devices: [LinkedDevice] = []
    /// Blocks, oldest first. All lists in this type except `calls` have this order.
    public var blocks: [Block] = []
    public var contacts: [KeptContact] = []
    /// Logged calls, newest first.
    public var calls: [CallRecord] = []
    public var openCalls: [StoredCall] = []
    public var endpoints: [KeptEndpoint] = []
    public var reports: [KeptReport] = []
    public var rooms: [CreatedRoom] = []
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
        // Round the duration as the table does, which stores whole milliseconds.
        record.duration = duration.map { .milliseconds($0.wholeMilliseconds) }
        return record
    }

    var cursor: CallLogCursor { CallLogCursor(at: at, call: call) }
}
