import Hummingbird
import HummingbirdCore
import Logging
import NIOCore
import ServiceLifecycle
import Wire

/// Serves `GET /metrics` on a separate port.
///
/// If the port cannot be opened, the server runs without metrics. If `metrics.enabled` is `always`, `run` throws
/// instead.
struct MetricsEndpoint: Service {
    /// Maximum number of connections. Further ones wait. A scraper needs only one, and more would take descriptors from
    /// clients.
    private static let maxConnections = 16

    let configuration: ConfabConfiguration.Metrics
    let metrics: PrometheusMetrics
    let operating: OperatingMetrics
    let readiness: ReadinessCheck
    let gateway: NIOLoopBound<Gateway>
    let logger: Logger

    func run() async throws {
        let host = configuration.host
        var logger = logger
        // Hummingbird logs that it listens, with the same message as for the public port. This field distinguishes the
        // two messages.
        logger[metadataKey: "serves"] = "metrics"
        let ready = self.logger
        let application = Application(
            router: router(),
            configuration: .init(
                address: .hostname(host, port: configuration.port),
                availableConnectionsDelegate: MaximumAvailableConnections(Self.maxConnections)),
            onServerRunning: { channel in
                let port = channel.localAddress?.port ?? 0
                let url = ServerURLs(host: host, port: port, isSecure: false).main + "/metrics"
                ready.info("Metrics ready", metadata: ["url": "\(url)"])
            },
            logger: logger
        )
        do {
            try await application.run()
        } catch {
            if configuration.enabled == .always { throw MetricsPortError(configuration, cause: error) }
            logger.warning("No metrics: could not open the port", metadata: ["error": "\(error)"])
            try await gracefulShutdown()
        }
    }

    private func router() -> Router<BasicRequestContext> {
        let router = Router()
        let (metrics, operating, gateway, readiness) = (metrics, operating, gateway, readiness)
        let configuration = configuration
        router.get("/metrics") { request, _ in
            guard configuration.allows(host: request.head.authority) else {
                return Response(
                    status: .forbidden, headers: [.contentType: "text/plain; charset=utf-8"],
                    body: .init(
                        byteBuffer: ByteBuffer(
                            string: "Use this server's IP address, or the name in metrics.host, in the URL.\n")))
            }
            // Sample the gauges now, once per scrape, instead of updating them with each message.
            try await gateway.eventLoop.submit {
                gateway.value.runner.recordMetrics()
                gateway.value.recordCluster()
            }.get()
            await operating.record(try await readiness.readiness())
            return Response(
                status: .ok, headers: [.contentType: PrometheusMetrics.contentType],
                body: .init(byteBuffer: ByteBuffer(string: metrics.exposition()))
            )
        }
        return router
    }
}

/// The metrics port could not be opened although the configuration requires metrics.
struct MetricsPortError: Error, CustomStringConvertible {
    let description: String

    init(_ configuration: ConfabConfiguration.Metrics, cause: any Error) {
        description =
            "The port for metrics, \(URLAuthority(host: configuration.host, port: configuration.port)), could not be "
            + "opened: \(cause). "
            + "Set metrics.port to a free port, or metrics.enabled to auto to run without metrics."
    }
}
