import Testing

@testable import Redis

/// Texts of servers are shown to operators.
extension RedisConnectionTests {
    @Test mutating func `an error that answers a command names Redis's code, but no arguments`() {
        connect()
        _ = submit(1)
        let error = Self.error(
            receive("-ERR unknown command 'FOO', with args beginning with: 'secret' \r\n"), 1)
        #expect(error == RedisError(.rejected, "Redis answered: ERR unknown command 'FOO'", serverCode: "ERR"))
        _ = submit(2)
        let long = Self.error(receive("!1003\r\nERR" + String(repeating: "x", count: 1000) + "\r\n"), 2)
        #expect(long?.message.count == "Redis answered: ".count + 256)
        #expect(long?.serverCode == nil, "this is no code")
    }

    @Test(arguments: [
        ("-ERR a\u{1B}[31mb\u{7}\u{202E}c\r\n", "ERR a[31mbc", "ERR"),
        ("!8\r\nERR a\r\nb\r\n", "ERR ab", "ERR"),
        ("-WRONG_2 x\r\n", "WRONG_2 x", "WRONG_2"),
        ("-Err x\r\n", "Err x", nil),
        ("-ERR\u{E9} x\r\n", "ERR\u{E9} x", nil),
        ("-\r\n", "", nil),
        (
            "-\(String(repeating: "A", count: 32)) x\r\n", "\(String(repeating: "A", count: 32)) x",
            String(repeating: "A", count: 32)
        ),
        ("-\(String(repeating: "A", count: 33)) x\r\n", "\(String(repeating: "A", count: 33)) x", nil),
    ])
    mutating func `an error that answers a command can be printed`(_ answer: String, _ message: String, _ code: String?)
    {
        connect()
        _ = submit(1)
        let error = Self.error(receive(answer), 1)
        #expect(error == RedisError(.rejected, "Redis answered: \(message)", serverCode: code))
    }

    @Test mutating func `the version of a server can be printed`() {
        _ = handle(.start)
        _ = handle(.located(Self.first))
        _ = handle(.opened(1))
        let version = "7.0\u{1B}[31m" + String(repeating: "9", count: 100)
        _ = receive(Self.hello().replacing("7.0.15", with: version))
        guard case .changed(.ready(let server))? = receive("+PONG\r\n").first else {
            Issue.record("the server is not used")
            return
        }
        #expect(server.version == "7.0[31m" + String(repeating: "9", count: 24))
    }
}
