/// What a node publishes so that others can open relays to it, over which media is sent from node to node (decision 38).
public struct NodeRelays: Hashable, Codable, Sendable {
    /// The SHA-256 fingerprint of the certificate with which the node's media loops identify themselves: 64 hexadecimal digits.
    public var fingerprint: String
    /// For each media loop, the UDP addresses at which it is reached, best first, such as `10.0.0.2:40000`.
    public var loops: [[String]]
    /// The versions of relays that the node reads and writes.
    public var versions: ClosedRange<Int>

    /// The maximum number of media loops that count. A node has no more.
    public static let maxLoops = 64

    /// Creates what a node publishes.
    public init(fingerprint: String, loops: [[String]], versions: ClosedRange<Int>) {
        (self.fingerprint, self.loops, self.versions) = (fingerprint, loops, versions)
    }

    /// Returns the relays between this node and another one. Both nodes plan the same ones: one for each media loop of the node with
    /// more loops. The relay with a loop's number carries what the clients of that loop publish.
    ///
    /// - Parameters:
    ///   - own: the life of the node that these are the relays of.
    ///   - other: the life of the other node.
    /// - Returns: nothing if the nodes have no version in common, or if one of them has no media.
    public func plan(from own: NodeTag, to other: NodeTag, _ theirs: NodeRelays) -> [PlannedRelay] {
        let (here, there) = (min(loops.count, Self.maxLoops), min(theirs.loops.count, Self.maxLoops))
        let version = min(versions.upperBound, theirs.versions.upperBound)
        guard own.node != other.node, here > 0, there > 0, versions.contains(version), theirs.versions.contains(version)
        else { return [] }
        return (0..<max(here, there)).map { index in
            PlannedRelay(
                index: index, loop: index % here, addresses: theirs.loops[index % there], version: version,
                isController: own.node < other.node)
        }
    }
}

/// A relay from a node to another one.
public struct PlannedRelay: Hashable, Sendable {
    /// The relay's index among those between the two nodes.
    public var index: Int
    /// The media loop that has this end of the relay.
    public var loop: Int
    /// The addresses of the media loop at the other end.
    public var addresses: [String]
    /// The version in which both nodes write.
    public var version: Int
    /// Whether this end is controlling in ICE and the client in DTLS.
    public var isController: Bool
}
