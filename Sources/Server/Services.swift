import Logging
import NIOCore
import ServiceLifecycle
import Signaling
import Wire

/// Drains the gateway on shutdown: `/health` returns 503 and every client receives close code 1001. The port closes
/// after all clients have disconnected, or after `shutdown.closeTimeout`.
///
/// A client that does not answer the close frame delays the shutdown by at most `shutdown.closeTimeout`: the port must
/// be free for the next server, to which all clients reconnect. Storing pending changes may delay it further, by up to
/// `shutdown.grace` in total.
struct Drain: Service {
    let gateway: NIOLoopBound<Gateway>
    let live: LiveConfiguration
    let supervisor: Supervisor?
    let logger: Logger

    func run() async throws {
        try await gracefulShutdown()
        supervisor?.tell(.stopping)
        let (gateway, shutdown) = (gateway, live.current.shutdown)
        let count = try await gateway.eventLoop.submit {
            let count = gateway.value.runner.socketCount
            gateway.value.drain()
            return count
        }.get()
        logger.info("Stopping", metadata: ["sockets": "\(count)"])
        let start = ContinuousClock.now
        while ContinuousClock.now < start + shutdown.grace {
            // Wait until the changes made before the stop are stored, and until the clients have disconnected or
            // `closeTimeout` has passed.
            let (open, isSettled) = try await gateway.eventLoop.submit {
                (gateway.value.openConnections, gateway.value.runner.isSettled)
            }.get()
            if isSettled, open == 0 || ContinuousClock.now >= start + shutdown.closeTimeout { break }
            try await Task.sleep(for: .milliseconds(10))
        }
        // Close the remaining connections after a delay: the port closes now, but HTTP requests may take a moment to
        // finish.
        try await gateway.eventLoop.submit { gateway.value.closeAll(after: shutdown.closeTimeout) }.get()
    }
}

/// Polls storage for bans that `confab ban`, a separate process, added or removed.
struct BanWatch: Service {
    let gateway: NIOLoopBound<Gateway>
    let storage: any Storage
    let live: LiveConfiguration
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
                    logger.error("Could not read the bans", metadata: ["error": "\(error)"])
                }
                try? await Task.sleep(for: live.current.storage.pollInterval)
            }
        }
    }

    private func reload() async throws {
        let gateway = gateway
        // Read bans that have ended too. Whether a ban has ended is decided when it is applied, because the clock may
        // be corrected later.
        let bans = try await storage.bans(at: .distantPast)
        try await gateway.eventLoop.submit { gateway.value.update(bans: bans) }.get()
    }
}

/// Deletes records older than the configured retention, once per hour, while the clock is confirmed (``WallClockJudge``).
struct Retention: Service {
    let storage: any Storage
    let clock: ServerClock
    let live: LiveConfiguration
    let logger: Logger

    /// How often to check whether the clock is confirmed, while it is not.
    private static let pause: Duration = .seconds(60)

    func run() async throws {
        await cancelWhenGracefulShutdown {
            while !Task.isCancelled {
                let pause = await deleteOld() ? .seconds(3600) : Self.pause
                try? await Task.sleep(for: pause)
            }
        }
    }

    /// Deletes the records of all kinds whose retention time has passed.
    ///
    /// - Returns: false if the clock is not confirmed, so that nothing was deleted; otherwise true, even if a deletion
    ///   failed.
    func deleteOld() async -> Bool {
        guard let now = clock.moment.confirmedWall else { return false }
        let retention = live.current.retention
        await delete(.reports, "reports", olderThan: now - retention.reports)
        await delete(.calls, "calls", olderThan: now - retention.calls)
        await delete(.audit, "audit entries", olderThan: now - retention.audit)
        await delete(.pushEndpoints, "push endpoints", olderThan: now - retention.pushEndpoints)
        await delete(.profiles, "profiles", olderThan: now - retention.profiles)
        await delete(.bans, "bans that have ended", olderThan: now)
        await delete(.revokedTokens, "revoked tokens that have expired", olderThan: now)
        return true
    }

    private func delete(_ records: OldRecords, _ what: String, olderThan moment: Timestamp) async {
        do {
            let count = try await storage.deleteOld(records, olderThan: moment)
            if count > 0 { logger.info("Old \(what) deleted", metadata: ["count": "\(count)"]) }
        } catch {
            logger.error("Could not delete old \(what)", metadata: ["error": "\(error)"])
        }
    }
}

/// Regularly compares the system's clock with the server's clock, and logs jumps for the operator.
struct ClockWatch: Service {
    let clock: ServerClock
    let logger: Logger

    func run() async throws {
        await cancelWhenGracefulShutdown {
            while !Task.isCancelled {
                // Use the clock that stops while the machine sleeps, as `WallClockJudge` does.
                try? await Task.sleep(for: WallClockJudge.lookInterval, clock: .suspending)
                if let event = clock.look() { report(event) }
            }
        }
    }

    private func report(_ event: WallClockJudge.Event) {
        switch event {
        case .jumped(let difference):
            logger.warning(
                """
                The system's clock has jumped. Timers are not affected. Tokens and bans use the old time until the \
                new one has lasted for \(WallClockJudge.adoptionTime.roundedText).
                """, metadata: Self.metadata(difference))
        case .returned: logger.notice("The system's clock again agrees with the server's clock.")
        case .adopted(let difference):
            logger.notice(
                """
                The server now uses the new time of the system's clock. Deletion of old data pauses for the next \
                \(WallClockJudge.confirmationTime.roundedText).
                """, metadata: Self.metadata(difference))
        }
    }

    private static func metadata(_ difference: Duration) -> Logger.Metadata {
        ["seconds": "\(difference.components.seconds)"]
    }
}
