import Foundation
import NIOCore
import Signaling
import TestSupport
import Testing
import Wire

@testable import Server

/// The URLs that the server prints and leaves for commands.
@Suite("URLs of the server", .ownThreads, .timeLimit(.minutes(3)))
struct ServerURLsTests {
    private static let addresses = ["192.168.1.20", "203.0.113.9", "fd00::5", "2001:db8::5", "172.17.0.1"]
        .compactMap { IPAddress($0) }

    @Test(
        "every one can be opened",
        arguments: [
            ("127.0.0.1", "http://127.0.0.1:8080", []), ("chat.lan", "http://chat.lan:8080", []),
            ("::1", "http://[::1]:8080", []), ("2001:db8::5", "http://[2001:db8::5]:8080", []),
            ("0.0.0.0", "http://127.0.0.1:8080", ["192.168.1.20", "203.0.113.9", "172.17.0.1"]),
            ("::", "http://[::1]:8080", ["127.0.0.1", "192.168.1.20", "203.0.113.9", "[fd00::5]", "[2001:db8::5]"]),
            (
                "0:0:0:0:0:0:0:0", "http://[::1]:8080",
                ["127.0.0.1", "192.168.1.20", "203.0.113.9", "[fd00::5]", "[2001:db8::5]"]
            ),
        ] as [(String, String, [String])])
    func urls(host: String, main: String, others: [String]) {
        let urls = ServerURLs(host: host, port: 8080, isSecure: false, addresses: Self.addresses)
        #expect(urls.main == main)
        #expect(urls.others == others.map { "http://\($0):8080" })
    }

    @Test(
        "the ready line has one that works, with the hint for two tabs",
        arguments: [
            ("127.0.0.1", nil, false, "http://127.0.0.1:18121"), ("::1", nil, false, "http://[::1]:18121"),
            ("::", nil, true, "https://[::1]:18121"), ("0.0.0.0", nil, false, "http://127.0.0.1:18121"),
            ("::", "https://example.org/video", false, "https://example.org/video"),
        ] as [(String, String?, Bool, String)])
    func ready(host: String, publicURL: String?, isSecure: Bool, url: String) {
        var configuration = ConfabConfiguration()
        (configuration.host, configuration.publicURL) = (host, publicURL)
        let ready = ConfabServer.Ready(
            configuration, port: 18121, isSecure: isSecure, lan: nil, addresses: Self.addresses)
        #expect(ready.url == url)
        #expect(ready.line.hasPrefix("Confab is ready: \(url) "))
        #expect(ready.line.contains("open \(url)/?guest=1 in two tabs"))
        let isWildcard = IPAddress(host)?.isUnspecified == true
        #expect(ready.notes.isEmpty == (!isWildcard || publicURL != nil), "\(ready.notes)")
        for note in ready.notes { #expect(note.contains("https") == isSecure && note.contains("//192.168.1.20:18121")) }
    }

    @Test("hosts may have the brackets of URLs", arguments: ["host", "metrics.host"])
    func hosts(key: String) throws {
        let setting = try #require(Setting.all.first { $0.key.name == key })
        var configuration = ConfabConfiguration()
        let hosts = [("[::1]", "::1"), ("::", "::"), ("localhost", "localhost"), ("fe80::1%eth0", "fe80::1%eth0")]
        for (given, stored) in hosts {
            #expect(setting.store([given], &configuration))
            #expect(setting.text(configuration) == stored)
        }
        for bad in ["[localhost]", "[]", "", "a b", "[::1"] { #expect(!setting.store([bad], &configuration)) }
    }

    static let hasIPv6 = ((try? System.enumerateDevices()) ?? []).contains { $0.address?.ipAddress == "::1" }

    @Test(
        "a server that listens on IPv6 prints an address that opens, and commands find it",
        .enabled(if: hasIPv6, "this machine has no IPv6"), arguments: ["::1", "::"])
    func server(host: String) async throws {
        try await TestServer.run({ $0.host = host }) { server in
            let address = try #require(try ServerAddressFile.read(in: server.dataDirectory))
            #expect(address == "http://[::1]:\(server.port)")
            let project = try server.project.project
            let client = try OperatorClient(server: nil, dataDirectory: server.dataDirectory, project: project)
            _ = try await client.send("GET", "/v1/rooms")
            let other = try OperatorClient(
                server: address, dataDirectory: server.dataDirectory, project: project)
            _ = try await other.send("GET", "/v1/rooms")
            guard host == "::" else { return }
            #expect(try await WHIPPlace(server).ask("GET", "/health").status == 200, "IPv4 works too")
        }
    }
}
