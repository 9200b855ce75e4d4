import NIOCore
import NIOSSL
import Wire

/// A client for Redis on SwiftNIO: a connection for commands, one for reads of streams, and one to a Sentinel if there are
/// any. All of it runs on one event loop.
///
/// It is `@unchecked Sendable` because everything but the constants is used on the event loop only.
package final class NIORedisClient: RedisClient, @unchecked Sendable {
    /// The time that a Sentinel's answer may take.
    private static let answerTimeout = Duration.seconds(2)

    private let loop: any EventLoop
    private let commands: RedisLink
    private let streams: RedisLink
    private let sentinel: RedisLink?
    private var locator: RedisLocator
    private var reads = RedisReads()
    private var readCompletions: [UInt64: (Result<[RedisStreamEntry], RedisError>) -> Void] = [:]
    private var readCount: UInt64 = 0
    private var state = RedisState.connecting
    private var observer: (@Sendable (RedisState) -> Void)?

    /// Creates a client, which connects at once. It exists until `close` is called.
    ///
    /// - Throws: ``RedisError/Code/invalidConfiguration`` if there is no URL, or the TLS configuration cannot be used.
    package init(_ configuration: RedisConfiguration, on loop: any EventLoop) throws(RedisError) {
        guard !configuration.urls.isEmpty else { throw RedisError(.invalidConfiguration, "There is no URL of Redis.") }
        let tls: NIOSSLContext?
        do {
            tls = try configuration.needsTLS ? NIOSSLContext(configuration: configuration.tls) : nil
        } catch {
            throw RedisError(.invalidConfiguration, "The TLS configuration for Redis cannot be used: \(error).")
        }
        self.loop = loop
        func link(_ role: RedisGreeting.Role) -> RedisLink {
            RedisLink(settings: configuration.settings(for: role), tls: tls, on: loop)
        }
        (commands, streams) = (link(.primary), link(.primary))
        var discovery: SentinelDiscovery?
        if case .sentinels(_, let name, _, let isSecure) = configuration.location {
            discovery = SentinelDiscovery(primaryName: name, isSecure: isSecure)
            sentinel = link(.sentinel)
        } else {
            sentinel = nil
        }
        locator = RedisLocator(addresses: configuration.urls.map(\.endpoint), discovery: discovery)
        // A command may follow immediately, and needs the links' reports.
        if loop.inEventLoop { start() } else { loop.execute { self.start() } }
    }

    private func start() {
        commands.report = { [weak self] in self?.handle($0, of: .commands) }
        streams.report = { [weak self] in self?.handle($0, of: .streams) }
        sentinel?.report = { [weak self] in self?.handle($0, of: .sentinel) }
        sentinel?.handle(.start)
        commands.handle(.start)
    }

    // MARK: RedisClient

    package func submit(
        _ request: RedisRequest, timeout: Duration, onlyOn: UInt64?,
        completion: @escaping @Sendable (Result<RESPValue, RedisError>) -> Void
    ) {
        onLoop { self.commands.submit(request, timeout: timeout, onlyOn: onlyOn, completion) }
    }

    package func read(
        _ streams: [RedisStreamPosition], count: Int, block: Duration,
        completion: @escaping @Sendable (Result<[RedisStreamEntry], RedisError>) -> Void
    ) {
        onLoop {
            // The connection is made when it is needed for the first time.
            self.streams.handle(.start)
            self.readCount += 1
            do throws(RedisError) {
                let step = try self.reads.add(self.readCount, streams, count: count, block: block)
                self.readCompletions[self.readCount] = completion
                self.read(step)
            } catch {
                completion(.failure(error))
            }
        }
    }

    private func read(_ step: RedisReads.Step?) {
        guard let step else { return }
        streams.submit(.command(step.command), timeout: step.timeout) { answer in
            let (finished, next) = self.reads.answered(answer)
            if let finished { self.readCompletions.removeValue(forKey: finished.id)?(finished.result) }
            self.read(next)
        }
    }

    package func observe(_ report: @escaping @Sendable (RedisState) -> Void) {
        onLoop {
            self.observer = report
            report(self.state)
        }
    }

    package func close() async {
        let links = [commands, streams, sentinel].compactMap(\.self)
        let closed = loop.flatSubmit {
            for link in links { link.handle(.close) }
            self.observer = nil
            return EventLoopFuture.andAllComplete(links.map { $0.end() }, on: self.loop)
        }
        try? await closed.get()
    }

    /// Returns how many commands wait for answers. For tests.
    func requestCount() async -> Int { (try? await loop.submit { self.commands.requestCount }.get()) ?? 0 }

    private func onLoop(_ task: @escaping @Sendable () -> Void) {
        if loop.inEventLoop { task() } else { loop.execute(task) }
    }

    // MARK: Links

    private func handle(_ report: RedisLink.Report, of link: RedisLocator.Link) {
        switch report {
        case .locate(let failed): locate(.wanted(link, failed: failed))
        case .changed(let state):
            if link == .commands {
                self.state = state
                observer?(state)
            }
            locate(.changed(link, state))
        case .pushed(let elements): if link == .sentinel { locate(.pushed(elements)) }
        }
    }

    private func locate(_ event: RedisLocator.Event) {
        for effect in locator.handle(event) {
            switch effect {
            case .located(let link, let endpoint): self[link]?.handle(.located(endpoint))
            case .moved(let endpoint): commands.handle(.moved(endpoint))
            case .abandon(let link, let error): self[link]?.handle(.abandon(error))
            case .ask(let command):
                sentinel?.submit(.command(command), timeout: Self.answerTimeout) { self.locate(.answered($0)) }
            case .subscribe(let command):
                sentinel?.submit(.command(command), timeout: Self.answerTimeout) { result in
                    // Other failures end the connection.
                    if case .failure(let error) = result, error.code == .rejected { self.locate(.subscriptionRefused) }
                }
            }
        }
    }

    private subscript(link: RedisLocator.Link) -> RedisLink? {
        switch link {
        case .commands: commands
        case .streams: streams
        case .sentinel: sentinel
        }
    }
}
