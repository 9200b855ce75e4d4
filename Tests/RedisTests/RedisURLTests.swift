import Redis
import Testing

@Suite struct RedisURLTests {
    @Test func `reads hosts, ports and credentials`() throws {
        let plain = try RedisURL("redis://redis.example")
        #expect(plain.endpoint == RedisEndpoint(host: "redis.example", port: 6379))
        #expect(plain.credentials == nil)
        let full = try RedisURL("rediss://confab:p%40ss%2Fw%3A@[::1]:6380/0")
        #expect(full.endpoint == RedisEndpoint(host: "::1", port: 6380, isSecure: true))
        #expect(full.credentials == RedisCredentials(user: "confab", password: "p@ss/w:"))
        #expect(try RedisURL("redis://:secret@127.0.0.1/").credentials == RedisCredentials(password: "secret"))
    }

    @Test(arguments: [
        "", "redis", "http://host", "redis://", "redis://:secret@", "redis://host:0", "redis://host:70000",
        "redis://host:secret", "redis://host/1", "redis://user@host", "redis://host/?password=secret",
        "redis://host/#secret", "unix:///var/run/redis.sock",
    ])
    func `refuses other URLs without repeating them`(_ text: String) {
        let error = #expect(throws: RedisError.self) { try RedisURL(text) }
        #expect(error?.code == .invalidConfiguration)
        #expect(error?.description.contains("secret") == false)
    }

    @Test func `shows no password`() throws {
        let url = try RedisURL("redis://confab:secret@host")
        let command = RedisCommand("AUTH", "secret")
        var dumped = ""
        dump(url, to: &dumped)
        let script = RedisRequest.script(RedisScript("return 1"), keys: ["secret"], arguments: ["secret"])
        dump(command, to: &dumped)
        dump(script, to: &dumped)
        for text in ["\(command.arguments)", "\(script)", String(reflecting: command), String(reflecting: script)] {
            #expect(!text.contains("secret") && !text.contains("\(UInt8(ascii: "s")), "), "\(text)")
        }
        #expect(!dumped.contains("\(UInt8(ascii: "s"))\n"), "the bytes are not shown either")
        for text in ["\(url)", "\(String(reflecting: url))", "\(url.credentials, default: "")", dumped, "\(command)"] {
            #expect(!text.contains("secret"), "\(text)")
        }
        #expect("\(url)" == "redis://host:6379")
        #expect("\(RedisEndpoint(host: "::1", port: 1, isSecure: true))" == "rediss://[::1]:1")
    }

    @Test func `names a script by the SHA-1 of its text`() {
        // From Redis's documentation of EVALSHA.
        #expect(RedisScript("return 1").sha1 == "e0e1f9fabfc9d4800c877a703b823ac0578ff8db")
    }
}
