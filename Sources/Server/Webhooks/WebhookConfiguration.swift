extension ConfabConfiguration {
    /// Settings for webhooks. The URL and the secret of a webhook belong to its project.
    public struct Webhooks: Sendable, Equatable {
        public var allowPrivateAddresses = false
        public var authorities: String?
        public var timeout: Duration = .seconds(10)
        public var concurrency = 32
        public var queue = StorageLimits.webhooksPerProject
        public var giveUpAfter: Duration = .seconds(86400)
        public init() {}
    }
}

extension Setting {
    static let webhooks: [Setting] = [
        Setting(
            "webhooks.allowPrivateAddresses", \.webhooks.allowPrivateAddresses, .boolean,
            "Allow webhooks on this machine and on private networks.",
            "Use it only if you trust everyone who can set the webhook of a project: it lets them make this server "
                + "connect to internal addresses."),
        Setting(
            "webhooks.authorities", \.webhooks.authorities, .optional(.path),
            "PEM file of CA certificates to trust for webhooks, in addition to the system's."),
        Setting(
            "webhooks.timeout", \.webhooks.timeout, .duration(.milliseconds(10) ... .seconds(300)),
            "How long a webhook may take to answer.", "The server then sends the event again later."),
        Setting(
            "webhooks.concurrency", \.webhooks.concurrency, .integer(1...1000),
            "Maximum concurrent requests to webhooks.",
            "At most a quarter of them go to the same project, and one at a time to a project whose last request failed. "
                + "At most half of them go to projects whose last request failed. A quarter is only for projects that "
                + "have no request and whose last answer took at most a second."),
        Setting(
            "webhooks.queue", \.webhooks.queue, .integer(1...10_000_000),
            "Maximum events of one project that are waiting in the database.",
            "No further sessions, connections and streams are then reported. The end of those that were reported is. "
                + "The same applies if the waiting events of one project take more than 1 KiB for each of this number, "
                + "or if the disk has less free space than storage.lowSpace. All projects together have four times as "
                + "much, and 8 KiB for each of limits.connectionsPerProject; from this, space is also taken for the ends "
                + "of what was reported."),
        Setting(
            "webhooks.giveUpAfter", \.webhooks.giveUpAfter, .duration(.seconds(1) ... .seconds(30 * 86400)),
            "How long the server tries to deliver an event.",
            "Events are given up only after the server has run for an hour without a change of the clock."),
    ]
}
