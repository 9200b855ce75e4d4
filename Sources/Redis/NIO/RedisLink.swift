import DequeModule
import NIOCore
import NIOPosix
import NIOSSL
import Wire

/// The shell around a ``RedisConnection``: its channel, its timer, and the completions of its requests. It decides nothing.
///
/// It is `@unchecked Sendable` because everything but `loop` is used on the event loop only.
final class RedisLink: @unchecked Sendable {
    /// What the link reports to its owner.
    enum Report {
        case locate(failed: RedisEndpoint?)
        case changed(RedisState)
        case pushed([RESPValue])
    }

    typealias Completion = (Result<RESPValue, RedisError>) -> Void

    let loop: any EventLoop
    private let tls: NIOSSLContext?
    private let connectTimeout: Duration
    private var machine: RedisConnection
    /// Called for each report; nil after `release`.
    var report: ((Report) -> Void)?
    private var completions: [UInt64: Completion] = [:]
    private var requests: UInt64 = 0
    /// The attempt that is being made or has succeeded. The channel follows when it is connected.
    private var attempt: RedisConnection.Attempt?
    private var channel: (any Channel)?
    /// The channels of the attempt that are being connected: one for each address of the host that is tried.
    private var connecting: [any Channel] = []
    /// The number of channels that are not closed, and what is fulfilled when there are none.
    private var openChannels = 0
    private var ended: EventLoopPromise<Void>?
    private var timer: (task: Scheduled<Void>, at: Timestamp)?
    /// Effects that wait while an earlier one is carried out. Completions can submit requests, whose effects must come after
    /// those that are waiting.
    private var effects: Deque<RedisConnection.Effect> = []
    private var isPerforming = false
    private var isFlushScheduled = false

    init(settings: RedisConnection.Settings, tls: NIOSSLContext?, on loop: any EventLoop) {
        (self.loop, self.tls, connectTimeout) = (loop, tls, settings.connectTimeout)
        machine = RedisConnection(settings: settings, random: SystemRandomNumberGenerator())
    }

    var requestCount: Int { machine.requestCount }

    private var now: Timestamp {
        Timestamp(milliseconds: Int64(NIODeadline.now().uptimeNanoseconds / 1_000_000))
    }

    func submit(_ request: RedisRequest, timeout: Duration, onlyOn: UInt64? = nil, _ completion: @escaping Completion) {
        requests += 1
        completions[requests] = completion
        handle(.submit(requests, request, deadline: now + timeout, onlyOn: onlyOn))
    }

    func handle(_ event: RedisConnection.Event) { perform(machine.handle(event, now: now)) }

    // MARK: Effects

    private func perform(_ new: [RedisConnection.Effect]) {
        effects.append(contentsOf: new)
        guard !isPerforming else { return }
        isPerforming = true
        while let effect = effects.popFirst() { perform(effect) }
        isPerforming = false
        setTimer()
    }

    private func perform(_ effect: RedisConnection.Effect) {
        switch effect {
        case .locate(let failed): report?(.locate(failed: failed))
        case .open(let attempt, let endpoint): open(attempt, endpoint)
        case .write(let attempt, let bytes): if attempt == self.attempt { write(bytes) }
        case .disconnect(let attempt): if attempt == self.attempt { disconnect() }
        case .complete(let id, let result): completions.removeValue(forKey: id)?(result)
        case .pushed(let elements): report?(.pushed(elements))
        case .changed(let state): report?(.changed(state))
        }
    }

    /// Writes of one turn of the event loop are flushed together.
    private func write(_ bytes: [UInt8]) {
        guard let channel else { return }
        channel.write(channel.allocator.buffer(bytes: bytes), promise: nil)
        guard !isFlushScheduled else { return }
        isFlushScheduled = true
        loop.execute {
            self.isFlushScheduled = false
            self.channel?.flush()
        }
    }

    private func disconnect() {
        let channels = connecting + [channel].compactMap(\.self)
        (attempt, channel, connecting) = (nil, nil, [])
        for channel in channels { channel.close(promise: nil) }
    }

    private func setTimer() {
        guard let next = machine.nextTimeout else { return }
        if let timer, timer.at <= next { return }
        timer?.task.cancel()
        let pause = max(.zero, next - now)
        let task = loop.scheduleTask(in: TimeAmount(pause)) {
            self.timer = nil
            self.perform(self.machine.handleTimeout(now: self.now))
        }
        timer = (task, next)
    }

    /// Stops the timer and releases the owner. For after `close`.
    ///
    /// - Returns: fulfilled when all channels are closed.
    func end() -> EventLoopFuture<Void> {
        timer?.task.cancel()
        (timer, report) = (nil, nil)
        let ended = self.ended ?? loop.makePromise()
        self.ended = ended
        if openChannels == 0 { ended.succeed() }
        return ended.futureResult
    }

    // MARK: Channel

    private func open(_ attempt: RedisConnection.Attempt, _ endpoint: RedisEndpoint) {
        self.attempt = attempt
        let connecting = ClientBootstrap(group: loop)
            .channelOption(.socketOption(.tcp_nodelay), value: 1)
            // The machine limits the time too. This limit ends attempts that it has given up.
            .connectTimeout(TimeAmount(connectTimeout))
            .channelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    try self.watch(channel, of: attempt)
                    guard endpoint.isSecure else { return }
                    try channel.pipeline.syncOperations.addHandler(self.tlsHandler(endpoint))
                }
            }
            .connect(host: endpoint.host, port: endpoint.port)
        connecting.whenComplete { result in
            switch result {
            case .failure(let error): self.handle(.closed(attempt, reason: "\(endpoint) cannot be reached: \(error)."))
            case .success(let channel): self.use(channel, attempt, endpoint)
            }
        }
    }

    /// Keeps a channel that is being connected, so that it can be closed.
    ///
    /// - Throws: if the attempt was given up before, for example while the host's name was looked up.
    private func watch(_ channel: any Channel, of attempt: RedisConnection.Attempt) throws {
        guard attempt == self.attempt else { throw RedisError(.closed, "The attempt was given up.") }
        openChannels += 1
        connecting.append(channel)
        channel.closeFuture.whenComplete { _ in
            self.openChannels -= 1
            self.connecting.removeAll { $0 === channel }
            if self.openChannels == 0 { self.ended?.succeed() }
        }
    }

    private func tlsHandler(_ endpoint: RedisEndpoint) throws -> NIOSSLClientHandler {
        guard let tls else { throw RedisError(.invalidConfiguration, "TLS is not configured.") }
        // Server Name Indication cannot carry an address. The certificate must then contain the address.
        let isAddress = (try? SocketAddress(ipAddress: endpoint.host, port: 0)) != nil
        return try NIOSSLClientHandler(context: tls, serverHostname: isAddress ? nil : endpoint.host)
    }

    private func use(_ channel: any Channel, _ attempt: RedisConnection.Attempt, _ endpoint: RedisEndpoint) {
        guard attempt == self.attempt else { return channel.close(promise: nil) }
        let handler = RedisChannelHandler { bytes in self.handle(.received(attempt, bytes)) }
        do {
            try channel.pipeline.syncOperations.addHandler(handler)
        } catch {
            channel.close(promise: nil)
            return handle(.closed(attempt, reason: "\(endpoint) closed the connection."))
        }
        (self.channel, connecting) = (channel, [])
        let bound = NIOLoopBound(handler, eventLoop: loop)
        channel.closeFuture.whenComplete { _ in
            let cause = bound.value.error.map { ": \($0)" } ?? ""
            self.handle(.closed(attempt, reason: "\(endpoint) closed the connection\(cause)."))
        }
        handle(.opened(attempt))
    }
}

/// Passes the bytes of a channel to its link, and keeps the error that ends the channel.
private final class RedisChannelHandler: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer

    private let receive: ([UInt8]) -> Void
    private(set) var error: (any Error)?

    init(_ receive: @escaping ([UInt8]) -> Void) { self.receive = receive }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        receive(Array(unwrapInboundIn(data).readableBytesView))
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        self.error = self.error ?? error
        context.close(promise: nil)
    }
}
