import Logging
import NIOCore
import ServiceLifecycle
import Signaling
import Wire

/// Makes what composes broadcasts, which reports its events with the function that it gets. Returns nil if the server does not
/// broadcast.
typealias BroadcasterFactory =
    @Sendable (_ report: @escaping @Sendable (BroadcastReport) -> Void) -> (any SessionBroadcaster)?

/// What a server needs for broadcasts, besides its rules.
struct BroadcastParts: Sendable {
    let storage: any Storage
    /// The name of this node of a cluster; empty without a cluster.
    let node: String
    let logger: Logger

    /// Ends the broadcasts that were running when the server stopped, in storage, then makes broadcasts possible.
    ///
    /// - Returns: the broadcaster; nil if this server does not broadcast.
    func start(
        on gateway: NIOLoopBound<Gateway>, _ make: BroadcasterFactory
    ) async throws -> (any SessionBroadcaster)? {
        let running = try await storage.runningBroadcasts(of: node)
        try await gateway.eventLoop.submit {
            for broadcast in running { gateway.value.runner.submit(.restoredBroadcast(broadcast)) }
        }.get()
        if !running.isEmpty { logger.info("Interrupted broadcasts ended", metadata: ["count": "\(running.count)"]) }
        let broadcaster = make { [logger] report in
            if case .failed(let broadcast, let failure) = report {
                logger.error(
                    "A broadcast has failed",
                    metadata: ["broadcast": "\(broadcast)", "reason": "\(failure.rawValue)"])
            }
            gateway.eventLoop.execute { gateway.value.runner.submit(.broadcast(report)) }
        }
        guard let broadcaster else { return nil }
        try await gateway.eventLoop.submit { gateway.value.broadcast(with: broadcaster) }.get()
        return broadcaster
    }
}

extension Gateway {
    /// Makes broadcasts of sessions possible.
    fileprivate func broadcast(with broadcaster: any SessionBroadcaster) {
        runner.broadcaster = broadcaster
        var settings = runner.hubSettings
        settings.rules.broadcastsSessions = true
        runner.submit(.settingsChanged(settings))
    }
}

/// Ends all broadcasts when the server stops, and waits until their ends are stored and viewers have loaded them. Then it closes all
/// connections, as ``Drain`` does on a server without broadcasts.
struct BroadcasterStop: Service {
    let broadcaster: any SessionBroadcaster
    let gateway: NIOLoopBound<Gateway>
    let live: LiveConfiguration
    /// Whether this node of a cluster was declared dead. Its next life begins when this one has ended, so nothing waits for viewers.
    let fence: FenceSignal

    func run() async throws {
        try await gracefulShutdown()
        await broadcaster.stop(waitsForViewers: !fence.isFenced)
        // What the broadcaster reported is handled before this.
        await withCheckedContinuation { done in
            gateway.eventLoop.execute {
                // The broadcaster keeps the gateway, because it reports to it.
                gateway.value.runner.broadcaster = nil
                gateway.value.runner.afterCommit { done.resume() }
            }
        }
        let delay = live.current.shutdown.closeTimeout
        try await gateway.eventLoop.submit { gateway.value.closeAll(after: delay) }.get()
    }
}
