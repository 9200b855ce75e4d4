import CoreMetrics
import NIOCore

/// A timer on the gateway's event loop that checks whether this loop is running.
///
/// It measures how late it fires, which is how long all other work on the loop waits. It also notifies the supervisor
/// that the loop runs: if it is stuck, the notifications stop and the supervisor restarts the server. Used only on the
/// gateway's loop. `MediaWatchdog` does the same for the media loops.
final class EventLoopMonitor {
    /// The maximum time between two checks: short enough to notice a stall between two scrapes of the metrics, and
    /// long enough to cause no noticeable load.
    private static let longestPeriod = TimeAmount.milliseconds(500)

    private let eventLoop: any EventLoop
    private let metrics: GatewayMetrics
    private let supervisor: Supervisor?
    private let period: TimeAmount

    init(eventLoop: any EventLoop, metrics: GatewayMetrics, supervisor: Supervisor?) {
        (self.eventLoop, self.metrics) = (eventLoop, metrics)
        self.supervisor = supervisor?.watchdogTimeout == nil ? nil : supervisor
        // Report at least twice per timeout, as sd_watchdog_enabled(3) recommends.
        let half = supervisor?.watchdogTimeout.map { TimeAmount.nanoseconds($0 / 2) }
        period = max(.milliseconds(1), min(Self.longestPeriod, half ?? Self.longestPeriod))
    }

    /// Starts the timer, which runs for as long as the loop. Call once.
    func start() {
        let due = NIODeadline.now() + period
        let watch = NIOLoopBound(self, eventLoop: eventLoop)
        eventLoop.scheduleTask(deadline: due) { watch.value.fired(due: due) }
    }

    private func fired(due: NIODeadline) {
        metrics.loopLag.recordNanoseconds(max(0, (NIODeadline.now() - due).nanoseconds))
        supervisor?.tell(.watchdog)
        start()
    }
}
