import AsyncHTTPClient
import Logging
import NIOCore
import NIOHTTP1
import NIOSSL
import ServiceLifecycle
import Wire

/// Sends the spans in the queue to a collector, with OpenTelemetry's protocol over HTTP (`POST /v1/traces`, JSON).
///
/// It runs on threads of its own and sends one batch at a time. A collector that is slow or away delays nothing else: the queue is
/// bounded. `TraceDelivery` decides what an answer means.
struct TraceExporter: Service {
    private let queue: TraceQueue
    private let settings: ConfabConfiguration.Tracing
    private let grace: Duration
    private let url: String
    private let logger: Logger

    /// - Parameter endpoint: the collector's URL without `/v1/traces`.
    init(_ configuration: ConfabConfiguration, endpoint: String, queue: TraceQueue, logger: Logger) {
        (settings, grace, self.logger) = (configuration.tracing, configuration.shutdown.grace, logger)
        (self.queue, url) = (queue, endpoint + "/v1/traces")
    }

    func run() async throws {
        let collector = Collector(settings, url: url)
        await cancelWhenGracefulShutdown { await exportUntilCanceled(to: collector) }
        await exportRest(to: collector)
        await collector.close()
    }

    /// Sends the spans of the last moments once, without repetitions. All batches together have one time limit, so that a slow
    /// collector and a long queue do not delay the stop of the server.
    private func exportRest(to collector: Collector) async {
        let end = ContinuousClock.now + min(grace, settings.timeout)
        var failed = 0
        while case let batch = queue.takeBatch(), !batch.isEmpty {
            let left = ContinuousClock.now.duration(to: end)
            if failed == 0, left > .zero,
                case .answered(200...299, _, let rejected) = await collector.send(batch, timeout: left)
            {
                count(batch, rejected: rejected)
            } else {
                failed += batch.count
            }
        }
        guard failed > 0 else { return }
        queue.count(.failed, by: failed)
        logger.notice("The last traces could not be sent before the server stopped", metadata: ["spans": "\(failed)"])
    }

    private func exportUntilCanceled(to collector: Collector) async {
        let (queue, interval) = (queue, settings.interval)
        await withTaskGroup(of: Void.self) { group in
            group.addTask {
                while !Task.isCancelled {
                    try? await Task.sleep(for: interval)
                    queue.wake()
                }
            }
            var hasFailed = false
            for await _ in queue.wakeUps {
                while !Task.isCancelled, case let batch = queue.takeBatch(), !batch.isEmpty {
                    await deliver(batch, to: collector, &hasFailed)
                }
            }
            group.cancelAll()
        }
    }

    /// Sends a batch until the receiver has it or it is given up.
    ///
    /// - Parameter hasFailed: whether the last batch was given up. Only the first failure in a row is logged.
    private func deliver(_ batch: [TraceSpan], to collector: Collector, _ hasFailed: inout Bool) async {
        var delivery = TraceDelivery()
        while true {
            let outcome = await collector.send(batch, timeout: settings.timeout)
            if Task.isCancelled {
                guard case .answered(200...299, _, let rejected) = outcome else { return queue.putBack(batch) }
                return count(batch, rejected: rejected)
            }
            switch delivery.handle(outcome, jitter: .random(in: 0...1)) {
            case .delivered(let rejected):
                if hasFailed { logger.notice("Traces can be sent again") }
                hasFailed = false
                return count(batch, rejected: rejected)
            case .wait(let pause, _): try? await Task.sleep(for: pause)
            case .giveUp(let reason):
                if !hasFailed {
                    logger.warning(
                        "Traces could not be sent. Check tracing.endpoint, tracing.headers and the collector.",
                        metadata: ["reason": "\(reason)"])
                }
                hasFailed = true
                return queue.count(.failed, by: batch.count)
            }
            if Task.isCancelled { return queue.putBack(batch) }
        }
    }

    private func count(_ batch: [TraceSpan], rejected: Int) {
        let rejected = min(rejected, batch.count)
        queue.count(.rejected, by: rejected)
        queue.count(.exported, by: batch.count - rejected)
    }
}

/// The collector of traces, and the connection to it.
private struct Collector: Sendable {
    /// Maximum number of bytes to read from a response.
    private static let maxBodySize = 64 << 10

    private let settings: ConfabConfiguration.Tracing
    private let url: String
    private let client: HTTPClient

    init(_ settings: ConfabConfiguration.Tracing, url: String) {
        (self.settings, self.url) = (settings, url)
        var configuration = HTTPClient.Configuration()
        var tls = TLSConfiguration.makeClientConfiguration()
        tls.minimumTLSVersion = .tlsv12
        configuration.tlsConfiguration = tls
        configuration.redirectConfiguration = .disallow
        configuration.timeout.connect = .nanoseconds(settings.timeout)
        configuration.connectionPool.retryConnectionEstablishment = false
        client = HTTPClient(eventLoopGroupProvider: .singleton, configuration: configuration)
    }

    /// Closes the connection.
    func close() async { try? await client.shutdown() }

    /// Sends a batch once. Ends at once if the task is canceled, so that a collector cannot delay the stop of the server.
    func send(_ batch: [TraceSpan], timeout: Duration) async -> TraceDelivery.Outcome {
        await withTaskGroup(of: TraceDelivery.Outcome.self) { group in
            group.addTask {
                do { return try await exchange(batch, timeout: timeout) } catch { return .lost("\(error)") }
            }
            group.addTask {
                try? await Task.sleep(for: timeout)
                return .lost("no answer within \(timeout)")
            }
            defer { group.cancelAll() }
            return await group.next() ?? .lost("no answer")
        }
    }

    private func exchange(_ batch: [TraceSpan], timeout: Duration) async throws -> TraceDelivery.Outcome {
        let resource = [
            TraceSpan.Attribute("service.name", settings.serviceName),
            TraceSpan.Attribute("service.version", OperatingMetrics.version),
        ]
        var request = HTTPClientRequest(url: url)
        request.method = .POST
        request.headers.add(name: "Content-Type", value: "application/json")
        request.headers.add(name: "User-Agent", value: "Confab/\(OperatingMetrics.version)")
        for (name, value) in settings.headerFields { request.headers.add(name: name, value: value) }
        request.body = .bytes(
            ByteBuffer(bytes: TraceJSON.body(batch, resource: resource, version: OperatingMetrics.version)))
        // A longer limit than in `send`, which then ends the exchange first, also while the body arrives.
        let response = try await client.execute(request, timeout: .nanoseconds(timeout * 2))
        var body: [UInt8] = []
        for try await piece in response.body {
            body += piece.readableBytesView.prefix(Self.maxBodySize - body.count)
            // Leaving the loop cancels the rest of the body.
            if body.count >= Self.maxBodySize { break }
        }
        let answer = PushResponse(
            status: Int(response.status.code), retryAfter: response.headers.first(name: "Retry-After"))
        return .answered(status: answer.status, retryAfter: answer.retryAfter, rejected: TraceJSON.rejected(in: body))
    }
}
