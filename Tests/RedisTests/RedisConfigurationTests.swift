import TestSupport
import Testing
import Wire

@testable import Redis

@Suite struct RedisConfigurationTests {
    private static func urls(_ texts: String...) throws -> [RedisURL] { try texts.map { try RedisURL($0) } }

    /// The arguments of the greeting that a connection with these settings sends to a server.
    private func greeting(_ settings: RedisConnection.Settings, _ endpoint: RedisEndpoint) -> String {
        var connection = RedisConnection(settings: settings, random: SeededGenerator(seed: 1))
        let now = Timestamp(milliseconds: 0)
        _ = connection.handle(.start, now: now)
        guard case .open(let attempt, _)? = connection.handle(.located(endpoint), now: now).first,
            case .write(_, let bytes)? = connection.handle(.opened(attempt), now: now).first
        else { return "" }
        return String(decoding: bytes, as: UTF8.self)
    }

    @Test func `the credentials of a URL are sent to no other server`() throws {
        let urls = try Self.urls("redis://:one@a", "redis://confab:two@b", "redis://c", "redis://:three@a")
        let servers = RedisConfiguration(.servers(urls)).settings(for: .primary)
        let sentinels = RedisConfiguration(.sentinels(urls, primaryName: "x", credentials: nil, isSecure: false))
        for settings in [servers, sentinels.settings(for: .sentinel)] {
            let texts = urls.prefix(3).map { greeting(settings, $0.endpoint) }
            #expect(texts[0].contains("\r\none\r\n") && !texts[0].contains("two") && !texts[0].contains("three"))
            #expect(texts[1].contains("\r\nconfab\r\n$3\r\ntwo\r\n") && !texts[1].contains("one"))
            #expect(texts[2].contains("HELLO") && !texts[2].contains("AUTH"))
            // The same host with another port or without TLS is another server.
            #expect(!greeting(settings, RedisEndpoint(host: "a", port: 6380)).contains("AUTH"))
            #expect(!greeting(settings, RedisEndpoint(host: "a", port: 6379, isSecure: true)).contains("AUTH"))
        }
        #expect(!greeting(sentinels.settings(for: .primary), urls[0].endpoint).contains("AUTH"))
    }

    @Test func `the credentials of the primary are sent to each server that Sentinel reports`() throws {
        let urls = try Self.urls("redis://:one@a")
        let configuration = RedisConfiguration(
            .sentinels(urls, primaryName: "x", credentials: RedisCredentials(password: "two"), isSecure: true))
        let text = greeting(configuration.settings(for: .primary), RedisEndpoint(host: "b", port: 1, isSecure: true))
        #expect(text.contains("\r\ntwo\r\n") && !text.contains("one"))
        #expect(!greeting(configuration.settings(for: .sentinel), RedisEndpoint(host: "b", port: 1)).contains("two"))
    }

    @Test func `warns of passwords that are sent without encryption`() throws {
        let urls = try Self.urls(
            "redis://:secret@redis.example", "rediss://:secret@tls.example", "redis://open.example",
            "redis://:secret@127.0.0.1", "redis://:secret@localhost", "redis://:secret@[::1]")
        #expect(
            RedisConfiguration(.servers(urls)).warnings == [
                "The password for redis://redis.example:6379 is sent without encryption. "
                    + "Use rediss:// unless the network is private."
            ])
        func warnings(_ urls: [RedisURL], _ credentials: RedisCredentials?, isSecure: Bool) -> [String] {
            let location = RedisConfiguration.Location.sentinels(
                urls, primaryName: "confab", credentials: credentials, isSecure: isSecure)
            return RedisConfiguration(location).warnings
        }
        let sentinels = try Self.urls("redis://127.0.0.1", "redis://s.example")
        let credentials = RedisCredentials(password: "secret")
        #expect(
            warnings(sentinels, credentials, isSecure: false) == [
                "The password for the primary confab is sent without encryption. "
                    + "Use TLS for it unless the network is private."
            ])
        #expect(warnings(sentinels, credentials, isSecure: true) == [])
        #expect(warnings(sentinels, nil, isSecure: false) == [])
        #expect(warnings(Array(sentinels.prefix(1)), credentials, isSecure: false) == [])
    }
}
