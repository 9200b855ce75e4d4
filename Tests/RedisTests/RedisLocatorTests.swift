import Testing

@testable import Redis

@Suite struct RedisLocatorTests {
    private typealias Effect = RedisLocator.Effect

    private static let first = RedisEndpoint(host: "10.0.0.1", port: 6379)
    private static let second = RedisEndpoint(host: "10.0.0.2", port: 6379)
    private static let lost = RedisState.disconnected(RedisError(.connectionLost, "reset"))
    private static let abandon = Effect.abandon(
        .streams, RedisError(.connectionLost, "The connection for commands was lost."))

    private static func ready(_ connection: UInt64, _ endpoint: RedisEndpoint) -> RedisState {
        .ready(RedisServer(connection: connection, endpoint: endpoint, version: "7.0.15"))
    }

    private static func answer(_ endpoint: RedisEndpoint) -> RedisLocator.Event {
        .answered(.success(.array([endpoint.host, "\(endpoint.port)"].map { .bulkString(Array($0.utf8)) })))
    }

    private var servers = RedisLocator(addresses: [first, second], discovery: nil)
    private var sentinels = RedisLocator(
        addresses: [RedisEndpoint(host: "s1", port: 26_379), RedisEndpoint(host: "s2", port: 26_379)],
        discovery: SentinelDiscovery(primaryName: "confab", isSecure: false))

    @Test mutating func `tries the configured servers in turn`() {
        for endpoint in [Self.first, Self.second, Self.first] {
            #expect(servers.handle(.wanted(.commands, failed: nil)) == [.located(.commands, endpoint)])
        }
    }

    @Test mutating func `streams are read from the server to which commands are sent`() {
        #expect(servers.handle(.wanted(.streams, failed: nil)) == [], "there is no such server yet")
        _ = servers.handle(.wanted(.commands, failed: nil))
        #expect(servers.handle(.changed(.commands, Self.lost)) == [])
        #expect(servers.handle(.changed(.commands, Self.ready(2, Self.second))) == [.located(.streams, Self.second)])
        #expect(
            servers.handle(.wanted(.streams, failed: Self.second)) == [.located(.streams, Self.second)], "no other one")
    }

    @Test mutating func `the connection for streams is given up with that for commands, and follows it`() {
        _ = servers.handle(.changed(.commands, Self.ready(1, Self.first)))
        #expect(servers.handle(.wanted(.streams, failed: nil)) == [.located(.streams, Self.first)])
        #expect(servers.handle(.changed(.streams, Self.ready(1, Self.first))) == [])
        #expect(servers.handle(.changed(.commands, Self.lost)) == [Self.abandon])
        #expect(servers.handle(.changed(.commands, Self.lost)) == [], "it is given up already")
        #expect(servers.handle(.changed(.streams, Self.lost)) == [])
        #expect(servers.handle(.wanted(.streams, failed: nil)) == [])
        #expect(servers.handle(.changed(.commands, Self.ready(2, Self.second))) == [.located(.streams, Self.second)])
    }

    @Test mutating func `a failover moves the connection for commands, and that for streams follows`() {
        #expect(
            sentinels.handle(.wanted(.sentinel, failed: nil)) == [
                .located(.sentinel, RedisEndpoint(host: "s1", port: 26_379))
            ])
        #expect(sentinels.handle(.wanted(.commands, failed: nil)) == [])
        #expect(sentinels.handle(.wanted(.streams, failed: nil)) == [])
        #expect(
            sentinels.handle(.changed(.sentinel, Self.ready(1, RedisEndpoint(host: "s1", port: 26_379)))).count == 2)
        #expect(sentinels.handle(Self.answer(Self.first)) == [.located(.commands, Self.first)])
        #expect(sentinels.handle(.changed(.commands, Self.ready(1, Self.first))) == [.located(.streams, Self.first)])
        // The failover happens while no Sentinel is connected.
        #expect(sentinels.handle(.changed(.sentinel, Self.lost)) == [])
        #expect(
            sentinels.handle(.wanted(.sentinel, failed: nil)) == [
                .located(.sentinel, RedisEndpoint(host: "s2", port: 26_379))
            ])
        _ = sentinels.handle(.changed(.sentinel, Self.ready(2, RedisEndpoint(host: "s2", port: 26_379))))
        #expect(sentinels.handle(Self.answer(Self.second)) == [.moved(Self.second)])
        #expect(sentinels.handle(.changed(.commands, Self.lost)) == [Self.abandon])
        #expect(sentinels.handle(.wanted(.streams, failed: nil)) == [])
        #expect(sentinels.handle(.changed(.commands, Self.ready(2, Self.second))) == [.located(.streams, Self.second)])
    }

    @Test mutating func `an answer that nobody waits for changes nothing`() {
        _ = sentinels.handle(.changed(.sentinel, Self.ready(1, Self.first)))
        #expect(sentinels.handle(Self.answer(Self.first)) == [])
        #expect(sentinels.handle(.subscriptionRefused).count == 1)
    }
}
