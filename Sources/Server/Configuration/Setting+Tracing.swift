extension Setting {
    static let tracing: [Setting] = [
        Setting(
            "tracing.endpoint", \.tracing.endpoint,
            .optional(
                .webURL(
                    "an http:// or https:// URL without user name, query or fragment, such as http://127.0.0.1:4318",
                    allowsPath: true), empty: "no traces"),
            "URL of an OpenTelemetry collector that gets traces over OTLP/HTTP, without /v1/traces.",
            "Traces show how long the steps of a person's requests take. See docs/tracing.md."),
        Setting(
            "tracing.headers", \.tracing.headers,
            .optional(
                .secret(
                    "headers as name=value, separated by commas, such as x-api-key=abc",
                    where: ConfabConfiguration.Tracing.isHeaderList), empty: "no headers"),
            "Headers for the collector, such as an API key.",
            "Prefer the environment variable CONFAB_TRACING_HEADERS to a value here.", isSecret: true),
        Setting(
            "tracing.serviceName", \.tracing.serviceName, .word("a name without spaces"),
            "Name under which the collector shows this server (service.name)."),
        Setting(
            "tracing.ratio", \.tracing.ratio, .ratio, "Share of traces to record.",
            "0.1 records one trace in ten. It also applies to traces that a client has begun, unless tracing.trustParents is "
                + "true.", applies: .atReload),
        Setting(
            "tracing.acceptParents", \.tracing.acceptParents, .boolean,
            "Whether requests continue the trace that their header traceparent names.",
            "Any client can send it, and thereby choose the id of its trace.", applies: .atReload),
        Setting(
            "tracing.trustParents", \.tracing.trustParents, .boolean,
            "Whether the header traceparent also decides if the request is recorded, instead of tracing.ratio.",
            "Any client that reaches the server can then have all of its requests recorded. Turn it on only if a proxy "
                + "removes or replaces the header.", applies: .atReload),
        Setting(
            "tracing.interval", \.tracing.interval, interval,
            "Longest time that a recorded step waits until it is sent, together with others."),
        Setting("tracing.timeout", \.tracing.timeout, interval, "Time limit for one request to the collector."),
        Setting(
            "tracing.queueSize", \.tracing.queueSize, .integer(16...1_000_000),
            "Maximum number of recorded steps that wait. When it is reached, new ones are dropped and counted.",
            "It limits the memory that a collector that does not answer can cost: about 1 KiB for each."),
    ]
}

extension Format<Double> {
    /// A format for a share from 0 to 1.
    fileprivate static let ratio = Format.single(
        "a number from 0 to 1", parse: { text in Double(text).flatMap { (0...1).contains($0) ? $0 : nil } },
        write: { value in Int(exactly: value).map(String.init) ?? "\(value)" })
}
