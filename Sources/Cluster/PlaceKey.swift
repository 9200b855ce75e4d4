/// Names a state machine that exists once in a cluster. A node that wants to create the machine first claims its place, which
/// is stored in Redis.
public struct PlaceKey: Hashable, Sendable, CustomStringConvertible {
    /// What kinds of state machines have a place.
    public enum Kind: String, CaseIterable, Sendable {
        /// A person, by public id.
        case person
        /// A room with its session, by name.
        case room
        /// A session that people join with tokens of an application, by a hash of its id. The session of a room, match, call or
        /// legacy client has an ``origin``.
        case session
        /// The pool of strangers who found nobody on their own node.
        case hall
        /// The directory of people nearby.
        case directory
        /// The codes with which a person links another device.
        case codes
    }

    /// What kind of state machine it is.
    public let kind: Kind
    /// The machine's id as text. Empty for a kind of which there is only one.
    public let id: String
    /// The life that made the machine's id, and has the place without a claim until it has ended. After that, the place is claimed as
    /// any other. Nil if nobody has the place without a claim. Follows from the id, so Redis need not know it.
    ///
    /// A life makes such an id only while it may act (``Lease``). Then its row in the ledger is old enough that a failover cannot lose it,
    /// and a missing row means that the life has ended.
    public let origin: NodeTag?

    public init(_ kind: Kind, _ id: String = "", origin: NodeTag? = nil) {
        (self.kind, self.id, self.origin) = (kind, id, origin)
    }

    /// Parses the text of ``description``, which does not contain the origin. Returns nil if it names no kind.
    public init?(_ text: String) {
        guard let colon = text.firstIndex(of: ":"), let kind = Kind(rawValue: String(text[..<colon])) else {
            return nil
        }
        self.init(kind, String(text[text.index(after: colon)...]))
    }

    /// The kind and the id, such as `room:kitchen`. It is the end of the key in Redis.
    public var description: String { "\(kind.rawValue):\(id)" }
}
