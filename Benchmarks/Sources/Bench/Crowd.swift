import NIOCore
import NIOPosix
import Wire

/// Many clients of one server, on one event loop.
///
/// Unchecked: touched on the loop alone, but for `clients`, which is complete before anything else begins.
final class Crowd: @unchecked Sendable {
    /// Opened at once: a server takes them in as fast as its queue of new connections allows.
    private static let opening = 50
    /// Nothing that is waited for takes this long but when something is broken.
    private static let patience = TimeAmount.seconds(180)

    let server: ServerProcess
    let loop: any EventLoop
    private(set) var clients: [LoadClient] = []

    init(server: ServerProcess, loop: any EventLoop) {
        self.server = server
        self.loop = loop
    }

    /// Lets `count` more in; each has its welcome when this returns.
    func open(_ count: Int) throws {
        var left = count
        while left > 0 {
            let some = (0..<min(left, Self.opening)).map { offset in
                LoadClient.connect(port: server.port, number: clients.count + offset, on: loop)
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

    /// Has each of them say something and waits until each has heard this type of message.
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

    /// Runs `begin` on the loop and waits until it has kept its promise.
    func run(_ begin: @escaping @Sendable (EventLoopPromise<Void>) -> Void) throws {
        try loop.flatSubmit { [self] in
            let done = loop.makePromise(of: Void.self)
            let guardian = loop.scheduleTask(in: Self.patience) {
                done.fail(LoadClient.Failure(description: "\(self.server.name) did not answer in time"))
            }
            for client in clients { client.onEnd = { done.fail(LoadClient.Failure(description: $0)) } }
            begin(done)
            return done.futureResult.always { _ in guardian.cancel() }
        }.wait()
    }
}
