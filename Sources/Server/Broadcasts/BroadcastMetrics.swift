import Metrics
import Wire

/// What the broadcasts do now, for the metrics.
struct BroadcastFigures: Equatable, Sendable {
    /// Broadcasts that are being composed.
    var running = 0
    /// How late the slowest compositor is.
    var behind = Duration.zero
    /// Requests of viewers that wait.
    var held = 0
    /// Frames that compositors did not get so far, because they were too slow.
    var dropped = 0
}

/// The metrics of compositors and viewers, exported on each scrape.
struct BroadcastMetrics: Sendable {
    private static let behindLabel = "confab_broadcast_behind_seconds"
    private static let heldLabel = "confab_hls_held_requests"
    private static let droppedLabel = "confab_broadcast_dropped_frames"

    /// The help text of each metric, keyed by metric name.
    static let help = [
        behindLabel: "How late the slowest compositor is, in seconds.",
        heldLabel: "Requests of viewers that wait for the next part of a broadcast.",
        droppedLabel + "_total": "Video frames missing in broadcasts, because their compositor was too slow.",
    ]

    private let behind = Gauge(label: behindLabel)
    private let held = Gauge(label: heldLabel)
    private let dropped = CounterBridge(droppedLabel, isNew: true)

    func record(_ figures: BroadcastFigures) {
        behind.record(Double(figures.behind.wholeMilliseconds) / 1_000)
        held.record(figures.held)
        dropped.record(UInt64(clamping: figures.dropped))
    }
}
