import NIOCore
import NIOPosix
import Wire

/// Opens many connections from one address. Each sends one request and then stays idle.
///
/// The class is `@unchecked Sendable` because its state is used only on its loop.
final class IdleBenchmark: @unchecked Sendable {
    struct Figures {
        /// Connections that were answered, and whether they were closed later.
        var served = 0
        /// Connections that the server closed without an answer.
        var refused = 0
        /// Connections that could not be opened, by reason.
        var failures: [String: Int] = [:]
        var open = 0
        var maxOpen = 0
    }

    private static let address = "127.0.0.2"
    /// The number of connections opened at the same time. With more, the kernel's queue of connections to accept would refuse.
    private static let opening = 200

    private let port: Int
    private let loop: any EventLoop
    private var channels: [ObjectIdentifier: any Channel] = [:]
    private(set) var figures = Figures()

    init(port: Int, loop: any EventLoop) { (self.port, self.loop) = (port, loop) }

    /// Opens the connections. Returns when each was answered, refused or failed.
    func open(_ count: Int) throws -> Figures {
        for first in stride(from: 0, to: count, by: Self.opening) {
            let some = (first..<min(first + Self.opening, count)).map { _ in connect() }
            _ = try EventLoopFuture.whenAllComplete(some, on: loop).wait()
        }
        return try loop.submit { self.figures }.wait()
    }

    func close() throws -> Figures {
        try loop.submit {
            for channel in self.channels.values { channel.close(promise: nil) }
            return self.figures
        }.wait()
    }

    private func connect() -> EventLoopFuture<Void> {
        let decided = loop.makePromise(of: Void.self)
        let result = Result { try SocketAddress(ipAddress: Self.address, port: 0) }
        loop.makeCompletedFuture(result).flatMap { [self] address in
            ClientBootstrap(group: loop)
                .channelInitializer { channel in
                    channel.eventLoop.makeCompletedFuture {
                        try channel.pipeline.syncOperations.addHandler(IdleSocket(self, decided))
                    }
                }
                .bind(to: address)
                .connect(host: "127.0.0.1", port: port)
        }.whenFailure { [self] error in
            figures.failures[String("\(error)".prefix(60)), default: 0] += 1
            decided.succeed()
        }
        return decided.futureResult
    }

    fileprivate func opened(_ channel: any Channel) {
        channels[ObjectIdentifier(channel)] = channel
        figures.open += 1
        figures.maxOpen = max(figures.maxOpen, figures.open)
    }

    fileprivate func ended(_ channel: any Channel, wasServed: Bool) {
        channels[ObjectIdentifier(channel)] = nil
        figures.open -= 1
        if !wasServed { figures.refused += 1 }
    }

    fileprivate func served() { figures.served += 1 }
}

/// One connection of the benchmark.
private final class IdleSocket: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    private let benchmark: IdleBenchmark
    private let decided: EventLoopPromise<Void>
    private var wasServed = false

    init(_ benchmark: IdleBenchmark, _ decided: EventLoopPromise<Void>) {
        (self.benchmark, self.decided) = (benchmark, decided)
    }

    func channelActive(context: ChannelHandlerContext) {
        benchmark.opened(context.channel)
        let request = "GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
        context.writeAndFlush(wrapOutboundOut(ByteBuffer(string: request)), promise: nil)
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        guard !wasServed else { return }
        wasServed = true
        benchmark.served()
        decided.succeed()
    }

    func channelInactive(context: ChannelHandlerContext) {
        benchmark.ended(context.channel, wasServed: wasServed)
        decided.succeed()
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) { context.close(promise: nil) }
}

/// A client at another address that repeatedly connects, requests `/health`, and waits for a welcome.
///
/// The class is `@unchecked Sendable` because its state is used only on its loop.
final class Visitor: @unchecked Sendable {
    struct Figures {
        var health: [Double] = []
        var welcomes: [Double] = []
        var failures: [String: Int] = [:]
    }

    private static let address = "127.0.0.3"
    private static let pause = TimeAmount.milliseconds(100)
    private static let limit = TimeAmount.seconds(20)

    private let port: Int
    private let loop: any EventLoop
    private var isOver = false
    private var figures = Figures()
    private let ended: EventLoopPromise<Void>

    init(port: Int, loop: any EventLoop) {
        (self.port, self.loop) = (port, loop)
        ended = loop.makePromise()
    }

    func start() { loop.execute { self.visit() } }

    func stop() throws -> Figures {
        try loop.submit { self.isOver = true }.wait()
        try ended.futureResult.wait()
        return try loop.submit { self.figures }.wait()
    }

    private func visit() {
        guard !isOver else { return ended.succeed() }
        let began = NIODeadline.now()
        health().flatMap { [self] in
            figures.health.append(Self.seconds(since: began))
            return welcome()
        }.whenComplete { [self] result in
            if case .failure(let error) = result { figures.failures[String("\(error)".prefix(60)), default: 0] += 1 }
            loop.scheduleTask(in: Self.pause) { self.visit() }
        }
    }

    private func welcome() -> EventLoopFuture<Void> {
        let began = NIODeadline.now()
        return LoadClient.connect(port: port, number: 0, from: Self.address, on: loop).flatMap { client in
            client.welcome().map { [self] _ in
                figures.welcomes.append(Self.seconds(since: began))
                client.end()
            }
        }
    }

    /// Completes when the server answers `/health` with 200 on a new connection.
    private func health() -> EventLoopFuture<Void> {
        let answered = loop.makePromise(of: Void.self)
        let guardian = loop.scheduleTask(in: Self.limit) {
            answered.fail(LoadClient.Failure(description: "no answer to /health"))
        }
        let result = Result { try SocketAddress(ipAddress: Self.address, port: 0) }
        loop.makeCompletedFuture(result).flatMap { [self] address in
            ClientBootstrap(group: loop)
                .channelInitializer { channel in
                    channel.eventLoop.makeCompletedFuture {
                        try channel.pipeline.syncOperations.addHandler(HealthSocket(answered))
                    }
                }
                .bind(to: address)
                .connect(host: "127.0.0.1", port: port)
        }.whenFailure { answered.fail($0) }
        return answered.futureResult.always { _ in guardian.cancel() }
    }

    private static func seconds(since start: NIODeadline) -> Double {
        Double((NIODeadline.now() - start).nanoseconds) / 1e9
    }
}

private final class HealthSocket: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    private let answered: EventLoopPromise<Void>

    init(_ answered: EventLoopPromise<Void>) { self.answered = answered }

    func channelActive(context: ChannelHandlerContext) {
        let request = "GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n"
        context.writeAndFlush(wrapOutboundOut(ByteBuffer(string: request)), promise: nil)
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        let text = String(buffer: unwrapInboundIn(data))
        if text.hasPrefix("HTTP/1.1 200") {
            answered.succeed()
        } else {
            answered.fail(LoadClient.Failure(description: "/health: \(text.prefix(30))"))
        }
        context.close(promise: nil)
    }

    func channelInactive(context: ChannelHandlerContext) {
        answered.fail(LoadClient.Failure(description: "/health: the connection was closed"))
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        answered.fail(error)
        context.close(promise: nil)
    }
}

extension Main {
    static func idle(_ numbers: [Int]) throws {
        let group = MultiThreadedEventLoopGroup(numberOfThreads: 2)
        let server = ServerProcess(name: "Confab", port: numbers[0], id: numbers[1])
        let count = numbers[2]
        let benchmark = IdleBenchmark(port: server.port, loop: group.next())
        // The first visitor shows the times without load.
        let (first, loop) = (Visitor(port: server.port, loop: group.next()), group.next())
        first.start()
        sleep(5)
        let unloaded = try first.stop()
        let second = Visitor(port: server.port, loop: loop)
        let before = server.residentBytes()
        second.start()
        let began = NIODeadline.now()
        let opened = try benchmark.open(count)
        let took = Double((NIODeadline.now() - began).nanoseconds) / 1e9
        sleep(10)
        let loaded = try second.stop()
        let peak = server.peakBytes()
        let figures = try benchmark.close()
        sleep(5)
        let what = "\(count) connections of one address: "
        row("\(what)opened within, and at most at the same time", "\(took.text(1)) s, \(opened.maxOpen)", "")
        row("\(what)answered once and then idle", "\(figures.served)", "at most 1000, by default")
        row("\(what)closed by the server without an answer", "\(figures.refused)", "all others")
        let unopened = figures.failures.map { "\($0.value) × \($0.key)" }
        row("\(what)not opened", unopened.isEmpty ? "none" : unopened.joined(separator: ", "), "")
        for (when, visits) in [("before", unloaded), ("meanwhile", loaded)] {
            for (title, times) in [("connect → `/health`", visits.health), ("connect → `welcome`", visits.welcomes)] {
                row(
                    "\(what)\(title) from another address, \(when)",
                    "median \((times.median * 1000).text(2)) ms, longest \(((times.max() ?? .nan) * 1000).text(1)) ms "
                        + "of \(times.count)", "")
            }
        }
        let failed = loaded.failures.map { "\($0.value) × \($0.key)" }
        let failures = failed.isEmpty ? "none" : failed.joined(separator: ", ")
        row("\(what)failed visits from another address", failures, "none")
        let memory = [before, peak, server.residentBytes()].map { ($0 / 1_000_000).text(1) }
        row("\(what)memory of the server before, at the peak and after", "\(memory.joined(separator: ", ")) MB", "")
    }
}
