import Testing
import Wire

@testable import Redis

extension RedisConnectionTests {
    @Test mutating func `notices within 5 s that an idle server is dead`() {
        connect()
        let ping = "*1\r\n$4\r\nPING\r\n"
        #expect(Self.text(next()) == ping)
        #expect(now == Timestamp(milliseconds: 3000))
        #expect(connection.requestCount == 0)
        #expect(receive("+PONG\r\n") == [], "nobody has requested it")
        #expect(Self.text(next()) == ping)
        #expect(now == Timestamp(milliseconds: 5000))
        let effects = next()
        #expect(now == Timestamp(milliseconds: 8000), "5 s after the last bytes")
        #expect(effects.first == .disconnect(1))
        #expect(Self.reason(effects)?.code == .timedOut)
        #expect(effects.count == 2, "nobody waits for the result of the check")
    }

    @Test mutating func `gives up a silent server before a request's own deadline`() {
        connect()
        _ = submit(1, until: Timestamp(milliseconds: 60_000))
        now = Timestamp(milliseconds: 3500)
        // Parts of answers show that the server lives.
        #expect(receive("$4\r\nab") == [])
        #expect(connection.handleTimeout(now: Timestamp(milliseconds: 4000)) == [])
        let effects = next()
        #expect(now == Timestamp(milliseconds: 6500))
        #expect(effects.first == .disconnect(1))
        #expect(Self.error(effects, 1)?.code == .connectionLost)
        #expect(Self.error(effects, 1)?.mayHaveExecuted == true)
    }

    @Test mutating func `a request after a long silence gets the whole time for its answer`() {
        connect()
        now = Timestamp(milliseconds: 2900)
        _ = submit(1, until: Timestamp(milliseconds: 60_000))
        #expect(connection.nextTimeout == Timestamp(milliseconds: 5900))
        // The answer of a user who may not send PING shows that the server lives, too.
        _ = receive("_\r\n")
        _ = next()
        #expect(receive("-NOPERM this user has no permissions to run the 'ping' command\r\n") == [])
        #expect(submit(2).count == 1)
    }
}
