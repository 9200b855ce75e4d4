import Cluster
import Logging
import NIOCore
import Signaling
import Wire

// Taking this server out of service, and why it holds back new clients.
extension Gateway {
    /// Why no new clients should come to this server, for `GET /ready`.
    var holds: Set<Readiness.Hold> {
        var holds = clusterHolds()
        if isDraining || !nodeDrain.isServing { holds.insert(.draining) }
        if isFull { holds.insert(.full) }
        return holds
    }

    /// What this server does. A cluster knows more (``ClusterNode``).
    var condition: NodeCondition { isDraining ? .stopping : requestedCondition }

    /// The same, apart from a shutdown of the process: what an operator has requested.
    var requestedCondition: NodeCondition {
        switch nodeDrain.state {
        case .serving: .serving
        case .draining: .draining
        case .drained: .drained
        }
    }

    /// The time until everyone is disconnected; nil if this server does not drain.
    var drainLeft: Duration? { nodeDrain.nextTimeout.map { max($0 - runner.now, .zero) } }

    /// Starts to drain at an operator's request, or puts the server into service again.
    ///
    /// - Returns: false if it is in that state already.
    func change(to state: NodeRecord.State) -> Bool {
        let isDraining = state == .draining
        guard isDraining == nodeDrain.isServing else { return false }
        setDraining(isDraining)
        logger.notice(isDraining ? "An operator drains this server" : "Back in service")
        return true
    }

    private func setDraining(_ isDraining: Bool) {
        if isDraining {
            nodeDrain.begin(grace: configuration.cluster.drainGrace, now: runner.now)
        } else {
            nodeDrain.end()
        }
        scheduleDrainEnd()
    }

    private func scheduleDrainEnd() {
        drainTimer?.cancel()
        drainTimer = nil
        guard let due = nodeDrain.nextTimeout else { return }
        let gateway = NIOLoopBound(self, eventLoop: eventLoop)
        drainTimer = eventLoop.scheduleTask(in: .nanoseconds(max(due - runner.now, .milliseconds(1)))) {
            gateway.value.handleDrainTimeout()
        }
    }

    private func handleDrainTimeout() {
        guard nodeDrain.handleTimeout(now: runner.now) else { return scheduleDrainEnd() }
        // Notify the rules before clients reconnect, which takes only milliseconds. In a cluster, the rules then refuse these clients, so
        // that they connect to other nodes.
        runner.submit(.service(requestedCondition))
        let connections = registeredConnections
        logger.notice("Drained: disconnecting everyone", metadata: ["connections": "\(connections.count)"])
        for connection in connections { connection.expel(.outOfService, .serviceRestart) }
    }
}

extension WireError {
    fileprivate static let outOfService = WireError(
        .draining, "This server is being taken out of service. Connect again.", retryable: true)
}
