/// An event about the relays between this node and another one. The shells of both nodes handle it, and the hub only posts it.
///
/// The letter does not name its sender, because each node may speak only for itself: the relay is one to the node that has posted the
/// letter.
public enum RelayLetter: Equatable, Sendable {
    /// The credentials of the sender's end of a relay, with which the receiver connects or answers.
    indirect case credentials(RelayCredentials)
}

/// The ICE credentials of one end of a relay, for one attempt to connect.
public struct RelayCredentials: Equatable, Sendable {
    /// The index of the relay among those between the two nodes.
    public var index: UInt8
    /// The number of the attempt, from 1. The higher one counts.
    public var attempt: UInt32
    /// The username fragment. It is used only if RFC 8839 allows it.
    public var ufrag: String
    /// The password. It is used only if RFC 8839 allows it.
    public var password: String

    /// Creates the credentials of an attempt.
    public init(index: UInt8, attempt: UInt32, ufrag: String, password: String) {
        (self.index, self.attempt, self.ufrag, self.password) = (index, attempt, ufrag, password)
    }
}
