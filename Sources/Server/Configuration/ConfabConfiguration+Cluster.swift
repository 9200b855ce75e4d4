import Cluster
import Redis

extension ConfabConfiguration {
    /// Settings of a node in a cluster. Without a node number, the server is alone.
    public struct Cluster: Sendable, Equatable {
        /// The node's number; nil if the server is alone.
        public var node: UInt16?
        /// The URLs of Redis, or of its Sentinels. They can contain passwords.
        public var redis: [SecretText] = []
        /// The name under which the Sentinels monitor the primary; nil without Sentinels.
        public var sentinelPrimary: String?
        /// The user name and password of the primary that Sentinels find, as `user:password`; nil if it has none.
        public var sentinelCredentials: SecretText?
        /// Whether connections to the primary that Sentinels find use TLS.
        public var sentinelTLS = false
        /// How long people may stay on a server that an operator takes out of service.
        public var drainGrace = Duration.seconds(1800)
        /// Whether this node opens relays to other nodes, over which media crosses.
        public var relays = false
        public init() {}
    }
}

extension ConfabConfiguration.Cluster {
    /// Returns the user and password in `user:password` or `:password`.
    static func credentials(_ text: SecretText) -> RedisCredentials? {
        let parts = text.revealed.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false).map(String.init)
        guard parts.count == 2, !parts[1].isEmpty else { return nil }
        return parts[0].isEmpty
            ? RedisCredentials(password: parts[1]) : RedisCredentials(user: parts[0], password: parts[1])
    }

    /// The problems with these settings that only show when they are seen together.
    func conflicts(storage: ConfabConfiguration.Storage) -> [ConfigurationError.Problem] {
        guard node != nil else {
            let keys = (redis.isEmpty ? [] : ["cluster.redis"]) + (relays ? ["cluster.relays"] : [])
            return keys.map { .init(key: $0, message: "requires cluster.node, the number of this node") }
        }
        var found: [ConfigurationError.Problem] = []
        if storage.url == nil {
            found.append(
                .init(key: "cluster.node", message: "requires storage.url: the nodes of a cluster share PostgreSQL"))
        }
        if redis.isEmpty {
            found.append(
                .init(key: "cluster.node", message: "requires cluster.redis, the URLs of Redis or of its Sentinels"))
        }
        if sentinelPrimary == nil, sentinelTLS || sentinelCredentials != nil {
            found.append(
                .init(
                    key: "cluster.sentinelPrimary",
                    message: "is required by cluster.sentinelCredentials and cluster.sentinelTLS"))
        }
        return found
    }
}

extension Setting {
    static let cluster: [Setting] = [
        Setting(
            "cluster.node", \.cluster.node,
            .optional(
                .single(
                    "a whole number from 1 to 65535",
                    parse: { UInt16($0).flatMap { $0 > 0 ? $0 : nil } }, write: \.description), empty: "no cluster"),
            "Number of this node in a cluster. Each node has a different one.",
            "A cluster needs storage.url and cluster.redis, and the same project file on all nodes. See docs/cluster.md."
        ),
        Setting(
            "cluster.redis", \.cluster.redis,
            .list(
                of: .secret("a URL such as redis://host:6379 or rediss://user:password@host:6379") {
                    (try? RedisURL($0)) != nil
                }),
            "URLs of Redis or Valkey, or of its Sentinels if cluster.sentinelPrimary is set.",
            "rediss is TLS. Each URL has its own credentials.", isSecret: true),
        Setting(
            "cluster.sentinelPrimary", \.cluster.sentinelPrimary,
            .optional(.word("a name without spaces"), empty: "no Sentinels"),
            "Name under which the Sentinels monitor the primary."),
        Setting(
            "cluster.sentinelCredentials", \.cluster.sentinelCredentials,
            .optional(
                .secret("user:password, or :password for the user default") {
                    ConfabConfiguration.Cluster.credentials(SecretText($0)) != nil
                }, empty: "no password"),
            "User and password of the primary that the Sentinels find.", isSecret: true),
        Setting(
            "cluster.sentinelTLS", \.cluster.sentinelTLS, .boolean,
            "Whether connections to the primary that the Sentinels find use TLS."),
        Setting(
            "cluster.drainGrace", \.cluster.drainGrace, .duration(.zero ... .seconds(86400)),
            "How long people may stay after `confab node drain`, also on a server that is alone.",
            "Then everyone is disconnected, and connects again: to another server, if a load balancer is in front.",
            applies: .atReload),
        Setting(
            "cluster.relays", \.cluster.relays, .boolean,
            "Whether this node connects its media to that of other nodes, over UDP.",
            "Rooms, chats and calls then span the nodes that have it. See media.relayAddress and docs/cluster.md."),
    ]
}
