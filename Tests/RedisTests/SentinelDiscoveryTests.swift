import Testing

@testable import Redis

@Suite struct SentinelDiscoveryTests {
    private typealias Effect = SentinelDiscovery.Effect

    private static let question = Effect.ask(RedisCommand("SENTINEL", "GET-MASTER-ADDR-BY-NAME", "confab"))
    private static let first = RedisEndpoint(host: "10.0.0.1", port: 6379, isSecure: true)
    private static let second = RedisEndpoint(host: "fd00::2", port: 6380, isSecure: true)

    private var discovery = SentinelDiscovery(primaryName: "confab", isSecure: true)

    private static func string(_ text: String) -> RESPValue { .bulkString(Array(text.utf8)) }

    private static func address(_ host: String, _ port: String) -> Result<RESPValue, RedisError> {
        .success(.array([string(host), string(port)]))
    }

    private static func message(_ text: String, channel: String = "+switch-master") -> SentinelDiscovery.Event {
        .pushed([string("message"), string(channel), string(text)])
    }

    /// Connects to a Sentinel that knows the first server.
    private mutating func locate() {
        _ = discovery.handle(.connected)
        #expect(discovery.handle(.answered(Self.address("10.0.0.1", "6379"))) == [.located(Self.first)])
    }

    @Test mutating func `subscribes before it asks, so that no change is missed`() {
        #expect(discovery.handle(.wanted(failed: nil)) == [], "the question follows with the connection")
        #expect(
            discovery.handle(.connected)
                == [.subscribe(RedisCommand("SUBSCRIBE", "+switch-master")), Self.question])
        #expect(discovery.handle(.wanted(failed: nil)) == [], "the question is asked already")
        #expect(discovery.handle(.answered(Self.address("10.0.0.1", "6379"))) == [.located(Self.first)])
        #expect(discovery.handle(.wanted(failed: nil)) == [Self.question])
    }

    @Test mutating func `follows a failover of its primary only`() {
        locate()
        #expect(discovery.handle(Self.message("confab 10.0.0.1 6379 fd00::2 6380")) == [.moved(Self.second)])
        for other in [
            "another 10.0.0.1 6379 fd00::2 6380", "confab 10.0.0.1 6379", "confab a 1 b 0", "confab a 1 b c", "",
        ] {
            #expect(discovery.handle(Self.message(other)) == [])
        }
        #expect(discovery.handle(Self.message("confab 10.0.0.1 6379 b 1", channel: "+sdown")) == [])
        #expect(discovery.handle(.pushed([])) == [])
        #expect(discovery.handle(.pushed([.null, .number(1), .array([])])) == [])
    }

    @Test(
        arguments: [
            .success(.null), .success(.array([])), .success(.array([.null, .null])), address("", "1"),
            address("a", "70000"),
            address("a", "0"), address("a b", "1"), address("a\u{1B}[31m", "1"),
            address(String(repeating: "a", count: 254), "1"), .success(.number(1)), .failure(RedisError(.timedOut, "")),
        ] as [Result<RESPValue, RedisError>])
    mutating func `asks the next Sentinel if this one does not know the primary`(
        _ answer: Result<RESPValue, RedisError>
    ) {
        _ = discovery.handle(.connected)
        #expect(discovery.handle(.answered(answer)) == [.useNextSentinel])
        #expect(discovery.handle(.wanted(failed: nil)) == [])
        #expect(discovery.handle(.disconnected) == [])
        #expect(discovery.handle(.connected).last == Self.question)
    }

    @Test mutating func `asks the next Sentinel if the primary that it named could not be used`() {
        locate()
        #expect(discovery.handle(.wanted(failed: Self.second)) == [Self.question], "an older address failed")
        #expect(discovery.handle(.answered(Self.address("10.0.0.1", "6379"))) == [.located(Self.first)])
        #expect(discovery.handle(.wanted(failed: Self.first)) == [.useNextSentinel])
    }

    @Test mutating func `ignores answers of a lost connection`() {
        _ = discovery.handle(.connected)
        _ = discovery.handle(.disconnected)
        #expect(discovery.handle(.answered(.failure(RedisError(.connectionLost, "")))) == [])
        #expect(discovery.handle(Self.message("confab 10.0.0.1 6379 fd00::2 6380")) == [])
    }

    @Test mutating func `finds out about a failover during which no Sentinel was connected`() {
        locate()
        _ = discovery.handle(.disconnected)
        _ = discovery.handle(.connected)
        #expect(discovery.handle(.answered(Self.address("fd00::2", "6380"))) == [.moved(Self.second)])
        // The same answer again is no news.
        #expect(discovery.handle(.wanted(failed: nil)) == [Self.question])
        #expect(discovery.handle(.answered(Self.address("fd00::2", "6380"))) == [.located(Self.second)])
        #expect(discovery.handle(Self.message("confab fd00::2 6380 10.0.0.1 6379")) == [.moved(Self.first)])
        #expect(discovery.handle(.wanted(failed: nil)) == [Self.question])
        #expect(discovery.handle(.answered(Self.address("10.0.0.1", "6379"))) == [.located(Self.first)])
    }

    @Test(arguments: [true, false])
    mutating func `asks the Sentinels in turn if they refuse to report failovers`(_ refusesFirst: Bool) {
        for (host, port, effect) in [
            ("10.0.0.1", "6379", Effect.located(Self.first)), ("fd00::2", "6380", .moved(Self.second)),
        ] {
            _ = discovery.handle(.connected)
            // The answer is used in any case.
            if refusesFirst { #expect(discovery.handle(.subscriptionRefused) == []) }
            let effects = discovery.handle(.answered(Self.address(host, port)))
            if refusesFirst {
                #expect(effects == [effect, .useNextSentinel])
            } else {
                #expect(effects == [effect])
                #expect(discovery.handle(.subscriptionRefused) == [.useNextSentinel])
            }
            #expect(discovery.handle(.disconnected) == [])
        }
        _ = discovery.handle(.connected)
        #expect(
            discovery.handle(.answered(Self.address("fd00::2", "6380"))) == [.located(Self.second)],
            "this one allows it")
        #expect(discovery.handle(.wanted(failed: nil)) == [Self.question])
    }
}
