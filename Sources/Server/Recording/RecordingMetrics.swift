import Metrics
import Synchronization

/// The recorder's metrics. The recorder counts, and this type exports the figures on each scrape.
struct RecordingMetrics: Sendable {
    private static let archivesLabel = "confab_recordings"
    private static let streamsLabel = "confab_recording_streams"
    private static let bytesLabel = "confab_recording_bytes"

    /// The help text of each metric, keyed by metric name.
    static let help = [
        archivesLabel: "Archives that are being recorded.",
        streamsLabel: "Streams that are being recorded. A stream counts for each of its archives.",
        bytesLabel + "_total": "Bytes written to recordings.",
    ]

    private let archives = Gauge(label: archivesLabel)
    private let streams = Gauge(label: streamsLabel)
    private let bytes = CounterBridge(bytesLabel, isNew: true)

    func record(_ counters: RecorderCounters) {
        archives.record(counters.archives.load(ordering: .relaxed))
        streams.record(counters.streams.load(ordering: .relaxed))
        bytes.record(UInt64(clamping: counters.bytes.load(ordering: .relaxed)))
    }
}
