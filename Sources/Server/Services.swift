import Logging
import NIOCore
import ServiceLifecycle
import Signaling
import Wire

/// Drains the gateway on shutdown: `/health` returns 503 and every client receives close code 1001, or 1012 if
/// this node of a cluster was declared dead. The port closes
/// after all clients have disconnected, or after `shutdown.closeTimeout`.
///
/// A client that does not answer the close frame delays the shutdown by at most `shutdown.closeTimeout`: the port must
/// be free for the next server, to which all clients reconnect. Storing pending changes may delay it further, by up to
/// `shutdown.grace` in total.
struct Drain: Service {
    let gateway: NIOLoopBound<Gateway>
    let live: LiveConfiguration
    let supervisor: Supervisor?
    /// Whether this node of a cluster was declared dead. The process then continues with another life.
    let fence: FenceSignal
    /// Whether HTTP requests end now too. Otherwise ``BroadcasterStop`` ends them, because viewers load the end of broadcasts.
    var closesConnections = true
    let logger: Logger

    func run() async throws {
        try await gracefulShutdown()
        if !fence.isFenced { supervisor?.tell(.stopping) }
        let (gateway, shutdown) = (gateway, live.current.shutdown)
        let count = try await gateway.eventLoop.submit {
            let count = gateway.value.runner.socketCount
            // The clients of a life that is over come back at once, to another node or to this one's next life.
            gateway.value.drain(fence.isFenced ? .serviceRestart : .goingAway)
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
            // Nothing of a life that is over can be stored.
            if isSettled || fence.isFenced, open == 0 || ContinuousClock.now >= start + shutdown.closeTimeout { break }
            try await Task.sleep(for: .milliseconds(10))
        }
        guard closesConnections else { return }
        // Close the remaining connections after a delay: the port closes now, but HTTP requests may take a moment to
        // finish.
        try await gateway.eventLoop.submit { gateway.value.closeAll(after: shutdown.closeTimeout) }.get()
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
