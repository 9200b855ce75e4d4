import CoreMetrics
import DequeModule
import Metrics
import Synchronization

/// The spans that wait to be sent. It is bounded: when it is full, new spans are dropped and counted.
final class TraceQueue: Sendable {
    private let spans = Mutex<Deque<TraceSpan>>([])
    private let capacity: Int
    private let metrics = TraceMetrics()
    /// Yields when a whole batch waits.
    let wakeUps: AsyncStream<Void>
    private let wakeUp: AsyncStream<Void>.Continuation

    /// The maximum number of spans in one request.
    static let batchSize = 512

    init(capacity: Int) {
        self.capacity = capacity
        (wakeUps, wakeUp) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
    }

    /// Adds a span that has ended, or drops it if the queue is full.
    func add(_ span: TraceSpan) {
        let count = spans.withLock { spans -> Int? in
            guard spans.count < capacity else { return nil }
            spans.append(span)
            return spans.count
        }
        guard let count else { return metrics.count(.dropped, by: 1) }
        if count == min(Self.batchSize, capacity) { wake() }
    }

    /// Lets the exporter send what waits.
    func wake() { wakeUp.yield() }

    /// Removes and returns the oldest spans, at most ``batchSize``; none if the queue is empty.
    func takeBatch() -> [TraceSpan] {
        spans.withLock { spans in
            let batch = Array(spans.prefix(Self.batchSize))
            spans.removeFirst(batch.count)
            return batch
        }
    }

    /// Puts a batch back that was not sent, because the server stops.
    func putBack(_ batch: [TraceSpan]) {
        spans.withLock { spans in
            for span in batch.reversed() { spans.prepend(span) }
        }
    }

    func count(_ outcome: TraceMetrics.Outcome, by amount: Int) { metrics.count(outcome, by: amount) }
}

/// Counts what became of the spans of traces.
struct TraceMetrics: Sendable {
    /// What became of a span.
    enum Outcome: String, CaseIterable {
        case exported
        /// The queue was full.
        case dropped
        /// The receiver could not be reached, or answered with an error, until the batch was given up.
        case failed
        /// The receiver accepted the request, but not these spans.
        case rejected
    }

    private static let label = "confab_trace_spans_total"
    /// The help text of each metric, keyed by metric name.
    static let help = [label: "Spans of traces by what became of them. Without tracing there are none."]

    private let counters = [Outcome: Counter](
        uniqueKeysWithValues: Outcome.allCases.map {
            ($0, Counter(label: Self.label, dimensions: [("outcome", $0.rawValue)]))
        })

    func count(_ outcome: Outcome, by amount: Int) {
        if amount > 0 { counters[outcome]?.increment(by: amount) }
    }
}
