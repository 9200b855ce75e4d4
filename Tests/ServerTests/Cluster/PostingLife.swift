import Cluster
import Logging
import NIOCore
import NIOPosix
import Signaling
import Synchronization
import TestSupport
import Wire

@testable import Redis
@testable import Server

/// A life that posts numbered letters to others through a real Redis, and remembers what it received.
final class PostingLife: Sendable {
    let tag: NodeTag
    let client: NIORedisClient
    let post: NIOLoopBound<RedisPost>
    private let items = Mutex<[RedisPost.Received]>([])
    /// What this life knows of the others.
    private let standing = Mutex(Lives.Standing.living)

    init(
        _ node: UInt16, at configuration: RedisConfiguration, secret: String = "secret",
        settings: RedisPost.Settings = RedisPost.Settings()
    ) async throws {
        let tag = NodeTag(node: node, life: UInt32(node) + 10)!
        let loop = MultiThreadedEventLoopGroup.singleton.next()
        let client = try NIORedisClient(configuration, on: loop)
        (self.tag, self.client) = (tag, client)
        let start = ContinuousClock.now
        post = try await loop.submit {
            let post = RedisPost(
                client, of: tag, secrets: .init(current: secret), settings: settings, eventLoop: loop,
                logger: Logger(label: "post", factory: { _ in SwiftLogNoOpLogHandler() }),
                clock: { Instant(ContinuousClock.now - start) })
            return NIOLoopBound(post, eventLoop: loop)
        }.get()
        try await run { [weak self] post in
            post.standing = { _, _ in self?.standing.withLock { $0 } ?? .living }
            post.receive = { items, handled, carriedOut in
                self?.items.withLock { $0 += items }
                handled()
                carriedOut()
            }
        }
    }

    convenience init(
        _ node: UInt16, at redis: RunningRedis, secret: String = "secret",
        settings: RedisPost.Settings = RedisPost.Settings()
    ) async throws {
        try await self.init(
            node, at: RedisConfiguration(.servers([RedisURL(redis.url)])), secret: secret, settings: settings)
    }

    /// Lets the post follow the connection of the client, as a node does.
    func connect() {
        let places = RedisPlaces(client, of: tag)
        client.observe { [post] state in
            guard case .ready(let server) = state else { return post.value.disconnected() }
            Task {
                guard let store = try? await places.identify(onlyOn: server.connection) else { return }
                post.eventLoop.execute { post.value.connected(store: store, connection: server.connection) }
            }
        }
    }

    /// Runs something on the event loop of the post.
    @discardableResult
    func run<Value: Sendable>(_ body: @escaping @Sendable (RedisPost) -> Value) async throws -> Value {
        try await post.eventLoop.submit { [post] in body(post.value) }.get()
    }

    func regard(othersAs standing: Lives.Standing) { self.standing.withLock { $0 = standing } }

    /// Posts letters with these numbers to these lives.
    func send(_ numbers: some Sequence<Int> & Sendable, to receivers: [NodeTag]) async throws {
        try await run { post in
            for number in numbers {
                for receiver in receivers { post.post(Self.letter(number), to: receiver) }
            }
        }
    }

    static func letter(_ number: Int) -> Letter { .call(CallID(high: 0, low: 1), .rings(devices: number)) }

    var received: [RedisPost.Received] { items.withLock { $0 } }

    /// The numbers of the letters that a life has posted to this one, in the order in which they arrived.
    func numbers(from sender: PostingLife) -> [Int] {
        received.compactMap {
            guard case .letter(.call(_, .rings(let number)), sender.tag) = $0 else { return nil }
            return number
        }
    }

    var losses: Int { received.count { if case .lost = $0 { true } else { false } } }

    /// The number of entries in the stream of this life.
    func streamLength() async throws -> Int64? {
        try await client.send(RedisCommand("XLEN", .text(PostScripts.streamKey(of: tag)))).integer
    }

    /// The fields of the entries in the stream of this life.
    func entries() async throws -> [[RedisCommand.Argument]] {
        let found = try await client.send(RedisCommand("XRANGE", .text(PostScripts.streamKey(of: tag)), "-", "+"))
        return (found.elements ?? []).map { entry in
            (entry.elements?.last?.elements ?? []).compactMap { $0.bytes.map { .bytes($0) } }
        }
    }

    /// Writes an entry into the stream of this life, as anybody who has the password of Redis can.
    func write(_ fields: [RedisCommand.Argument]) async throws {
        try await client.send(RedisCommand("XADD", [.text(PostScripts.streamKey(of: tag)), "*"] + fields))
    }

    func close() async {
        try? await run { $0.stop() }
        await client.close()
    }
}
