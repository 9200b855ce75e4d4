import Metrics
import Synchronization

/// Exports a total as a counter metric. The total is counted elsewhere, and `record` increments the counter by the
/// growth since the previous call.
final class CounterBridge: Sendable {
    private let counter: Counter
    private let old: Gauge?
    private let last = Mutex(UInt64(0))

    /// - Parameter isNew: true for a metric that always had the suffix `_total`. An older metric is also exported
    ///   under its old name, without the suffix, for compatibility.
    init(_ name: String, isNew: Bool = false, dimensions: [(String, String)] = []) {
        counter = Counter(label: name + "_total", dimensions: dimensions)
        old = isNew ? nil : Gauge(label: name)
    }

    func record(_ total: UInt64) {
        old?.record(total)
        let added = last.withLock { last in
            defer { last = max(last, total) }
            return total > last ? total - last : 0
        }
        counter.increment(by: Int64(clamping: added))
    }
}
