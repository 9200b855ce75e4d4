import NIOCore

/// What it costs a server to let somebody in by one transport, and what it holds for him while nothing happens.
struct ConnectBenchmark {
    struct Figures {
        var connectsPerSecond: Double
        var bytesPerIdle: Double
    }

    /// Connecting at the same time: servers take people in as fast as their queue of new connections allows.
    private static let opening = 50

    let server: ServerProcess
    let transport: ConnectClient.Transport
    let loop: any EventLoop

    /// - Parameter settle: waits until what is only needed for connecting was given back.
    func run(_ count: Int, settle: () -> Void) throws -> Figures {
        // What is compiled or allocated at first use is not what a connection costs.
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
        try loop.submit { for client in all { client.end() } }.wait()
        return figures
    }

    private func open(_ count: Int, from first: Int) throws -> [ConnectClient] {
        var clients: [ConnectClient] = []
        while clients.count < count {
            let some = (clients.count..<min(count, clients.count + Self.opening)).map { number in
                ConnectClient.connect(port: server.port, transport: transport, number: first + number, on: loop)
            }
            clients += try EventLoopFuture.whenAllSucceed(some, on: loop).wait()
        }
        return clients
    }
}
