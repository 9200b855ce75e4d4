import Cluster

/// The nodes of this server's cluster, for its operators. Used on the event loop of the gateway.
protocol ClusterNodes: AnyObject {
    /// What this node knows about all nodes now.
    var list: NodeList { get }
    /// Sends requests to other nodes. It can be used on any thread.
    var requests: any NodeRequests { get }
}

extension ClusterNode: ClusterNodes {
    var requests: any NodeRequests { ledger }

    var list: NodeList {
        let now = clock()
        // Older records could say that a node serves that does not any more.
        let isFresh = recordsReadAt.map { now - $0 < Self.freshRecords } ?? false
        let others = isFresh ? records?.records.values.map(\.self) : nil
        return NodeList(
            asked: currentRecord, lease: leaseLeft(at: now), view: lives.view?.view,
            age: lives.view.map { now - $0.requested }, others: others ?? [],
            relays: relays?.states)
    }

    private func leaseLeft(at now: Cluster.Instant) -> Duration {
        guard acts, case .acting(let until) = lease.state else { return .zero }
        return until - now
    }

    /// Updates the metrics. Called once per scrape.
    func recordMetrics() {
        let now = clock()
        var figures = ClusterFigures()
        if let post {
            (figures.post, figures.reposted) = (post.figures, post.repostedCount)
            (figures.streamLength, figures.isConnected) = (post.streamLength, post.isConnected)
        }
        (figures.lease, figures.frozen) = (leaseLeft(at: now), frozen.total(at: now))
        (figures.places, figures.nodes) = (registry.heldCounts, list.counts)
        if let relays { figures.relays = relays.counts }
        metrics.record(figures)
    }
}
