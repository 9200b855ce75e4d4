import Metrics

/// How many pushes there were, by the kind of service and by what became of them.
struct PushMetrics: Sendable {
    static let label = "confab_pushes_total"
    /// Help texts for the exposition.
    static let help = [label: "Pushes to sleeping devices, by kind of service and by what became of them."]

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

    /// - Parameter endpoint: nil when it did not come so far.
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
