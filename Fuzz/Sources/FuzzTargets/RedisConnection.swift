@testable import Redis
import Wire

extension FuzzTarget {
    /// Fuzzes a connection to Redis: requests, losses, passing time, and a server that sends anything. Each request must be
    /// completed exactly once, and only a limited number may wait.
    static let redisConnection = FuzzTarget("redis-connection", longestInput: 400, dictionary: "resp") {
        input throws(BrokenProperty) in
        var script = RedisEventScript()
        var reader = InputReader(input)
        try script.perform(.start)
        while !reader.isEmpty { try script.step(&reader) }
        try script.perform(.close)
        try require(script.waiting.isEmpty, "requests \(script.waiting.sorted()) are never completed")
    }
}

/// A connection to Redis whose events the input selects.
private struct RedisEventScript {
    private static let maxRequests = 6
    private static let hello = "%3\r\n+proto\r\n:3\r\n+mode\r\n+standalone\r\n+role\r\n+master\r\n+PONG\r\n"
    private static let answers = ["+OK\r\n", "-NOSCRIPT\r\n", "-READONLY\r\n", ">1\r\n+subscribe\r\n", hello]

    private var connection: RedisConnection
    private var now = Timestamp(milliseconds: 0)
    private var attempt: UInt64 = 0
    private var isOpen = false
    private var requests: UInt64 = 0
    /// The requests that are not completed.
    private(set) var waiting: Set<UInt64> = []

    init() {
        var settings = RedisConnection.Settings()
        (settings.maxRequests, settings.maxRequestBytes) = (Self.maxRequests, 1000)
        connection = RedisConnection(settings: settings, random: CountingGenerator())
    }

    mutating func step(_ reader: inout InputReader) throws(BrokenProperty) {
        let choice = reader.byte()
        switch choice % 8 {
        case 0: try perform(.opened(attempt))
        case 1:
            try perform(.opened(attempt))
            try perform(.received(attempt, Array(Self.hello.utf8)))
        case 2: try perform(.received(attempt, reader.bytes(reader.index(below: 40))))
        case 3: try perform(.received(attempt, Array((reader.pick(Self.answers) ?? "").utf8)))
        case 4:
            isOpen = false
            try perform(.closed(attempt, reason: "reset"))
        case 5: try perform(.moved(RedisEndpoint(host: "moved", port: Int(choice))))
        case 6:
            now = max(now, connection.nextTimeout ?? now)
            try carryOut(connection.handleTimeout(now: now))
        default: try submit(choice >> 3)
        }
        try require(
            connection.requestCount == waiting.count, "\(connection.requestCount) requests wait, not \(waiting)")
        try require(waiting.count <= Self.maxRequests, "\(waiting.count) requests wait")
    }

    private mutating func submit(_ choice: UInt8) throws(BrokenProperty) {
        let kinds: [RedisRequest] = [
            .command(RedisCommand("GET", "key")), .command(RedisCommand("SUBSCRIBE", "channel")),
            .script(RedisScript("return 1"), keys: ["key"], arguments: []),
            .command(RedisCommand("SET", "key", .bytes([UInt8](repeating: 0, count: 500)))),
        ]
        requests += 1
        waiting.insert(requests)
        try perform(
            .submit(
                requests, kinds[Int(choice & 3)], deadline: now + .milliseconds(Int(choice) * 50),
                onlyOn: choice & 4 == 0 ? nil : attempt))
    }

    mutating func perform(_ event: RedisConnection.Event) throws(BrokenProperty) {
        try carryOut(connection.handle(event, now: now))
    }

    private mutating func carryOut(_ effects: [RedisConnection.Effect]) throws(BrokenProperty) {
        for effect in effects {
            switch effect {
            case .locate: try perform(.located(RedisEndpoint(host: "found", port: 1)))
            case .open(let number, _):
                try require(!isOpen, "connection \(number) is opened before the earlier one is closed")
                (attempt, isOpen) = (number, true)
            case .disconnect(let number):
                try require(number == attempt, "connection \(number) is not the current one")
                isOpen = false
            case .write(let number, let bytes):
                try require(number == attempt && !bytes.isEmpty, "\(bytes.count) bytes are written to \(number)")
            case .complete(let id, _):
                try require(waiting.remove(id) != nil, "request \(id) is completed twice")
            case .pushed, .changed: break
            }
        }
    }
}
