import Cluster
import Wire

// How the values in letters are read and written. `FieldCoder` does it for the simple ones.

/// A value that is a member of an event.
protocol LetterMember {
    /// The value that reading starts from.
    static var blank: Self { get }
    /// Reads or writes the value as the member `name`.
    mutating func code(_ name: String, _ coder: inout FieldCoder) throws(WireError)
}

/// A value with several members, which is an object in JSON.
protocol LetterRecord: LetterMember {
    mutating func members(_ coder: inout FieldCoder) throws(WireError)
}

extension LetterRecord {
    mutating func code(_ name: String, _ coder: inout FieldCoder) throws(WireError) {
        try coder.object(name) { coder throws(WireError) in try members(&coder) }
    }
}

extension FieldCoder {
    /// Reads or writes a member. Returns its value.
    mutating func callAsFunction<Value: LetterMember>(_ name: String, _ value: Value) throws(WireError) -> Value {
        var value = value
        try value.code(name, &self)
        return value
    }

    mutating func member(_ name: String, _ value: inout some LetterMember) throws(WireError) {
        try value.code(name, &self)
    }

    /// Reads or writes the member `re`, the number of a request.
    mutating func re(_ value: UInt64) throws(WireError) -> UInt64 {
        var value = value
        try integer("re", &value, in: 0...(1 << 53))
        return value
    }

    mutating func re(_ value: UInt64?) throws(WireError) -> UInt64? {
        var value = value
        try integer("re", &value, in: 0...(1 << 53))
        return value
    }

    mutating func count(_ name: String, _ value: Int) throws(WireError) -> Int {
        var value = value
        try integer(name, &value, in: 0...Int(Int32.max))
        return value
    }

    /// Reads or writes a string of at most `max` bytes, by default of `Limits.name`.
    mutating func text(_ name: String, _ value: String, max: Int = Limits.name) throws(WireError) -> String {
        var value = value
        try string(name, &value, max: max)
        return value
    }

    mutating func text(_ name: String, _ value: String?, max: Int = Limits.name) throws(WireError) -> String? {
        var value = value
        try string(name, &value, max: max)
        return value
    }

    /// Reads or writes a flag that is absent if it is false, for members that earlier versions do not have.
    mutating func flag(_ name: String, _ value: Bool) throws(WireError) -> Bool {
        var present: Bool? = value ? true : nil
        try bool(name, &present)
        return present ?? false
    }

    /// Reads or writes a node's number and the number of its life, such as `2-17`.
    mutating func node(_ name: String, _ value: NodeTag?) throws(WireError) -> NodeTag? {
        guard let tag = try text(name, value?.description) else { return nil }
        guard let node = NodeTag(tag) else {
            throw WireError(.malformed, "The member \"\(name)\" must be the number of a node and of its life.")
        }
        return node
    }

    /// Reads or writes bytes as base64url.
    ///
    /// - Parameter max: the maximum length of the text.
    mutating func bytes(_ name: String, _ value: inout [UInt8], max: Int = Limits.name) throws(WireError) {
        var text = Base64URL.encode(value)
        try string(name, &text, max: max)
        guard let bytes = Base64URL.decode(text.utf8) else {
            throw WireError(.malformed, "The member \"\(name)\" must be base64url.")
        }
        value = bytes
    }

    // MARK: Lists

    /// The maximum number of clients in a letter to several. One to more clients is split (`LetterEntries`).
    static let maxClients = 1024
    /// The maximum number of identities in a list. So many fit into a letter. `roulette.maxBlocks` is 1000 by default.
    private static let maxIdentities = 40_000

    mutating func clients(_ name: String, _ value: [ConnectionID]) throws(WireError) -> [ConnectionID] {
        var ids: [ConnectionID]? = value
        try self.ids(name, &ids, count: Self.maxClients)
        return ids ?? []
    }

    /// Reads or writes identities as base64url, which takes 22 bytes each, instead of 35 as a list of ids.
    mutating func identities(_ name: String, _ value: [IdentityID]) throws(WireError) -> [IdentityID] {
        let text = try text(
            name, isReading ? "" : Base64URL.encode(value.flatMap(\.bytes)), max: (Self.maxIdentities * 64 + 2) / 3)
        guard isReading else { return value }
        guard let bytes = Base64URL.decode(text.utf8), bytes.count.isMultiple(of: 16) else {
            throw WireError(.malformed, "The member \"\(name)\" must be identities of 16 bytes each, as base64url.")
        }
        return stride(from: 0, to: bytes.count, by: 16).compactMap { IdentityID(bytes: bytes[$0..<($0 + 16)]) }
    }

    /// Reads or writes a set of identities. It is written in ascending order, so that equal letters have equal bytes.
    mutating func identities(_ name: String, _ value: Set<IdentityID>) throws(WireError) -> Set<IdentityID> {
        Set(try identities(name, value.sorted()))
    }
}

// MARK: - Simple values

extension Optional: LetterMember where Wrapped: LetterMember {
    static var blank: Wrapped? { nil }

    mutating func code(_ name: String, _ coder: inout FieldCoder) throws(WireError) {
        if coder.isReading {
            self = coder.has(name) ? try coder(name, Wrapped.blank) : nil
        } else if let value = self {
            _ = try coder(name, value)
        }
    }
}

extension Bool: LetterMember {
    static var blank: Bool { false }
    mutating func code(_ name: String, _ coder: inout FieldCoder) throws(WireError) { try coder.bool(name, &self) }
}

extension Timestamp: LetterMember {
    static var blank: Timestamp { Timestamp(milliseconds: 0) }
    mutating func code(_ name: String, _ coder: inout FieldCoder) throws(WireError) { try coder.timestamp(name, &self) }
}

extension LetterMember where Self: Identifier128 {
    static var blank: Self { Self(high: 0, low: 0) }
    mutating func code(_ name: String, _ coder: inout FieldCoder) throws(WireError) { try coder.id(name, &self) }
}

extension CallID: LetterMember {}
extension ConnectionID: LetterMember {}
extension IdentityID: LetterMember {}
extension MatchID: LetterMember {}
extension PersonID: LetterMember {}
extension RoomID: LetterMember {}
extension StreamID: LetterMember {}

extension LetterMember where Self: RawRepresentable<String> {
    mutating func code(_ name: String, _ coder: inout FieldCoder) throws(WireError) { try coder.choice(name, &self) }
}

extension CallDirection: LetterMember { static let blank = CallDirection.outgoing }
extension CallLeaving: LetterMember { static let blank = CallLeaving.hungUp }
extension CallOutcome: LetterMember { static let blank = CallOutcome.hungUp }
extension ChatMode: LetterMember { static let blank = ChatMode.video }
extension EndReason: LetterMember { static let blank = EndReason.next }
extension GoneReason: LetterMember { static let blank = GoneReason.clientDisconnected }
extension MediaMode: LetterMember { static let blank = MediaMode.relayed }
extension MediaSide: LetterMember { static let blank = MediaSide.send }
extension Role: LetterMember { static let blank = Role.subscriber }
extension RoomRole: LetterMember { static let blank = RoomRole.guest }
extension RouletteTokRequest: LetterMember { static let blank = RouletteTokRequest.next }
extension SampleVerdict: LetterMember { static let blank = SampleVerdict.ok }

extension SessionID: LetterMember {
    static var blank: SessionID { .unset }
    mutating func code(_ name: String, _ coder: inout FieldCoder) throws(WireError) {
        let text = try coder.text(name, text)
        guard coder.isReading else { return }
        guard let id = SessionID(text) else {
            throw WireError(.malformed, "The member \"\(name)\" must be the id of a session.")
        }
        self = id
    }
}

extension RoomName: LetterMember {
    static var blank: RoomName { .unset }
    mutating func code(_ name: String, _ coder: inout FieldCoder) throws(WireError) {
        let text = try coder.text(name, text, max: Limits.roomNameBytes)
        guard coder.isReading else { return }
        guard let room = RoomName(text) else {
            throw WireError(.malformed, "The member \"\(name)\" must be the name of a room.")
        }
        self = room
    }
}

extension WireError: LetterRecord {
    static var blank: WireError { WireError("", "") }
    mutating func members(_ coder: inout FieldCoder) throws(WireError) { try fields(&coder) }
}

extension CloseCode: LetterMember {
    static var blank: CloseCode { .normal }
    mutating func code(_ name: String, _ coder: inout FieldCoder) throws(WireError) {
        try coder.integer(name, &rawValue, in: 1000...4999)
    }
}

// MARK: - Messages of the protocol

extension ClientMessage: LetterMember {
    static var blank: ClientMessage { .ping }
    mutating func code(_ name: String, _ coder: inout FieldCoder) throws(WireError) { try coder.message(name, &self) }
}

extension ServerMessage: LetterMember {
    static var blank: ServerMessage { .pong }
    mutating func code(_ name: String, _ coder: inout FieldCoder) throws(WireError) { try coder.message(name, &self) }
}

extension SessionVerb: LetterMember {
    static var blank: SessionVerb { .leave(.init()) }
    mutating func code(_ name: String, _ coder: inout FieldCoder) throws(WireError) {
        guard case .session(let verb) = try coder(name, ClientMessage.session(self)) else {
            throw WireError(.malformed, "The member \"\(name)\" must be a request about a session.")
        }
        self = verb
    }
}

extension RoomVerb: LetterMember {
    static var blank: RoomVerb { .leave }
    mutating func code(_ name: String, _ coder: inout FieldCoder) throws(WireError) {
        guard case .room(let verb) = try coder(name, ClientMessage.room(self)) else {
            throw WireError(.malformed, "The member \"\(name)\" must be a request about a room.")
        }
        self = verb
    }
}

extension LetterMember where Self: Payload {
    static var blank: Self { Self() }
    mutating func code(_ name: String, _ coder: inout FieldCoder) throws(WireError) { try coder.nested(name, &self) }
}

extension Admission: LetterMember {}
extension MeetingReference: LetterMember {}
extension NearbyVerb.Watch: LetterMember {}
extension PresenceVerb.UseLink: LetterMember {}
extension RoomVerb.Change: LetterMember {}
extension RoomVerb.Join: LetterMember {}
extension RouletteNotice.Matched: LetterMember {}
extension SessionNotice.LayersWanted: LetterMember {}
extension SessionNotice.StreamQuality: LetterMember {}
extension SessionNotice.SubscriptionChanged: LetterMember {}
extension Snapshot.Call: LetterMember {}
extension Snapshot.Roulette: LetterMember {}
