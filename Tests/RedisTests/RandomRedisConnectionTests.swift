import TestSupport
import Testing
import Wire

@testable import Redis

@Suite struct RandomRedisConnectionTests {
    @Test func `completes each request once, whatever happens`() {
        let seed = UInt64.random(in: 0...UInt64.max)
        print("RandomRedisConnectionTests: seed \(seed)")
        var random = SeededGenerator(seed: seed)
        for _ in 0..<300 { RandomEvents.run(using: &random) }
    }
}

/// Random events for a connection, with a server that answers correctly or sends nonsense.
private struct RandomEvents {
    private var connection: RedisConnection
    private var now = Timestamp(milliseconds: 0)
    private var attempt: UInt64 = 0
    private var waiting: Set<UInt64> = []
    private var requests: UInt64 = 0

    static func run(using random: inout SeededGenerator) {
        var settings = RedisConnection.Settings()
        (settings.maxRequests, settings.maxRequestBytes) = (8, 2000)
        var events = RandomEvents(connection: RedisConnection(settings: settings, random: random))
        events.perform(events.connection.handle(.start, now: events.now))
        for _ in 0..<120 { events.step(&random) }
        events.perform(events.connection.handle(.close, now: events.now))
        #expect(events.waiting.isEmpty && events.connection.requestCount == 0)
    }

    private mutating func step(_ random: inout SeededGenerator) {
        let event: RedisConnection.Event
        switch Int.random(in: 0..<16, using: &random) {
        case 0: event = .closed(attempt, reason: "reset")
        case 1: event = .moved(RedisEndpoint(host: "moved", port: Int.random(in: 1...2, using: &random)))
        case 2, 3:
            now = max(now, connection.nextTimeout ?? now)
            return perform(connection.handleTimeout(now: now))
        case 4: event = .received(attempt, [UInt8.random(in: 0...255, using: &random)])
        case 5...7: event = .opened(attempt)
        case 8...11:
            requests += 1
            waiting.insert(requests)
            let request: [RedisRequest] = [
                .command(RedisCommand("GET", "key")), .command(RedisCommand("SUBSCRIBE", "channel")),
                .script(RedisScript("return 1"), keys: [], arguments: []),
            ]
            let onlyOn = Bool.random(using: &random) ? attempt : nil
            event = .submit(
                requests, request[Int.random(in: 0..<3, using: &random)],
                deadline: now + .milliseconds(Int.random(in: 0..<2000, using: &random)), onlyOn: onlyOn)
        default:
            let hello = "%3\r\n+proto\r\n:3\r\n+mode\r\n+standalone\r\n+role\r\n+master\r\n+PONG\r\n"
            let answers = [
                hello, hello, "+OK\r\n", "-NOSCRIPT\r\n", "-READONLY\r\n", ">1\r\n+subscribe\r\n", ":1\r\n:2\r\n",
            ]
            event = .received(attempt, Array(answers[Int.random(in: 0..<answers.count, using: &random)].utf8))
        }
        perform(connection.handle(event, now: now))
        #expect(connection.requestCount == waiting.count && waiting.count <= 8)
    }

    private mutating func perform(_ effects: [RedisConnection.Effect]) {
        for effect in effects {
            switch effect {
            case .open(let number, _): attempt = number
            case .locate: perform(connection.handle(.located(RedisEndpoint(host: "found", port: 1)), now: now))
            case .complete(let id, _): #expect(waiting.remove(id) != nil, "request \(id) is completed twice")
            case .write(let number, _), .disconnect(let number): #expect(number == attempt)
            case .pushed, .changed: break
            }
        }
    }
}
