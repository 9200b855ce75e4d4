import Foundation
import Testing
import Wire

@testable import Confab

/// A cluster of two nodes: `n1`, where clients come in, and `n2`, which searches for partners.
private final class TwoNodes: Transport {
    private enum Job: Sendable {
        case opened(Int, node: String, @Sendable (SocketEvent) -> Void)
        case received(Int, [UInt8])
    }

    private struct Client {
        let node: String
        let report: @Sendable (SocketEvent) -> Void
        var link = Link()
    }

    private struct Socket: TransportSocket {
        let number: Int
        let jobs: AsyncStream<Job>.Continuation
        func send(_ text: [UInt8]) { jobs.yield(.received(number, text)) }
        func close(_ code: CloseCode) {}
    }

    private let jobs: AsyncStream<Job>.Continuation
    private let opened = LockedValue<[URL]>([])
    private let heard = LockedValue<[String]>([])
    private let task: Task<Void, Never>

    init() {
        let (stream, jobs) = AsyncStream.makeStream(of: Job.self)
        self.jobs = jobs
        let heard = heard
        task = Task {
            var clients: [Int: Client] = [:]
            for await job in stream {
                switch job {
                case .opened(let number, let node, let report):
                    clients[number] = Client(node: node, report: report)
                    report(.opened)
                case .received(let number, let text):
                    guard let client = clients[number] else { continue }
                    clients[number] = Self.answer(text, to: client, heard)
                }
            }
        }
    }

    /// The URLs of all sockets, in order.
    var urls: [URL] { opened.withLock { $0 } }
    /// Each request with its node, such as `n1 roulette.start`.
    var requests: [String] { heard.withLock { $0 } }
    func finish() { jobs.finish() }

    var dependencies: Dependencies {
        Dependencies(transport: self, clock: SystemClock(), random: SystemRandomNumberGenerator())
    }

    func open(_ url: URL, _ report: @escaping @Sendable (SocketEvent) -> Void) -> any TransportSocket {
        let number = opened.withLock { urls in
            urls.append(url)
            return urls.count
        }
        let query = URLComponents(url: url, resolvingAgainstBaseURL: false)?.queryItems ?? []
        jobs.yield(.opened(number, node: query.first { $0.name == "at" }?.value ?? "n1", report))
        return Socket(number: number, jobs: jobs)
    }

    func run(
        _ transfer: HTTPTransfer, _ done: @escaping @Sendable (Result<HTTPResponse, any Error>) -> Void
    ) -> @Sendable () -> Void {
        {}
    }

    private static func answer(_ text: [UInt8], to client: Client, _ heard: LockedValue<[String]>) -> Client {
        var client = client
        guard let envelope = try? Envelope<ClientMessage>.decode(text) else { return client }
        if case .hello(let hello) = envelope.message {
            #expect(hello.resume == nil)
            var welcome = Welcome()
            (welcome.at, welcome.resume) = (client.node, .init(secret: "secret", grace: .seconds(30)))
            welcome.identity = hello.identity == nil ? "identity" : nil
            client.report(.received(ServerMessage.welcome(welcome).encode()))
            return client
        }
        guard let seq = envelope.seq, client.link.receive(seq: seq) == .deliver else { return client }
        heard.withLock { $0.append("\(client.node) \(envelope.message.type)") }
        let answer: ServerMessage
        switch envelope.message {
        case .roulette where client.node == "n1":
            answer = .error(.init(WireError(.elsewhere, "The roulette is on another server.", at: "n2"), re: seq))
        case .roulette(.start): answer = .roulette(.waiting(.init(re: seq)))
        case .presence(.appear):
            var own = PresenceNotice.Own()
            own.re = seq
            answer = .presence(.own(own))
        default: answer = .ok(.init(re: seq))
        }
        client.report(.received(client.link.send { answer.encode(seq: $0, ack: $1) }))
        return client
    }
}

@Suite("Moving to another node", .timeLimit(.minutes(3)))
struct RedirectTests {
    private func withCluster(_ body: (TwoNodes, ConfabClient) async throws -> Void) async throws {
        let cluster = TwoNodes()
        let client = ConfabClient(
            server: URL(string: "https://example.org/video")!, credential: .anonymous(MemoryIdentity()),
            in: cluster.dependencies)
        try await body(cluster, client)
        await client.leave()
        cluster.finish()
    }

    @Test("a search that is on another node starts there, and the application does not notice")
    func start() async throws {
        try await withCluster { cluster, client in
            try await client.roulette.start(.text)
            #expect(
                cluster.urls.map(\.absoluteString) == [
                    "wss://example.org/video/v1/socket", "wss://example.org/video/v1/socket?at=n2",
                ])
            #expect(cluster.requests == ["n1 roulette.start", "n2 roulette.start"])
            #expect(client.state == .online && client.roulette.state == .waiting)
        }
    }

    @Test("the request comes after those that restore this person's presence")
    func order() async throws {
        try await withCluster { cluster, client in
            _ = try await client.presence.appear()
            try await client.core.request(.roulette(.count))
            #expect(
                cluster.requests.filter { !$0.contains("call.") && !$0.contains("contact.") } == [
                    "n1 presence.appear", "n1 roulette.count", "n2 presence.appear", "n2 roulette.count",
                ])
        }
    }

    @Test("the request line of a socket has the query of its URL")
    func requestLine() throws {
        let url = try #require(URL(string: "wss://example.org/video/v1/socket?at=n2"))
        #expect(HostEndpoint(url).target == "/video/v1/socket?at=n2")
        #expect(HostEndpoint(try #require(URL(string: "ws://example.org"))).target == "/")
    }
}
