/// What a node tells the others about itself. It is sealed and stored in Redis, and renewed with the lease.
public struct NodeRecord: Hashable, Codable, Sendable {
    /// Whether the node takes state machines and sockets.
    public enum State: String, CaseIterable, Codable, Sendable {
        /// It does.
        case serving
        /// It is about to stop, or an operator has asked it to. It keeps what it has, until the people have gone elsewhere.
        case draining
    }

    /// The versions of letters that a node understands and sends.
    public struct Letters: Hashable, Codable, Sendable {
        /// The newest version that the node can send.
        public var speaks: Int
        /// The versions that the node understands: those of its release and of the one before.
        public var reads: ClosedRange<Int>

        /// Creates the versions of a node.
        public init(speaks: Int, reads: ClosedRange<Int>) { (self.speaks, self.reads) = (speaks, reads) }

        /// The version in which to write to a node: the newest that this one speaks and that one reads. Nil if there is none. A node
        /// that can write to none of the others, or read none, refuses to start.
        public func version(to other: Letters) -> Int? {
            let newest = min(speaks, other.reads.upperBound)
            return other.reads.contains(newest) && reads.contains(newest) ? newest : nil
        }
    }

    /// How much of its capacity a node uses.
    public struct Load: Hashable, Codable, Sendable {
        /// The share of time in which the event loop of the rules is busy, from 0 to 1.
        public var rules: Double
        /// The same of the busiest media loop.
        public var media: Double
        /// Media packets sent each second.
        public var packetsPerSecond: Int
        /// Open sockets.
        public var sockets: Int

        /// Creates a load.
        public init(rules: Double = 0, media: Double = 0, packetsPerSecond: Int = 0, sockets: Int = 0) {
            (self.rules, self.media) = (rules, media)
            (self.packetsPerSecond, self.sockets) = (packetsPerSecond, sockets)
        }

        /// The share of capacity in use, from 0 to 1: that of the busiest loop. A number that is not finite counts as fully loaded.
        public var share: Double {
            let busiest = max(rules, media)
            return busiest.isFinite && rules.isFinite ? min(max(busiest, 0), 1) : 1
        }
    }

    /// How many there are on the node. The sums over all nodes are shown to people.
    public struct Counts: Hashable, Codable, Sendable {
        /// Clients that are connected.
        public var clients: Int
        /// People who wait for a stranger.
        public var waiting: Int
        /// Sessions with at least one member.
        public var sessions: Int

        /// Creates counts.
        public init(clients: Int = 0, waiting: Int = 0, sessions: Int = 0) {
            (self.clients, self.waiting, self.sessions) = (clients, waiting, sessions)
        }
    }

    /// The life that wrote the record. A record of a life that has ended does not count.
    public var tag: NodeTag
    /// The address of the node for people and programs, such as `https://n2.example.org`.
    public var url: String
    /// The address and port of its web server for the load balancer and other nodes, such as `10.0.0.2:8080`.
    public var socketAddress: String
    /// The name of the region, from the configuration. Empty if there is only one.
    public var region: String
    /// The version of the program.
    public var version: String
    /// The versions of letters.
    public var letters: Letters
    /// How much of its capacity the node uses, as of the last second.
    public var load: Load
    /// How many clients and sessions there are on the node, as of the last second.
    public var counts: Counts
    /// Whether the node takes state machines and sockets.
    public var state: State
    /// How long ago the load balancer asked last whether the node is ready, in milliseconds; nil if it does not ask regularly.
    public var checkedMsAgo: Int?
    /// What the node does, as a raw value of ``NodeCondition``. Text, because a release may publish one that an older release does not
    /// know. Nil if the release does not publish it.
    public var condition: String?
    /// Whether an operator has taken the node out of service, also while ``condition`` is another one. Nil if the release does not
    /// publish it.
    public var isOutOfService: Bool?
    /// While the node drains: the milliseconds until it disconnects everyone.
    public var disconnectsInMs: Int64?
    /// The number of places that the node has. Nil if the release does not publish it.
    public var places: Int?
    /// How to open relays to the node; nil if it routes no media, or its release has no relays.
    public var relays: NodeRelays?

    /// Creates the record of a node that serves and has no load.
    public init(tag: NodeTag, url: String, socketAddress: String, region: String, version: String, letters: Letters) {
        (self.tag, self.url, self.socketAddress) = (tag, url, socketAddress)
        (self.region, self.version, self.letters) = (region, version, letters)
        (load, counts, state) = (Load(), Counts(), .serving)
    }
}
