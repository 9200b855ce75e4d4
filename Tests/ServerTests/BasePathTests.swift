import Foundation
import NIOCore
import NIOHTTP1
import Signaling
import TestSupport
import Testing
import Wire

@testable import Server

/// A server below a path of a site. The path is in `publicURL`.
@Suite("A base path", .ownThreads, .timeLimit(.minutes(3)))
struct BasePathTests {
    private static func configuration(_ publicURL: String?) -> ConfabConfiguration {
        var configuration = ConfabConfiguration()
        configuration.publicURL = publicURL
        return configuration
    }

    @Test(
        "requests lose it, whether a proxy has removed it or not",
        arguments: [
            (nil, "/strangers", "/strangers"), ("https://chat.example.org", "/video/x", "/video/x"),
            ("https://example.org/video", "/video/", "/"),
            ("https://example.org/video", "/video/?guest=1", "/?guest=1"),
            ("https://example.org/video", "/video/room/tea?a", "/room/tea?a"),
            ("https://example.org/video", "/room/video/", "/room/video/"), ("https://example.org/video", "/", "/"),
            ("https://example.org/video", "/video", "/video"), ("https://example.org/video", "/video?a", "/video?a"),
            ("https://example.org/video", "/videos/", "/videos/"), ("https://example.org/video", "/VIDEO/", "/VIDEO/"),
            ("https://example.org/video", "/video//evil.example/", "//evil.example/"),
            ("https://example.org/a/b.c", "/a/b.c/v1/socket", "/v1/socket"),
            ("https://[::1]:80/v", "/v/health", "/health"),
            ("https://example.org/video", "*", "*"), ("https://example.org/video", "", ""),
        ] as [(String?, String, String)])
    func removal(publicURL: String?, target: String, expected: String) {
        #expect(BasePath(Self.configuration(publicURL)).removed(from: target) == expected)
    }

    @Test("without its last slash it leads to the front page")
    func redirection() {
        #expect(BasePath(Self.configuration("https://example.org/a/video")).redirection == "/a/video/")
        #expect(BasePath(Self.configuration("https://example.org")).redirection == nil)
        #expect(BasePath(Self.configuration(nil)).redirection == nil)
    }

    @Test("it does not begin with a path of the server, or the server could not tell them apart")
    func reserved() throws {
        let files = embeddedWebFiles.keys.compactMap { $0.split(separator: "/").first.map(String.init) }
        #expect(BasePath.reserved.isSuperset(of: files.filter { ["app", "lib", "socket.io", "v2"].contains($0) }))
        #expect(BasePath.reserved.isSuperset(of: Feature.allCases.map(\.rawValue)))
        for name in BasePath.reserved {
            let overrides = ["publicURL": "https://example.org/\(name)/x"]
            let error = #expect(throws: ConfigurationError.self) {
                _ = try ConfabConfiguration.load(overrides: overrides, environment: [:])
            }
            #expect("\(error.map { "\($0)" } ?? "")".contains("/\(name), which is a path of Confab itself"))
        }
        for path in ["video", "roomy", "a/room", "V1"] {
            _ = try ConfabConfiguration.load(overrides: ["publicURL": "https://example.org/\(path)"], environment: [:])
        }
    }

    @Test("every kind of request is understood with and without it")
    func requests() {
        let settings = HTTPConnection.Settings(
            Self.configuration("https://example.org/video"), peer: .init("192.0.2.1")!)
        func outputs(_ head: HTTPRequestHead) -> [String] {
            var connection = HTTPConnection(settings: settings, now: .uptimeNanoseconds(1))
            let inputs: [HTTPConnection.Input] = [.received(.head(head)), .received(.end(nil))]
            return inputs.flatMap { connection.handle($0, now: .uptimeNanoseconds(2)) }.map(\.text)
        }
        let heads = [
            HTTPRequestHead.health, .upload, .poll, .webSocket, .legacySocket, .request("/whip/resources/x", .DELETE),
            .request("/app/shared/style.css"), .request("/room/tea"),
        ]
        for head in heads {
            var below = head
            below.uri = "/video" + head.uri
            #expect(outputs(below) == outputs(head))
            #expect(!outputs(head).isEmpty)
        }
    }

    @Test("pages, requests and new resources work below it and at the root")
    func server() async throws {
        try await TestServer.run {
            $0.publicURL = "http://127.0.0.1/video"
            ($0.perch.ident, $0.perch.secret) = ("i", SecretText("s"))
        } _: { server in
            let place = try WHIPPlace(server)
            for path in ["", "/video"] {
                #expect(try await place.ask("GET", path + "/health").status == 200)
                #expect(try await place.ask("GET", path + "/room/tea").text.contains("src=\"../app/room/main.js\""))
                let script = try await place.ask("GET", path + "/app/shared/base.js")
                #expect(script["Content-Type"]?.contains("javascript") == true)
                #expect(try await place.ask("GET", path + "/elsewhere").status == 404)
            }
            // Commands take the path too, and follow no redirection.
            let command = try OperatorClient(
                server: "http://127.0.0.1:\(server.port)/video", dataDirectory: server.dataDirectory,
                project: place.project)
            _ = try await command.send("GET", "/v1/rooms")
            let redirected = await #expect(throws: OperatorClientError.self) { try await command.send("GET", "?a") }
            #expect(redirected?.description.contains("status 308") == true)
            let made = try await place.post("/video" + place.whip)
            let location = try #require(made["Location"])
            #expect(location.hasPrefix("http://127.0.0.1/video/whip/resources/"))
            let path = "/video" + location.dropFirst("http://127.0.0.1/video".count)
            #expect(try await place.ask("DELETE", path, token: place.token()).status == 200)
            let room = try await RoomsPlace(server).ask("POST", "/video/v1/rooms", #"{"name":"tea"}"#)
            #expect((room.status, room["Location"]) == (201, "/video/v1/rooms/tea"))
            let list = try await place.ask("POST", "/video/xirsys/wsList", [:], "ident=i&secret=s")
            #expect(list.text.replacing("\\/", with: "/").contains("ws://127.0.0.1/video/xirsys/ws"), "\(list.text)")
        }
    }
}
