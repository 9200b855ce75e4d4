import CoreMetrics
import Metrics

/// The metrics of webhooks.
struct WebhookMetrics: Sendable {
    /// What happened to an event, or to an attempt to deliver it.
    enum Outcome: String, CaseIterable {
        case delivered
        /// An attempt failed. The event is sent again, unless it is given up.
        case failed
        /// The event was removed because it is too old.
        case givenUp = "given_up"
        /// The event was not stored, because too many were waiting.
        case refused
    }

    private static let label = "confab_webhooks_total"
    private static let waitingLabel = "confab_webhooks_waiting"
    /// Help texts, keyed by metric name.
    static let help = [
        label: "Events for webhooks by outcome. Attempts that failed are counted one by one.",
        waitingLabel: "Events in the database that wait for a webhook.",
    ]

    private let counters = [Outcome: Counter](
        uniqueKeysWithValues: Outcome.allCases.map {
            ($0, Counter(label: Self.label, dimensions: [("outcome", $0.rawValue)]))
        })
    private let waiting = Gauge(label: Self.waitingLabel)

    func count(_ outcome: Outcome, by amount: Int = 1) { counters[outcome]?.increment(by: amount) }
    func record(waiting count: Int) { waiting.record(count) }
}
