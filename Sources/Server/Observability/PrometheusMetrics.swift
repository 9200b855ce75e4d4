import Metrics
import Synchronization

/// A backend for swift-metrics that exports Prometheus's text format.
///
/// It owns every metric of the process. A family has at most ``maxSeries`` combinations of label values. Later combinations
/// share one series with the value `other`, because labels that depend on client input would otherwise grow without bound.
///
/// ```swift
/// let metrics = PrometheusMetrics(help: ["confab.sockets": "WebSockets open now."])
/// MetricsSystem.bootstrap(metrics)
/// Meter(label: "confab.sockets").increment()
/// metrics.exposition()  // "# HELP confab_sockets WebSockets open now.\n# TYPE confab_sockets gauge\nconfab_sockets
/// 1\n"
/// ```
public final class PrometheusMetrics: MetricsFactory {
    /// Maximum number of label combinations per family.
    public static let maxSeries = 200
    /// Maximum number of families, in case names are made from client input.
    public static let maxFamilies = 1000

    /// The `Content-Type` of the exposition.
    public static let contentType = "text/plain; version=0.0.4; charset=utf-8"

    /// Upper bounds of timer buckets in seconds, from a fast handler to a call that hangs.
    static let timerBuckets: [Double] = [
        0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60,
    ]
    /// Upper bounds of recorder buckets: powers of four, which suit bytes, queue lengths and counts.
    static let recorderBuckets: [Double] = (0...10).map { Double(1 << (2 * $0)) }

    /// All series with the same name.
    private struct Family {
        var kind: MetricKind
        var help: String?
        var series: [MetricLabels: Entry] = [:]
    }

    /// A series and its number of uses.
    private struct Entry {
        var series: any MetricSeries
        /// Number of metric objects with these labels. They share the series, which is removed with the last of them.
        var uses: Int
    }

    private let families = Mutex<[String: Family]>([:])
    private let help: [String: String]
    private let buckets: [String: [Double]]

    /// - Parameters:
    ///   - help: Help sentences, keyed by the metric's label in code.
    ///   - buckets: Upper bounds of histograms, keyed by label. They must be ascending, and are in seconds for
    ///     timers.
    public init(help: [String: String] = [:], buckets: [String: [Double]] = [:]) {
        self.help = help
        self.buckets = buckets
    }

    public func makeCounter(label: String, dimensions: [(String, String)]) -> any CounterHandler {
        series(label, .counter, dimensions) { CounterSeries(family: $0, labels: $1) } ?? NOOPMetricsHandler.instance
    }

    public func makeFloatingPointCounter(
        label: String, dimensions: [(String, String)]
    ) -> any FloatingPointCounterHandler {
        series(label, .floatingPointCounter, dimensions) { FloatingPointCounterSeries(family: $0, labels: $1) }
            ?? IgnoredFloatingPointCounter.instance
    }

    public func makeMeter(label: String, dimensions: [(String, String)]) -> any MeterHandler {
        series(label, .gauge, dimensions) { GaugeSeries(family: $0, labels: $1) } ?? NOOPMetricsHandler.instance
    }

    public func makeRecorder(label: String, dimensions: [(String, String)], aggregate: Bool) -> any RecorderHandler {
        guard aggregate else {
            return series(label, .gauge, dimensions) { GaugeSeries(family: $0, labels: $1) }
                ?? NOOPMetricsHandler.instance
        }
        let bounds = buckets[label] ?? Self.recorderBuckets
        return series(label, .histogram, dimensions) { HistogramSeries(family: $0, labels: $1, bounds: bounds) }
            ?? NOOPMetricsHandler.instance
    }

    public func makeTimer(label: String, dimensions: [(String, String)]) -> any TimerHandler {
        let bounds = buckets[label] ?? Self.timerBuckets
        return series(label, .timer, dimensions) { HistogramSeries(family: $0, labels: $1, bounds: bounds) }
            ?? NOOPMetricsHandler.instance
    }

    public func destroyCounter(_ handler: any CounterHandler) { remove(handler) }
    public func destroyFloatingPointCounter(_ handler: any FloatingPointCounterHandler) { remove(handler) }
    public func destroyMeter(_ handler: any MeterHandler) { remove(handler) }
    public func destroyRecorder(_ handler: any RecorderHandler) { remove(handler) }
    public func destroyTimer(_ handler: any TimerHandler) { remove(handler) }

    /// Returns all metrics in Prometheus's text format, in a fixed order.
    public func exposition() -> String {
        let sorted = families.withLock { families in
            families.sorted { $0.key < $1.key }.map { name, family in
                (name, family.kind, family.help, family.series.sorted { $0.key < $1.key }.map(\.value.series))
            }
        }
        var text = ""
        for (name, kind, help, series) in sorted {
            if let help { text += "# HELP \(name) \(MetricText.escapedHelp(help))\n" }
            text += "# TYPE \(name) \(kind.exposedType)\n"
            for one in series { one.write(to: &text) }
        }
        return text
    }

    /// Returns the series with these labels, creating it if needed. Returns nil if the name belongs to another kind of metric
    /// or there are too many families: such a metric is ignored, because metrics must never stop the server.
    private func series<Series: MetricSeries>(
        _ label: String, _ kind: MetricKind, _ dimensions: [(String, String)],
        make: (String, MetricLabels) -> Series
    ) -> Series? {
        let name = MetricText.name(label, kind: kind)
        var labels = MetricLabels(dimensions)
        return families.withLock { families in
            if families[name] == nil, families.count >= Self.maxFamilies { return nil }
            var family = families[name] ?? Family(kind: kind, help: help[label])
            guard family.kind == kind else { return nil }
            if family.series[labels] == nil, family.series.count >= Self.maxSeries { labels = labels.collapsed }
            var entry = family.series[labels] ?? Entry(series: make(name, labels), uses: 0)
            entry.uses += 1
            family.series[labels] = entry
            families[name] = family
            return entry.series as? Series
        }
    }

    private func remove(_ handler: AnyObject) {
        guard let series = handler as? any MetricSeries else { return }
        families.withLock { families in
            guard var family = families[series.family], var entry = family.series[series.labels],
                entry.series === series
            else { return }
            entry.uses -= 1
            family.series[series.labels] = entry.uses > 0 ? entry : nil
            families[series.family] = family.series.isEmpty ? nil : family
        }
    }
}

/// A counter that ignores its increments. It replaces a counter that cannot be exported.
private final class IgnoredFloatingPointCounter: FloatingPointCounterHandler {
    static let instance = IgnoredFloatingPointCounter()
    func increment(by: Double) {}
    func reset() {}
}
