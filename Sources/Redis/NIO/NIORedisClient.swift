import NIOCore
import NIOSSL
import Wire

/// A client for Redis on SwiftNIO: a connection for commands, one for reads of streams, and one to a Sentinel if there are
/// any. All of it runs on one event loop.
///
/// It is `@unchecked Sendable` because everything but the constants is used on the event loop only.
package final class NIORedisClient: RedisClient, @unchecked Sendable {
    /// The time that an answer may take after the time for which a read blocks, and that a Sentinel's answer may take.
    private static let answerTimeout = Duration.seconds(2)

    private let loop: any EventLoop
    private let urls: [RedisURL]
    private let commands: RedisLink
    private let streams: RedisLink
    private let sentinel: RedisLink?
    private var discovery: SentinelDiscovery?
    /// For each link without discovery, the number of addresses that it has asked for. They are used in turn.
    private var turns: [ObjectIdentifier: Int] = [:]
    /// The links whose machines wait for the primary's address.
    private var searching: [ObjectIdentifier: RedisLink] = [:]
    /// How long the reads that are waiting may block together. They are carried out one after the other.
    private var blocking = Duration.zero
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
        (self.loop, urls) = (loop, configuration.urls)
        func link(_ role: RedisGreeting.Role) -> RedisLink {
            RedisLink(settings: configuration.settings(for: role), tls: tls, on: loop)
        }
        (commands, streams) = (link(.primary), link(.primary))
        if case .sentinels(_, let name, _, let isSecure) = configuration.location {
            discovery = SentinelDiscovery(primaryName: name, isSecure: isSecure)
            sentinel = link(.sentinel)
        } else {
            sentinel = nil
        }
        // A command may follow immediately, and needs the links' reports.
        if loop.inEventLoop { start() } else { loop.execute { self.start() } }
    }

    private func start() {
        for link in [commands, streams, sentinel].compactMap(\.self) {
            link.report = { [weak link] report in
                if let link { self.handle(report, of: link) }
            }
        }
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
        // Redis would block without end for 0 ms.
        let milliseconds = max(1, block.wholeMilliseconds)
        let arguments: [RedisCommand.Argument] =
            ["COUNT", .number(max(1, count)), "BLOCK", .number(milliseconds), "STREAMS"]
            + streams.map { .text($0.stream) } + streams.map { .text($0.after) }
        let command = RedisCommand("XREAD", arguments)
        onLoop {
            // The connection is made when it is needed for the first time.
            self.streams.handle(.start)
            self.blocking += .milliseconds(milliseconds)
            self.streams.submit(.command(command), timeout: self.blocking + Self.answerTimeout) { result in
                self.blocking -= .milliseconds(milliseconds)
                completion(
                    result.flatMap { answer in
                        Result { () throws(RedisError) in try RedisStreamEntry.read(answer) }
                    })
            }
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
            for link in links {
                link.handle(.close)
                link.release()
            }
            self.observer = nil
            return EventLoopFuture.andAllComplete(links.map(\.channelClosed), on: self.loop)
        }
        try? await closed.get()
    }

    /// Returns how many commands wait for answers. For tests.
    func requestCount() async -> Int { (try? await loop.submit { self.commands.requestCount }.get()) ?? 0 }

    private func onLoop(_ task: @escaping @Sendable () -> Void) {
        if loop.inEventLoop { task() } else { loop.execute(task) }
    }

    // MARK: Links

    private func handle(_ report: RedisLink.Report, of link: RedisLink) {
        switch report {
        case .locate(let failed): locate(link, failed: failed)
        case .changed(let state):
            if link === commands {
                self.state = state
                observer?(state)
            } else if link === sentinel {
                if case .ready = state { discover(.connected) } else { discover(.disconnected) }
            }
        case .pushed(let elements): if link === sentinel { discover(.pushed(elements)) }
        }
    }

    private func locate(_ link: RedisLink, failed: RedisEndpoint?) {
        if discovery != nil, link !== sentinel {
            searching[ObjectIdentifier(link)] = link
            return discover(.wanted(failed: failed))
        }
        let turn = turns[ObjectIdentifier(link), default: 0]
        turns[ObjectIdentifier(link)] = turn + 1
        link.handle(.located(urls[turn % urls.count].endpoint))
    }

    private func discover(_ event: SentinelDiscovery.Event) {
        for effect in discovery?.handle(event) ?? [] {
            switch effect {
            case .ask(let command):
                sentinel?.submit(.command(command), timeout: Self.answerTimeout) { self.discover(.answered($0)) }
            case .subscribe(let command):
                sentinel?.submit(.command(command), timeout: Self.answerTimeout) { _ in }
            case .useNextSentinel:
                sentinel?.handle(.abandon(RedisError(.unsuitable, "This Sentinel does not know a primary that works.")))
            case .located(let endpoint):
                let links = searching.values
                searching = [:]
                for link in links { link.handle(.located(endpoint)) }
            case .moved(let endpoint):
                searching = [:]
                for link in [commands, streams] { link.handle(.moved(endpoint)) }
            }
        }
    }
}
