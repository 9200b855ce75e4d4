import NIOCore

/// Measures the cost of a new connection over one transport, and the memory of an idle connection.
struct ConnectBenchmark {
    struct Figures {
        var connectsPerSecond: Double
        var bytesPerIdle: Double
    }

    /// The number of connections opened at the same time, limited by the server's accept queue.
    private static let opening = 50

    let server: ServerProcess
    let transport: ConnectClient.Transport
    let loop: any EventLoop

    /// - Parameter settle: waits until memory that was needed only for connecting has been freed.
    func run(_ count: Int, settle: () -> Void) throws -> Figures {
        // Warm up, so that code and memory used for the first time are not counted.
        var clients = try open(count / 10, from: 0)
        settle()
        let (seconds, bytes) = (server.processorSeconds(), server.residentBytes())
        clients += try open(count, from: clients.count)
        let used = server.processorSeconds() - seconds
        settle()
        let figures = Figures(
            connectsPerSecond: Double(count) / used, bytesPerIdle: (server.residentBytes() - bytes) / Double(count)
        )
        let all = clients
        try loop.submit { for end in all { end() } }.wait()
        return figures
    }

    /// Opens connections, and returns the functions that end them.
    private func open(_ count: Int, from first: Int) throws -> [@Sendable () -> Void] {
        var clients: [@Sendable () -> Void] = []
        while clients.count < count {
            let some = (clients.count..<min(count, clients.count + Self.opening)).map { connect(first + $0) }
            clients += try EventLoopFuture.whenAllSucceed(some, on: loop).wait()
        }
        return clients
    }

    private func connect(_ number: Int) -> EventLoopFuture<@Sendable () -> Void> {
        guard transport == .native else {
            return ConnectClient.connect(port: server.port, transport: transport, number: number, on: loop)
                .map { client in { client.end() } }
        }
        return LoadClient.connect(port: server.port, number: number, on: loop)
            .flatMap { client in client.welcome().map { _ in { client.end() } } }
    }
}
