import Cluster

/// Renews the lease of a life while the server starts, which may take longer than a lease lasts: a large database is migrated, or
/// PostgreSQL is slow. The node itself renews as soon as it runs.
final class StartupRenewal: Sendable {
    private let task: Task<Void, Never>

    /// - Parameter interval: for tests; see ``Terms/renewalInterval``.
    init(of tag: NodeTag, in ledger: any Ledger, every interval: Duration = Terms.renewalInterval) {
        task = Task {
            while !Task.isCancelled {
                // If the life is over, the node's own renewal finds out.
                if case .fenced? = try? await ledger.renew(tag) { return }
                try? await Task.sleep(for: interval)
            }
        }
    }

    func stop() { task.cancel() }

    deinit { task.cancel() }
}
