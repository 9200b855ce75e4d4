import Cluster
import CoreMetrics
import Metrics
import Synchronization

/// What a node has counted, for its metrics. Totals begin with the life.
struct ClusterFigures {
    var post = RedisPost.Figures()
    /// Entries that were posted again after a failover of Redis.
    var reposted = 0
    /// The entries in the stream of this node; nil if unknown.
    var streamLength: Int?
    /// Whether there is a connection to Redis.
    var isConnected = false
    /// How long this node may act; zero if it waits.
    var lease = Duration.zero
    /// How long it has waited.
    var frozen = Duration.zero
    var places: [PlaceKey.Kind: Int] = [:]
    /// The nodes of the cluster by condition.
    var nodes: [NodeCondition: Int] = [:]
    /// The relays to other nodes by state.
    var relays: [RelayBook.State: Int] = [:]
}

/// The metrics of a node of a cluster. A server that is alone has none of them.
final class ClusterMetrics: Sendable {
    private static let postedLabel = "confab_cluster_letters_posted"
    private static let receivedLabel = "confab_cluster_letters_received"
    private static let refusedLabel = "confab_cluster_letters_refused"
    private static let lossesLabel = "confab_cluster_letter_losses"
    private static let repostedLabel = "confab_cluster_entries_reposted"
    private static let postLabel = "confab_cluster_post_seconds"
    private static let streamLabel = "confab_cluster_stream_entries"
    private static let redisLabel = "confab_cluster_redis_up"
    private static let leaseLabel = "confab_cluster_lease_seconds"
    private static let frozenLabel = "confab_cluster_frozen_seconds_total"
    private static let placesLabel = "confab_cluster_places"
    private static let nodesLabel = "confab_cluster_nodes"
    private static let relaysLabel = "confab_cluster_relays"

    /// The help text of each metric, keyed by metric name.
    static let help = [
        postedLabel + "_total": "Letters posted to other nodes.",
        receivedLabel + "_total": "Letters received from other nodes.",
        refusedLabel + "_total": "Entries and letters from Redis that were ignored, by reason.",
        lossesLabel + "_total": "Times that letters to or from another node were lost, and both began again.",
        repostedLabel + "_total": "Entries posted again because another Redis took over.",
        postLabel: "Time from posting the oldest letter of a batch until Redis had stored the batch.",
        streamLabel: "Entries in Redis that this node has not handled yet.",
        redisLabel: "1 if this node is connected to Redis, otherwise 0.",
        leaseLabel: "How long this node may act without a renewal of its lease. 0 while it waits for PostgreSQL.",
        frozenLabel: "Time for which this node has waited for PostgreSQL.",
        placesLabel: "State machines that exist once in the cluster and are on this node, by kind.",
        nodesLabel: "Nodes of the cluster as this node knows them, by state.",
        relaysLabel: "Relays between the media loops of this node and those of other nodes, by state.",
    ]

    /// Why something from Redis was ignored.
    private enum Refusal: String, CaseIterable {
        /// It was not sealed by its sender for this life.
        case forged
        /// This release cannot read it.
        case unreadable
    }

    private let posted = CounterBridge(postedLabel, isNew: true)
    private let received = CounterBridge(receivedLabel, isNew: true)
    private let refused = Dictionary(
        uniqueKeysWithValues: Refusal.allCases.map {
            ($0, CounterBridge(ClusterMetrics.refusedLabel, isNew: true, dimensions: [("reason", $0.rawValue)]))
        })
    private let losses = CounterBridge(lossesLabel, isNew: true)
    private let reposted = CounterBridge(repostedLabel, isNew: true)
    private let post = Timer(label: postLabel)
    private let stream = Gauge(label: streamLabel)
    private let redis = Gauge(label: redisLabel)
    private let lease = Gauge(label: leaseLabel)
    private let frozen = FloatingPointCounter(label: frozenLabel)
    private let frozenSeconds = Mutex(0.0)
    private let places = PlaceKey.Kind.allCases.map {
        ($0, Gauge(label: ClusterMetrics.placesLabel, dimensions: [("kind", $0.rawValue)]))
    }
    private let nodes = NodeCondition.allCases.map {
        ($0, Gauge(label: ClusterMetrics.nodesLabel, dimensions: [("state", $0.rawValue)]))
    }
    private let relays = RelayBook.State.allCases.map {
        ($0, Gauge(label: ClusterMetrics.relaysLabel, dimensions: [("state", $0.rawValue)]))
    }

    /// Records how long it took to store a batch of letters.
    func recordPost(_ duration: Duration) { post.recordNanoseconds(Int64(max(0, duration / .nanoseconds(1)))) }

    /// Records the figures. Called once per scrape.
    func record(_ figures: ClusterFigures) {
        posted.record(UInt64(clamping: figures.post.posted))
        received.record(UInt64(clamping: figures.post.received))
        refused[.forged]?.record(UInt64(clamping: figures.post.forged))
        refused[.unreadable]?.record(UInt64(clamping: figures.post.unreadable))
        losses.record(UInt64(clamping: figures.post.losses))
        reposted.record(UInt64(clamping: figures.reposted))
        if let length = figures.streamLength { stream.record(length) }
        redis.record(figures.isConnected ? 1 : 0)
        lease.record(figures.lease / .seconds(1))
        let total = figures.frozen / .seconds(1)
        let added = frozenSeconds.withLock { last in
            defer { last = max(last, total) }
            return total - last
        }
        frozen.increment(by: added)
        for (kind, gauge) in places { gauge.record(figures.places[kind] ?? 0) }
        for (condition, gauge) in nodes { gauge.record(figures.nodes[condition] ?? 0) }
        for (state, gauge) in relays { gauge.record(figures.relays[state] ?? 0) }
    }
}
