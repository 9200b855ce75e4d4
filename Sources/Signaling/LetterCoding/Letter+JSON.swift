import Wire

/// Why a letter cannot be sent to another node, or cannot be read.
public enum LetterError: Error, Equatable, Sendable {
    /// This event concerns only the node on which it happens, so it has no encoded form.
    case staysHere
    /// The letter is larger than ``Letter/maxEncodedSize``. Contains its size in bytes.
    case tooLarge(Int)
    /// This version does not have this event, or not the message in it. Contains the machine and the event, such as
    /// `person matched`.
    case unknownEvent(String)
    /// These bytes are not a letter. Contains a sentence for the log, without anything that the letter contains.
    case malformed(String)
}

/// The form in which nodes of a cluster send letters to each other (`protocol/letters/README.md`).
///
/// A letter is a JSON object with the member `to`, which names the machine, the member `event`, and the members of that event:
///
///     {"to":["match","00…2a"],"event":"away","person":"00…07","away":true}
///
/// Members that are not known are ignored. Each event lists its members in one function that both reads and writes, so reading and
/// writing cannot diverge.
extension Letter {
    /// The maximum size of an encoded letter in bytes. The largest contains a session description, whose escapes in JSON can be
    /// three times as long as those of the client's own message.
    public static let maxEncodedSize = 1 << 20

    /// Encodes the letter.
    ///
    /// - Throws: `staysHere` or `tooLarge`.
    public func encoded() throws(LetterError) -> [UInt8] {
        var letter = self
        let bytes: [UInt8]
        do throws(WireError) {
            bytes = try FieldCoder.object { coder throws(WireError) in try letter.code(&coder) }
        } catch {
            throw LetterError(error, "")
        }
        guard bytes.count <= Self.maxEncodedSize else { throw .tooLarge(bytes.count) }
        return bytes
    }

    /// Decodes a letter.
    ///
    /// - Throws: `tooLarge`, `malformed` or `unknownEvent`.
    public init(encoded bytes: some Collection<UInt8>) throws(LetterError) {
        guard bytes.count <= Self.maxEncodedSize else { throw .tooLarge(bytes.count) }
        let members = try Self.members(bytes)
        let name = try Self.name(members)
        guard var letter = Self.blankByName[name] else { throw .unknownEvent(name) }
        var coder = FieldCoder(reading: members)
        do throws(WireError) { try letter.code(&coder) } catch { throw LetterError(error, name) }
        self = letter
    }

    private static func members(_ bytes: some Collection<UInt8>) throws(LetterError) -> JSONObject {
        let value: JSONValue
        do throws(JSONError) {
            // A client's message is one level deeper in a letter, or two.
            value = try JSONReader.parse(bytes, maxDepth: Limits.jsonDepth + 2)
        } catch {
            throw .malformed("A letter is not valid JSON: \(error.message) at byte \(error.offset).")
        }
        guard case .object(let members) = value else { throw .malformed("A letter must be a JSON object.") }
        return members
    }

    /// Returns the machine and the event, such as `person matched`.
    private static func name(_ members: JSONObject) throws(LetterError) -> String {
        var coder = FieldCoder(reading: members)
        var (event, to): (String, [String]?) = ("", nil)
        do throws(WireError) {
            try coder.string("event", &event, max: Limits.name)
            try coder.strings("to", &to, max: Limits.name, count: 2)
        } catch {
            throw LetterError(error, "")
        }
        guard let machine = to?.first else { throw .malformed("The member \"to\" of a letter must name a machine.") }
        return "\(machine) \(event)"
    }

    /// A letter without content for each event that can be read, keyed by the machine and the event.
    static let blankByName: [String: Letter] = Dictionary(
        uniqueKeysWithValues: blanks.compactMap { letter in
            guard let bytes = try? letter.encoded(), let members = try? members(bytes), let name = try? name(members)
            else { return nil }
            return (name, letter)
        })
}

extension LetterError {
    /// Converts an error of reading or writing the members of the event `name`.
    fileprivate init(_ error: WireError, _ name: String) {
        switch error.code {
        case WireError.staysHere.code: self = .staysHere
        case .unknownType: self = .unknownEvent(name)
        default: self = .malformed(error.message)
        }
    }
}

extension WireError {
    /// Thrown while encoding an event that never goes to another node.
    static let staysHere = WireError("stays_here", "This event is not sent to other nodes.")
}

/// The events of one machine, or of one family of them.
protocol LetterEvent {
    /// An event without content for each case that can be sent to another node.
    static var blanks: [Self] { get }
    /// Reads or writes the event's name and members. When reading, `self` is an element of `blanks`.
    mutating func code(_ coder: inout FieldCoder) throws(WireError)
}

extension Letter: LetterEvent {
    static var blanks: [Letter] {
        ClientEvent.blanks.map { .client(.blank, $0) } + [.clients([], BroadcastMessage(.blank))]
            + PersonEvent.blanks.map { .person(.blank, $0) } + SessionEvent.blanks.map { .session(.unset, $0) }
            + PoolEvent.blanks.map(Letter.pool) + MatchEvent.blanks.map { .match(.blank, $0) }
            + CallEvent.blanks.map { .call(.blank, $0) } + RoomEvent.blanks.map { .room(.unset, $0) }
            + RoomRegistryEvent.blanks.map(Letter.roomRegistry) + DirectoryEvent.blanks.map(Letter.directory)
            + DeviceCodesEvent.blanks.map(Letter.deviceCodes) + LookupEvent.blanks.map { .lookup(.blank, $0) }
            + MediaCommand.blanks.map(Letter.media) + RelayLetter.blanks.map(Letter.relay)
    }

    mutating func code(_ coder: inout FieldCoder) throws(WireError) {
        switch self {
        case .client(let id, var event): self = .client(try coder.to("client", id, &event), event)
        case .clients(let ids, let broadcast):
            try coder.to("clients")
            try coder.event("deliver")
            self = try .clients(
                coder.clients("clients", ids), BroadcastMessage(coder("message", broadcast.message)))
        case .person(let id, var event): self = .person(try coder.to("person", id, &event), event)
        case .session(let id, var event): self = .session(try coder.to("session", id, &event), event)
        case .pool(var event): self = .pool(try coder.to("pool", &event))
        case .match(let id, var event): self = .match(try coder.to("match", id, &event), event)
        case .call(let id, var event): self = .call(try coder.to("call", id, &event), event)
        case .room(let name, var event): self = .room(try coder.to("room", name, &event), event)
        case .roomRegistry(var event): self = .roomRegistry(try coder.to("rooms", &event))
        case .directory(var event): self = .directory(try coder.to("directory", &event))
        case .deviceCodes(var event): self = .deviceCodes(try coder.to("codes", &event))
        case .lookup(let id, var event): self = .lookup(try coder.to("lookup", id, &event), event)
        case .media(var command): self = .media(try coder.to("media", &command))
        case .relay(var event): self = .relay(try coder.to("relay", &event))
        // Archives and broadcasts are on the node of their session.
        case .newCall, .reception, .countClients, .hall, .archive, .broadcast: throw .staysHere
        }
    }
}

/// The id of a machine, as text.
protocol LetterAddress: CustomStringConvertible {
    init?(_ text: String)
}

extension ConnectionID: LetterAddress {}
extension IdentityID: LetterAddress {}
extension SessionID: LetterAddress {}
extension MatchID: LetterAddress {}
extension CallID: LetterAddress {}
extension PersonID: LetterAddress {}
extension RoomName: LetterAddress {}

extension FieldCoder {
    /// Reads or writes the machine with this id, and the event for it. Returns the id.
    fileprivate mutating func to<ID: LetterAddress>(
        _ machine: String, _ id: ID, _ event: inout some LetterEvent
    ) throws(WireError) -> ID {
        var to: [String]? = [machine, id.description]
        try strings("to", &to, max: Limits.name)
        try event.code(&self)
        guard isReading else { return id }
        guard let to, to.count == 2, let id = ID(to[1]) else {
            throw WireError(.malformed, "The member \"to\" must contain the id of a \(machine).")
        }
        return id
    }

    /// Reads or writes a machine that needs no id, and the event for it. Returns the event.
    fileprivate mutating func to<Event: LetterEvent>(
        _ machine: String, _ event: inout Event
    ) throws(WireError) -> Event {
        try to(machine)
        try event.code(&self)
        return event
    }

    fileprivate mutating func to(_ machine: String) throws(WireError) {
        var to: [String]? = [machine]
        try strings("to", &to, max: Limits.name)
    }

    /// Writes the event's name. When reading, the name is already known.
    mutating func event(_ name: String) throws(WireError) {
        guard !isReading else { return }
        var name = name
        try string("event", &name, max: Limits.name)
    }
}
