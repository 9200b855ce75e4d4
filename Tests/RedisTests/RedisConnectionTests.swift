import TestSupport
import Testing
import Wire

@testable import Redis

/// Scripts of events and the effects that must result.
@Suite struct RedisConnectionTests {
    typealias Effect = RedisConnection.Effect

    static let first = RedisEndpoint(host: "first", port: 6379)
    static let second = RedisEndpoint(host: "second", port: 6379)
    static let deadline = Timestamp(milliseconds: 10_000)
    static let get = RedisRequest.command(RedisCommand("GET", "key"))
    static let script = RedisScript("return 1")

    var connection: RedisConnection
    var now = Timestamp(milliseconds: 1000)

    init() { connection = Self.connection() }

    static func connection(_ change: (inout RedisConnection.Settings) -> Void = { _ in }) -> RedisConnection {
        var settings = RedisConnection.Settings()
        change(&settings)
        return RedisConnection(settings: settings, random: SeededGenerator(seed: 1))
    }

    mutating func handle(_ event: RedisConnection.Event) -> [Effect] { connection.handle(event, now: now) }

    /// Lets time pass until the next timeout.
    mutating func next() -> [Effect] {
        now = connection.nextTimeout ?? now
        return connection.handleTimeout(now: now)
    }

    mutating func submit(
        _ id: UInt64, _ request: RedisRequest = get, until deadline: Timestamp = deadline, onlyOn: UInt64? = nil
    ) -> [Effect] {
        handle(.submit(id, request, deadline: deadline, onlyOn: onlyOn))
    }

    mutating func receive(_ text: String, on attempt: UInt64 = 1) -> [Effect] {
        handle(.received(attempt, Array(text.utf8)))
    }

    static func hello(role: String = "master", mode: String = "standalone", proto: Int = 3) -> String {
        "%4\r\n+version\r\n+7.0.15\r\n+proto\r\n:\(proto)\r\n+mode\r\n+\(mode)\r\n+role\r\n+\(role)\r\n"
    }

    /// Opens connection number `attempt`, until it is ready.
    mutating func connect(_ attempt: UInt64 = 1, to endpoint: RedisEndpoint = first) {
        if attempt == 1 { #expect(handle(.start) == [.locate(failed: nil)]) }
        #expect(handle(.located(endpoint)) == [.open(attempt, endpoint)])
        #expect(handle(.opened(attempt)).count == 1)
        #expect(receive(Self.hello(), on: attempt) == [])
        #expect(receive("+PONG\r\n", on: attempt).first == .changed(Self.ready(attempt, endpoint)))
    }

    static func ready(_ connection: UInt64, _ endpoint: RedisEndpoint) -> RedisState {
        .ready(RedisServer(connection: connection, endpoint: endpoint, version: "7.0.15"))
    }

    static func text(_ effects: [Effect]) -> String {
        effects.map { if case .write(_, let bytes) = $0 { String(decoding: bytes, as: UTF8.self) } else { "" } }
            .joined()
    }

    static func completions(_ effects: [Effect]) -> [UInt64: Result<RESPValue, RedisError>] {
        Dictionary(
            uniqueKeysWithValues: effects.compactMap {
                if case .complete(let id, let result) = $0 { (id, result) } else { nil }
            })
    }

    static func error(_ effects: [Effect], _ id: UInt64) -> RedisError? {
        if case .failure(let error)? = completions(effects)[id] { error } else { nil }
    }

    /// The reason of the last change to `disconnected`.
    static func reason(_ effects: [Effect]) -> RedisError? {
        effects.compactMap { if case .changed(.disconnected(let error)) = $0 { error } else { nil } }.last
    }

    // MARK: Connecting

    @Test mutating func `greets with the protocol, the user and the name`() {
        connection = Self.connection {
            $0.credentials = .servers([Self.first: RedisCredentials(user: "confab", password: "secret")])
            $0.clientName = "n1"
        }
        _ = handle(.start)
        _ = handle(.located(Self.first))
        let text = Self.text(handle(.opened(1)))
        #expect(
            text == "*7\r\n$5\r\nHELLO\r\n$1\r\n3\r\n$4\r\nAUTH\r\n$6\r\nconfab\r\n$6\r\nsecret\r\n"
                + "$7\r\nSETNAME\r\n$2\r\nn1\r\n*1\r\n$4\r\nPING\r\n")
    }

    @Test mutating func `sends what waited when the server is ready, at once and in order`() {
        #expect(submit(1) == [])
        #expect(submit(2, .command(RedisCommand("SET", "key", 5))) == [])
        _ = handle(.start)
        _ = handle(.located(Self.first))
        _ = handle(.opened(1))
        #expect(receive(Self.hello()) == [])
        let effects = receive("+PONG\r\n")
        #expect(effects.first == .changed(Self.ready(1, Self.first)))
        #expect(
            Self.text(effects)
                == "*2\r\n$3\r\nGET\r\n$3\r\nkey\r\n*3\r\n$3\r\nSET\r\n$3\r\nkey\r\n$1\r\n5\r\n")
        #expect(
            receive("_\r\n+OK\r\n")
                == [.complete(1, .success(.null)), .complete(2, .success(.simpleString(Array("OK".utf8))))])
    }

    @Test(arguments: [
        ("-WRONGPASS invalid username-password pair or user is disabled.\r\n", RedisError.Code.authenticationFailed),
        ("-NOAUTH HELLO must be called with the client already authenticated\r\n", .authenticationFailed),
        ("-NOPERM this user has no permissions\r\n", .authenticationFailed),
        ("-NOPROTO unsupported protocol version\r\n", .unsuitable),
        ("-ERR unknown command `HELLO`, with args beginning with: `3`, `AUTH`, `confab`, `secret`, \r\n", .unsuitable),
        ("-secret\r\n", .unavailable),
        ("-ERR max number of clients reached\r\n", .unavailable),
        ("-DENIED Redis is running in protected mode\r\n", .unavailable),
        ("-LOADING Redis is loading the dataset in memory\r\n", .unavailable),
        ("-MASTERDOWN Link with MASTER is down\r\n", .notPrimary),
        ("-BUSY Redis is busy running a script.\r\n", .unavailable),
        ("-ERR something else\r\n", .unavailable),
        (hello(role: "replica"), .notPrimary),
        (hello(mode: "cluster"), .unsuitable),
        (hello(mode: "sentinel"), .unsuitable),
        (hello(proto: 2), .protocolViolation),
        ("+OK\r\n", .protocolViolation),
        ("*0\r\n", .protocolViolation),
        ("?\r\n", .protocolViolation),
        (hello() + "-LOADING Redis is loading the dataset in memory\r\n", .unavailable),
        (hello() + "-BUSY Redis is busy running a script.\r\n", .unavailable),
        (hello() + "-MASTERDOWN Link with MASTER is down\r\n", .notPrimary),
    ])
    mutating func `a server that cannot be used is left, and another one is wanted after a pause`(
        _ answer: String, _ code: RedisError.Code
    ) throws {
        _ = handle(.start)
        _ = handle(.located(Self.first))
        _ = handle(.opened(1))
        let effects = receive(answer)
        let error = try #require(Self.reason(effects))
        #expect(error.code == code)
        #expect(!error.description.contains("confab"))
        #expect(!error.description.contains("secret"))
        #expect(code == .unsuitable || !error.description.contains("7.0"), "the version is not what is wrong")
        #expect(effects == [.disconnect(1), .changed(.disconnected(error))])
        #expect(handle(.closed(1, reason: "")) == [])
        let until = try #require(connection.nextTimeout)
        #expect(until > now && until <= now + .milliseconds(250))
        #expect(connection.handleTimeout(now: until - .milliseconds(1)) == [])
        #expect(connection.handleTimeout(now: until) == [.locate(failed: Self.first)])
        #expect(handle(.located(Self.second)) == [.open(2, Self.second)])
    }

    @Test mutating func `a user who may not send PING can be used`() {
        _ = handle(.start)
        _ = handle(.located(Self.first))
        _ = handle(.opened(1))
        #expect(
            receive(Self.hello() + "-NOPERM this user has no permissions to run the 'ping' command\r\n")
                == [.changed(Self.ready(1, Self.first))])
    }

    @Test mutating func `pauses grow while no server answers, and start again after a lasting connection`() {
        _ = handle(.start)
        var pauses: [Duration] = []
        for attempt in UInt64(1)...6 {
            _ = handle(.located(Self.first))
            _ = handle(.closed(attempt, reason: "refused"))
            let before = now
            _ = next()
            pauses.append(now - before)
        }
        #expect(pauses[0] <= .milliseconds(250))
        #expect(pauses[5] >= .milliseconds(500) && pauses[5] <= .seconds(1), "\(pauses)")
        connect(7)
        now = now + .seconds(1)
        _ = handle(.closed(7, reason: "reset"))
        #expect((connection.nextTimeout ?? now) - now <= .milliseconds(250))
    }

    @Test mutating func `gives up a server that does not accept or greet in time`() {
        _ = handle(.start)
        _ = handle(.located(Self.first))
        let silent = next()
        #expect(now == Timestamp(milliseconds: 6000))
        #expect(silent.first == .disconnect(1))
        #expect(Self.reason(silent)?.code == .connectionLost)
        _ = next()
        _ = handle(.located(Self.first))
        #expect(handle(.opened(1)) == [], "the channel of an earlier attempt")
        #expect(handle(.opened(2)).count == 1)
        #expect(receive(Self.hello(), on: 2) == [])
        #expect(next().first == .disconnect(2))
    }

    @Test mutating func `moves to the new primary, and fails what the old one had`() {
        connect()
        _ = submit(1)
        let effects = handle(.moved(Self.second))
        #expect(effects.first == .disconnect(1))
        #expect(Self.error(effects, 1)?.mayHaveExecuted == true)
        #expect(receive("_\r\n", on: 1) == [], "an answer of the old primary")
        // The first attempt was just now, so this one has a pause before it.
        #expect(next() == [.open(2, Self.second)])
        #expect(handle(.moved(Self.second)) == [], "it is being connected already")
    }

    @Test mutating func `follows a move at once after a lasting connection, and many moves with pauses`() {
        connect()
        now = now + .seconds(1)
        #expect(handle(.moved(Self.second)).last == .open(2, Self.second))
        var opened = 0
        for index in 1...1000 {
            let target = RedisEndpoint(host: "target", port: index)
            opened += handle(.moved(target)).count { if case .open = $0 { true } else { false } }
        }
        #expect(opened == 0)
        #expect(next() == [.open(3, RedisEndpoint(host: "target", port: 1000))], "only the last one is used")
        #expect(handle(.moved(Self.first)).first == .disconnect(3), "also while it is being connected")
    }

    @Test mutating func `a server that becomes a replica is left`() throws {
        connect()
        _ = submit(1)
        _ = submit(2)
        let effects = receive("-READONLY You can't write against a read only replica.\r\n")
        #expect(
            Array(effects.prefix(2)) == [.disconnect(1), .changed(.disconnected(try #require(Self.reason(effects))))])
        #expect(
            Self.error(effects, 1)
                == RedisError(
                    .notPrimary, "Redis answered: READONLY You can't write against a read only replica.",
                    serverCode: "READONLY"))
        #expect(Self.error(effects, 2)?.mayHaveExecuted == true)
        #expect(effects.contains(.disconnect(1)))
    }

    // MARK: Requests

    @Test mutating func `a loss fails what was sent, and says that it may have been executed`() throws {
        connect()
        _ = submit(1)
        _ = submit(2)
        let effects = handle(.closed(1, reason: "connection reset"))
        let reason = try #require(Self.reason(effects))
        // The change comes first, so that those whose requests fail know it.
        #expect(effects.first == .changed(.disconnected(reason)))
        for id in [UInt64(1), 2] {
            let error = try #require(Self.error(effects, id))
            #expect(error.code == .connectionLost && error.mayHaveExecuted)
            #expect(error.description.contains("may have been executed"))
        }
        #expect(submit(3) == [], "it waits for the next connection")
        #expect(next() == [.locate(failed: nil)])
        connect(2)
        #expect(receive("_\r\n", on: 2) == [.complete(3, .success(.null))])
    }

    @Test mutating func `a request that is bound to a connection is sent on no other one`() {
        connect()
        #expect(submit(1, onlyOn: 1).count == 1)
        #expect(
            Self.error(submit(2, onlyOn: 7), 2)
                == RedisError(.connectionLost, "The connection for which this command was meant is lost."))
        let effects = handle(.closed(1, reason: "reset"))
        #expect(Self.error(effects, 1)?.mayHaveExecuted == true)
        #expect(Self.error(submit(3, onlyOn: 1), 3)?.mayHaveExecuted == false)
        _ = next()
        connect(2)
        #expect(Self.error(submit(4, onlyOn: 1), 4)?.code == .connectionLost)
        #expect(submit(5, onlyOn: 2).count == 1)
    }

    @Test mutating func `a request that was not sent in time was not executed`() {
        _ = handle(.start)
        _ = submit(1, until: Timestamp(milliseconds: 2000))
        _ = submit(2, until: Timestamp(milliseconds: 3000))
        let effects = next()
        #expect(now == Timestamp(milliseconds: 2000))
        #expect(Self.error(effects, 1)?.code == .timedOut)
        #expect(Self.error(effects, 1)?.mayHaveExecuted == false)
        #expect(connection.nextTimeout == Timestamp(milliseconds: 3000))
        #expect(connection.requestCount == 1)
    }

    @Test mutating func `a server that does not answer in time is left`() {
        connect()
        _ = submit(1, until: Timestamp(milliseconds: 3000))
        _ = submit(2, until: Timestamp(milliseconds: 9000))
        let effects = next()
        #expect(now == Timestamp(milliseconds: 3000))
        #expect(Self.error(effects, 1)?.code == .timedOut)
        #expect(Self.error(effects, 1)?.mayHaveExecuted == true)
        #expect(Self.error(effects, 2)?.code == .connectionLost)
        let reason = RedisError(.timedOut, "Redis did not answer in time.")
        #expect(Array(effects.prefix(2)) == [.disconnect(1), .changed(.disconnected(reason))])
    }

    @Test mutating func `a request without time is not sent`() {
        connect()
        let effects = submit(1, until: now)
        #expect(effects.count == 1)
        #expect(Self.error(effects, 1)?.code == .timedOut)
        #expect(Self.error(effects, 1)?.mayHaveExecuted == false)
        #expect(connection.handleTimeout(now: now) == [], "the connection is kept")
    }

    @Test mutating func `an answer in time leaves only the check of an idle connection`() {
        connect()
        _ = submit(1, until: Timestamp(milliseconds: 2500))
        #expect(connection.nextTimeout == Timestamp(milliseconds: 2500))
        _ = receive("_\r\n")
        #expect(connection.nextTimeout == Timestamp(milliseconds: 3000))
    }

    @Test mutating func `refuses more requests or bytes than may wait`() {
        connection = Self.connection { ($0.maxRequests, $0.maxRequestBytes) = (3, 1000) }
        connect()
        _ = submit(1)
        #expect(
            Self.error(submit(2, .command(RedisCommand("SET", "k", .bytes([UInt8](repeating: 0, count: 950))))), 2)?
                .code == .overloaded)
        _ = submit(3)
        _ = submit(4)
        #expect(Self.error(submit(5), 5)?.code == .overloaded)
        _ = receive("_\r\n")
        #expect(submit(6).count == 1, "there is a place again")
        // A script counts with its text, which may have to be sent.
        _ = receive("_\r\n_\r\n_\r\n")
        let long = RedisScript(String(repeating: "-", count: 1000))
        #expect(Self.error(submit(7, .script(long, keys: [], arguments: [])), 7)?.code == .overloaded)
        #expect(connection.requestCount == 0)
    }

    @Test mutating func `messages that answer nothing do not disturb the order`() {
        connect()
        _ = submit(1)
        let message = ">2\r\n+invalidate\r\n_\r\n"
        #expect(
            receive(message + "|1\r\n+a\r\n+b\r\n:1\r\n" + message)
                == [
                    .pushed([.simpleString(Array("invalidate".utf8)), .null]), .complete(1, .success(.number(1))),
                    .pushed([.simpleString(Array("invalidate".utf8)), .null]),
                ])
    }

    @Test mutating func `a subscription is confirmed by a push`() {
        connect()
        _ = submit(1, .command(RedisCommand("SUBSCRIBE", "+switch-master")))
        _ = submit(2)
        let effects = receive(">3\r\n+subscribe\r\n+x\r\n:1\r\n_\r\n")
        #expect(Self.completions(effects).keys.sorted() == [1, 2])
        _ = submit(3, .command(RedisCommand("SUBSCRIBE", "x")))
        #expect(Self.error(receive("-NOPERM no\r\n"), 3)?.serverCode == "NOPERM")
        _ = submit(4, .command(RedisCommand("PSUBSCRIBE", "+*")))
        #expect(receive(">3\r\n+subscribe\r\n+x\r\n:1\r\n").count == 1)
        #expect(connection.requestCount == 1, "this confirms another kind of subscription")
        #expect(Self.completions(receive(">3\r\n+psubscribe\r\n+x\r\n:1\r\n")).keys.sorted() == [4])
    }

    @Test(arguments: [":1\r\n", "x", "*?\r\n", "*99999999999\r\n"])
    mutating func `a server that breaks the protocol is left`(_ text: String) {
        connect()
        let effects = receive(text)
        #expect(effects.first == .disconnect(1))
        #expect(Self.reason(effects)?.code == .protocolViolation)
        #expect(receive(":1\r\n") == [])
    }

    @Test mutating func `closing fails everything, and is final`() {
        connect()
        _ = submit(1)
        let effects = handle(.close)
        #expect(effects.prefix(2) == [.disconnect(1), .changed(.closed)])
        #expect(Self.error(effects, 1)?.code == .closed)
        #expect(Self.error(effects, 1)?.mayHaveExecuted == true)
        #expect(Self.error(submit(2), 2)?.code == .closed)
        for event in [RedisConnection.Event.close, .start, .located(Self.first), .moved(Self.second), .opened(1)] {
            #expect(handle(event) == [])
        }
        #expect(connection.nextTimeout == nil)
    }
}
