import Testing
import Wire

@testable import Redis

extension RedisConnectionTests {
    private static let missing = "-NOSCRIPT No matching script.\r\n"

    private static func run(_ text: String, _ script: RedisScript = script) -> RedisRequest {
        .script(script, keys: [], arguments: [.text(text)])
    }

    /// The commands and arguments of scripts in what is written.
    private static func words(_ effects: [Effect]) -> [Substring] {
        text(effects).split(separator: "\r\n").filter { ["EVAL", "EVALSHA", "one", "two", "three"].contains($0) }
    }

    /// Runs the script, so that it is not the first time on this connection.
    private mutating func useScript() {
        _ = submit(100, Self.run("first"))
        #expect(Self.completions(receive(":1\r\n")).count == 1)
    }

    @Test mutating func `a script is sent with its text once for each connection, and then by its SHA-1`() {
        connect()
        let request = RedisRequest.script(Self.script, keys: ["k"], arguments: ["a"])
        let first = "*5\r\n$4\r\nEVAL\r\n$8\r\nreturn 1\r\n$1\r\n1\r\n$1\r\nk\r\n$1\r\na\r\n"
        #expect(Self.text(submit(1, request)) == first)
        #expect(
            Self.text(submit(2, request))
                == "*5\r\n$7\r\nEVALSHA\r\n$40\r\n\(Self.script.sha1)\r\n$1\r\n1\r\n$1\r\nk\r\n$1\r\na\r\n")
        #expect(receive(":1\r\n:1\r\n").count == 2)
        _ = handle(.closed(1, reason: "reset"))
        _ = next()
        connect(2)
        #expect(Self.text(submit(3, request)) == first)
    }

    @Test mutating func `different scripts keep their order when a connection uses them for the first time`() {
        connect()
        useScript()
        // The server has the first script. It must not overtake the second one.
        let unknown = Self.words(submit(2, Self.run("two", RedisScript("return 2"))))
        #expect(unknown == ["EVAL", "two"])
        #expect(Self.words(submit(3, Self.run("three"))) == ["EVALSHA", "three"])
        #expect(Self.completions(receive(":2\r\n:1\r\n")).count == 2)
    }

    @Test mutating func `scripts that were flushed are sent again in order, before later requests`() {
        connect()
        useScript()
        _ = submit(1, Self.run("one"))
        _ = submit(2, Self.run("two"))
        #expect(receive(Self.missing) == [])
        #expect(submit(3, Self.run("three")) == [], "nothing overtakes the scripts")
        #expect(Self.words(receive(Self.missing)) == ["EVAL", "one", "EVAL", "two", "EVALSHA", "three"])
        #expect(Self.completions(receive(":1\r\n:2\r\n:3\r\n")).count == 3)
    }

    @Test mutating func `a script that was not executed waits for the next connection`() {
        connect()
        useScript()
        _ = submit(1, Self.run("one"))
        _ = submit(2)
        _ = receive(Self.missing)
        let effects = handle(.closed(1, reason: "reset"))
        #expect(Self.completions(effects).keys.sorted() == [2])
        _ = next()
        connect(2)
        #expect(connection.requestCount == 1)
        #expect(receive(":1\r\n", on: 2) == [.complete(1, .success(.number(1)))])
    }

    @Test mutating func `what waits is sent when an unknown script has expired`() {
        connect()
        useScript()
        _ = submit(1, Self.run("one"), until: Timestamp(milliseconds: 2000))
        _ = submit(2)
        _ = receive(Self.missing)
        #expect(submit(3) == [])
        #expect(next().count == 2)
        #expect(receive(":2\r\n") == [.complete(2, .success(.number(2)))])
        #expect(receive(":3\r\n") == [.complete(3, .success(.number(3)))])
    }
}
