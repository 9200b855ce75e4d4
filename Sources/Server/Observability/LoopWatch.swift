import CoreMetrics
import NIOCore

/// A timer on the gateway's event loop that shows whether the loops run.
///
/// It measures how late it fires, which is how long everything else on the loop waits, and asks the media loop for a sign of
/// life. Used only on the gateway's loop.
final class LoopWatch {
    /// Often enough to notice stalls between two scrapes, and no load.
    static let period = TimeAmount.milliseconds(500)

    private let eventLoop: any EventLoop
    private let metrics: GatewayMetrics
    private let media: MediaPlane?

    init(eventLoop: any EventLoop, metrics: GatewayMetrics, media: MediaPlane?) {
        (self.eventLoop, self.metrics, self.media) = (eventLoop, metrics, media)
    }

    /// Starts the timer, which runs as long as the loop. Call once.
    func start() {
        let due = NIODeadline.now() + Self.period
        let watch = NIOLoopBound(self, eventLoop: eventLoop)
        eventLoop.scheduleTask(deadline: due) { watch.value.fired(due: due) }
    }

    private func fired(due: NIODeadline) {
        metrics.loopLag.recordNanoseconds(max(0, (NIODeadline.now() - due).nanoseconds))
        media?.askForSignOfLife()
        start()
    }
}
