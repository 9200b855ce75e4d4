import Metrics

/// Counts pushes by kind of service and outcome.
struct PushMetrics: Sendable {
    static let label = "confab_pushes_total"
    /// The help text of each metric in the Prometheus output, keyed by the metric's name.
    static let help = [label: "Push notifications by kind of service and outcome."]

    private let counters: [String: Counter]

    init() {
        var counters: [String: Counter] = [:]
        for kind in ["web", "apns", "any"] {
            for outcome in PushOutcome.allCases {
                counters[kind + outcome.rawValue] = Counter(
                    label: Self.label, dimensions: [("kind", kind), ("outcome", outcome.rawValue)])
            }
        }
        self.counters = counters
    }

    /// Counts one outcome.
    ///
    /// - Parameter endpoint: the endpoint that the push was for; nil if the notice ended before any endpoint was known.
    func count(_ outcome: PushOutcome, to endpoint: PushEndpoint?) {
        let kind =
            switch endpoint?.kind {
            case .web: "web"
            case .apns: "apns"
            case nil: "any"
            }
        counters[kind + outcome.rawValue]?.increment()
    }
}
