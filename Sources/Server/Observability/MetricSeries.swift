import Metrics
import Synchronization

/// A time series: a metric with one combination of label values.
protocol MetricSeries: AnyObject, Sendable {
    var family: String { get }
    var labels: MetricLabels { get }
    /// Appends the series in Prometheus's text format.
    func write(to text: inout String)
}

/// The type of a metric in Prometheus's format.
enum MetricKind: Equatable {
    case counter, floatingPointCounter, gauge, histogram, timer

    var exposedType: String {
        switch self {
        case .counter, .floatingPointCounter: "counter"
        case .gauge: "gauge"
        case .histogram, .timer: "histogram"
        }
    }
}

/// A counter of whole numbers.
final class CounterSeries: MetricSeries, CounterHandler {
    let family: String
    let labels: MetricLabels
    private let value = Atomic<Int64>(0)

    init(family: String, labels: MetricLabels) {
        self.family = family
        self.labels = labels
    }

    func increment(by amount: Int64) {
        // Ignore negative amounts: Prometheus treats a decrease as a restart of the process.
        if amount > 0 { value.wrappingAdd(amount, ordering: .relaxed) }
    }

    func reset() { value.store(0, ordering: .relaxed) }

    func write(to text: inout String) { text += "\(family)\(labels.text) \(value.load(ordering: .relaxed))\n" }
}

/// A counter of fractions, such as seconds.
final class FloatingPointCounterSeries: MetricSeries, FloatingPointCounterHandler {
    let family: String
    let labels: MetricLabels
    private let value = Mutex(0.0)

    init(family: String, labels: MetricLabels) {
        self.family = family
        self.labels = labels
    }

    func increment(by amount: Double) {
        if amount > 0, amount.isFinite { value.withLock { $0 += amount } }
    }

    func reset() { value.withLock { $0 = 0 } }

    func write(to text: inout String) {
        text += "\(family)\(labels.text) \(MetricText.number(value.withLock { $0 }))\n"
    }
}

/// A meter, or a recorder that keeps only the last value.
final class GaugeSeries: MetricSeries, MeterHandler, RecorderHandler {
    let family: String
    let labels: MetricLabels
    private let value = Mutex(0.0)

    init(family: String, labels: MetricLabels) {
        self.family = family
        self.labels = labels
    }

    func set(_ new: Int64) { set(Double(new)) }
    func set(_ new: Double) { value.withLock { $0 = new } }
    func record(_ new: Int64) { set(Double(new)) }
    func record(_ new: Double) { set(new) }
    func increment(by amount: Double) { value.withLock { $0 += amount } }
    func decrement(by amount: Double) { value.withLock { $0 -= amount } }

    func write(to text: inout String) {
        text += "\(family)\(labels.text) \(MetricText.number(value.withLock { $0 }))\n"
    }
}

/// A histogram with fixed bucket bounds. Timers record seconds.
final class HistogramSeries: MetricSeries, RecorderHandler, TimerHandler {
    let family: String
    let labels: MetricLabels
    private let bounds: [Double]

    /// The recorded values. One lock protects them, so that counts and sum always agree.
    private struct State {
        /// Count per bucket, not cumulative. The additional last bucket is for values above all bounds.
        var counts: [Int64]
        var sum = 0.0
    }

    private let state: Mutex<State>

    init(family: String, labels: MetricLabels, bounds: [Double]) {
        self.family = family
        self.labels = labels
        self.bounds = bounds.sorted()
        state = Mutex(State(counts: Array(repeating: 0, count: bounds.count + 1)))
    }

    func record(_ value: Int64) { record(Double(value)) }

    func record(_ value: Double) {
        guard !value.isNaN else { return }
        let bucket = bounds.firstIndex { value <= $0 } ?? bounds.count
        state.withLock { state in
            state.counts[bucket] += 1
            state.sum += value
        }
    }

    func recordNanoseconds(_ duration: Int64) { record(Double(duration) / 1e9) }

    func write(to text: inout String) {
        let (counts, sum) = state.withLock { ($0.counts, $0.sum) }
        var total: Int64 = 0
        for (index, count) in counts.enumerated() {
            total += count
            let bound = index < bounds.count ? MetricText.number(bounds[index]) : "+Inf"
            text += "\(family)_bucket\(labels.text(adding: ("le", bound))) \(total)\n"
        }
        text += "\(family)_sum\(labels.text) \(MetricText.number(sum))\n\(family)_count\(labels.text) \(total)\n"
    }
}

/// Label names and values, sorted by name and formatted once.
struct MetricLabels: Hashable, Comparable {
    /// Maximum length of a label value. Longer values are truncated, because they were probably not meant as labels.
    private static let maxValueLength = 128

    private let pairs: [(name: String, value: String)]
    /// The labels as `{name="value",…}`, or empty text without labels.
    let text: String

    init(_ dimensions: [(String, String)]) {
        var values: [String: String] = [:]
        for (name, value) in dimensions {
            let name = MetricText.labelName(name)
            // Keep the first of duplicate labels. Prometheus would reject the whole response because of a duplicate.
            if values[name] == nil { values[name] = String(value.prefix(Self.maxValueLength)) }
        }
        self.init(pairs: values.sorted { $0.key < $1.key }.map { (name: $0.key, value: $0.value) })
    }

    private init(pairs: [(name: String, value: String)]) {
        self.pairs = pairs
        text = Self.text(pairs)
    }

    /// Labels with the same names, but with `other` as every value.
    var collapsed: MetricLabels { MetricLabels(pairs: pairs.map { (name: $0.name, value: "other") }) }

    func text(adding pair: (String, String)) -> String { Self.text(pairs + [(name: pair.0, value: pair.1)]) }

    private static func text(_ pairs: [(name: String, value: String)]) -> String {
        if pairs.isEmpty { return "" }
        return "{" + pairs.map { "\($0.name)=\"\(MetricText.escapedValue($0.value))\"" }.joined(separator: ",") + "}"
    }

    static func == (left: MetricLabels, right: MetricLabels) -> Bool { left.text == right.text }
    static func < (left: MetricLabels, right: MetricLabels) -> Bool { left.text < right.text }
    func hash(into hasher: inout Hasher) { hasher.combine(text) }
}

/// Formats names, text and numbers for Prometheus's text format 0.0.4.
enum MetricText {
    /// Returns the metric's name: a counter `confab.frames` becomes `confab_frames_total`, and timers end in `_seconds`.
    static func name(_ label: String, kind: MetricKind) -> String {
        let name = sanitized(label, allowsColon: true)
        switch kind {
        case .counter, .floatingPointCounter: return name.hasSuffix("_total") ? name : name + "_total"
        case .timer: return name.hasSuffix("_seconds") ? name : name + "_seconds"
        case .gauge, .histogram: return name
        }
    }

    /// Returns the label's name. Adds `exported_` to reserved names: Prometheus reserves `le` for histograms and a
    /// leading `__` for itself.
    static func labelName(_ name: String) -> String {
        let name = sanitized(name, allowsColon: false)
        return name == "le" || name.hasPrefix("__") ? "exported_" + name : name
    }

    static func escapedHelp(_ text: String) -> String { escaped(text, alsoQuotes: false) }
    static func escapedValue(_ text: String) -> String { escaped(text, alsoQuotes: true) }

    /// Returns the number as text, without a fraction if it is whole.
    static func number(_ value: Double) -> String {
        if value.isNaN { return "NaN" }
        if value.isInfinite { return value < 0 ? "-Inf" : "+Inf" }
        return Int64(exactly: value).map(String.init) ?? "\(value)"
    }

    private static func sanitized(_ text: String, allowsColon: Bool) -> String {
        var result = ""
        for byte in text.utf8 {
            switch byte {
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                UInt8(ascii: "0")...UInt8(ascii: "9"):
                result.unicodeScalars.append(Unicode.Scalar(byte))
            case UInt8(ascii: ":") where allowsColon: result += ":"
            default: result += "_"
            }
        }
        return result.first.map { $0.isNumber } ?? true ? "_" + result : result
    }

    private static func escaped(_ text: String, alsoQuotes: Bool) -> String {
        var result = ""
        for scalar in text.unicodeScalars {
            switch scalar {
            case "\\": result += "\\\\"
            case "\n": result += "\\n"
            case "\"" where alsoQuotes: result += "\\\""
            default: result.unicodeScalars.append(scalar)
            }
        }
        return result
    }
}
