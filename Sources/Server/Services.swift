import Logging
import NIOCore
import ServiceLifecycle
import Signaling
import Wire

/// Drains the gateway on shutdown: `/health` returns 503 and every client receives 1001. The port closes when all of them
/// have disconnected, or when the grace period is over.
struct Drain: Service {
    let gateway: NIOLoopBound<Gateway>
    let configuration: ConfabConfiguration
    let supervisor: Supervisor?
    let logger: Logger

    func run() async throws {
        try await gracefulShutdown()
        supervisor?.tell(.stopping)
        let gateway = gateway
        let count = try await gateway.eventLoop.submit {
            let count = gateway.value.runner.socketCount
            gateway.value.drain()
            return count
        }.get()
        logger.info("Stopping", metadata: ["sockets": "\(count)"])
        let end = ContinuousClock.now + configuration.shutdown.grace
        while ContinuousClock.now < end {
            // What was decided before the stop has to be stored too.
            let isDone = try await gateway.eventLoop.submit {
                gateway.value.openConnections == 0 && gateway.value.runner.isSettled
            }.get()
            if isDone { break }
            try await Task.sleep(for: .milliseconds(20))
        }
    }
}

/// Polls storage for bans that `confab ban`, a separate process, added or removed.
struct BanWatch: Service {
    let gateway: NIOLoopBound<Gateway>
    let storage: any Storage
    let configuration: ConfabConfiguration
    let logger: Logger

    func run() async throws {
        await cancelWhenGracefulShutdown {
            var counter: Int64?
            while !Task.isCancelled {
                do {
                    let now = try await storage.changeCounter()
                    if now != counter { try await reload() }
                    counter = now
                } catch {
                    logger.error("Reading the bans failed", metadata: ["error": "\(error)"])
                }
                try? await Task.sleep(for: configuration.storage.pollInterval)
            }
        }
    }

    private func reload() async throws {
        let gateway = gateway
        let now = try await gateway.eventLoop.submit { gateway.value.runner.now }.get()
        let bans = try await storage.bans(at: now)
        try await gateway.eventLoop.submit { gateway.value.update(bans: bans) }.get()
    }
}

/// Deletes records older than the configured retention, once per hour.
struct Retention: Service {
    let storage: any Storage
    let clock: ServerClock
    let configuration: ConfabConfiguration
    let logger: Logger

    func run() async throws {
        await cancelWhenGracefulShutdown {
            while !Task.isCancelled {
                let now = clock.now
                let retention = configuration.retention
                await delete(.reports, "reports", olderThan: now - retention.reports)
                await delete(.calls, "calls", olderThan: now - retention.calls)
                await delete(.audit, "audit entries", olderThan: now - retention.audit)
                await delete(.pushEndpoints, "push endpoints", olderThan: now - retention.pushEndpoints)
                await delete(.profiles, "profiles", olderThan: now - retention.profiles)
                try? await Task.sleep(for: .seconds(3600))
            }
        }
    }

    private func delete(_ records: OldRecords, _ what: String, olderThan moment: Timestamp) async {
        do {
            let count = try await storage.deleteOld(records, olderThan: moment)
            if count > 0 { logger.info("Old \(what) deleted", metadata: ["count": "\(count)"]) }
        } catch {
            logger.error("Deleting old \(what) failed", metadata: ["error": "\(error)"])
        }
    }
}
