import NIOCore
import NIOPosix
import Wire

/// Many clients of one server on one event loop.
///
/// The class is `@unchecked Sendable` because it is used only on the loop. The exception is `clients`, which is complete before
/// anything else starts.
final class Crowd: @unchecked Sendable {
    /// The number of connections opened at the same time, limited by the server's accept queue.
    private static let opening = 50
    /// The timeout for connecting, long enough that only a failure exceeds it.
    static let connectTimeout = TimeAmount.seconds(180)

    let server: ServerProcess
    let loop: any EventLoop
    /// The address of all clients; nil if each has its own.
    let source: String?
    private(set) var clients: [LoadClient] = []

    init(server: ServerProcess, from source: String? = nil, loop: any EventLoop) {
        self.server = server
        self.source = source
        self.loop = loop
    }

    /// Connects `count` more clients and waits until the server has welcomed all of them.
    func open(_ count: Int) throws {
        var left = count
        while left > 0 {
            let some = (0..<min(left, Self.opening)).map { offset in
                LoadClient.connect(port: server.port, number: clients.count + offset, from: source, on: loop)
            }
            left -= some.count
            let opened = try EventLoopFuture.whenAllSucceed(some, on: loop).wait()
            clients += opened
            try ask(opened, for: "welcome") { $0.greet() }
        }
    }

    func close() throws {
        try loop.submit { for client in self.clients { client.end() } }.wait()
    }

    /// Sends a message from each client and waits until each has received a message of this type.
    func ask(_ some: [LoadClient], for type: String, _ say: @escaping @Sendable (LoadClient) -> Void) throws {
        try run { done in
            var missing = some.count
            for client in some {
                client.onMessage = { client, message in
                    if case .error(let refusal) = message { return done.fail(LoadClient.Failure(refusal.error)) }
                    guard message.type == type else { return }
                    client.onMessage = nil
                    missing -= 1
                    if missing == 0 { done.succeed() }
                }
                say(client)
            }
        }
    }

    /// Runs `begin` on the loop and waits until it fulfills its promise.
    func run(
        within limit: TimeAmount = connectTimeout, _ begin: @escaping @Sendable (EventLoopPromise<Void>) -> Void
    ) throws {
        try loop.flatSubmit { [self] in
            let done = loop.makePromise(of: Void.self)
            let guardian = loop.scheduleTask(in: limit) {
                done.fail(LoadClient.Failure(description: "\(self.server.name) did not answer in time"))
            }
            for client in clients { client.onEnd = { done.fail(LoadClient.Failure(description: $0)) } }
            begin(done)
            return done.futureResult.always { _ in guardian.cancel() }
        }.wait()
    }
}
