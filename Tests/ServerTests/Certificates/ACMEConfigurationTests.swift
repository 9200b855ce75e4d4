import Crypto
import Foundation
import NIOHTTP1
import Testing
import Wire

@testable import Server

@Suite("Settings for ACME, and plain HTTP") struct ACMEConfigurationTests {
    private static let valid = ["acme.domains": "Chat.Example.org, example.org", "acme.agreeToTerms": "true"]

    private static func problems(_ overrides: [String: String]) -> [String] {
        do throws(ConfigurationError) {
            _ = try ConfabConfiguration.load(overrides: valid.merging(overrides) { $1 })
            return []
        } catch {
            return error.problems.map(\.description)
        }
    }

    @Test("domains and an authority make the server handle HTTPS, first with a test authority")
    func valid() throws {
        let configuration = try ConfabConfiguration.load(overrides: Self.valid)
        #expect(configuration.acme.domains == ["chat.example.org", "example.org"])
        #expect(configuration.acme.directory == "letsencrypt-staging" && configuration.acme.httpPort == 80)
        #expect(configuration.handlesHTTPS && configuration.strictTransport != nil)
        #expect(!ConfabConfiguration().handlesHTTPS)
        #expect(ACMEAuthority.isForTests(configuration.acme.directory) && !ACMEAuthority.isForTests("letsencrypt"))
    }

    @Test("settings that exclude each other are refused")
    func conflicts() {
        #expect(Self.problems([:]) == [])
        #expect(Self.problems(["acme.agreeToTerms": "false"]).count == 1)
        #expect(Self.problems(["tls.certificate": "/c.pem", "tls.privateKey": "/k.pem"]).count == 1)
        #expect(Self.problems(["lan": "true"]).count == 1)
        #expect(Self.problems(["acme.httpPort": "8443", "port": "8443"]).count == 1)
        #expect(Self.problems(["acme.httpPort": "0", "port": "0"]) == [])
        #expect(Self.problems(["acme.challenge": "tls", "acme.httpPort": "443", "port": "443"]) == [])
    }

    @Test("the port for plain HTTP is opened only for the challenge http")
    func challenge() throws {
        #expect(try ConfabConfiguration.load(overrides: Self.valid).plainHTTPPort == 80)
        let tls = try ConfabConfiguration.load(overrides: Self.valid.merging(["acme.challenge": "tls"]) { $1 })
        #expect(tls.acme.challenge == .tls && tls.plainHTTPPort == nil && tls.handlesHTTPS)
        #expect(ConfabConfiguration().plainHTTPPort == nil)
    }

    @Test(
        "wrong values are refused",
        arguments: [
            ("acme.domains", "*.example.org"), ("acme.domains", "192.0.2.1"), ("acme.domains", "a b"),
            ("acme.domains", "https://example.org"), ("acme.directory", "http://ca.example.org/dir"),
            ("acme.directory", "letsencrypt-production"), ("acme.directory", "https://user@ca.example.org/"),
            ("acme.email", "admin"), ("acme.email", "@example.org"), ("acme.email", "a@b@c"),
            ("acme.email", "a@example.org?cc=b@example.org"), ("acme.httpPort", "65536"),
            ("acme.challenge", "dns"), ("acme.challenge", "tls-alpn-01"),
        ])
    func wrong(key: String, value: String) {
        #expect(Self.problems([key: value]).count == 1)
    }

    @Test("each authority has a folder, whatever its URL is")
    func folders() {
        #expect(ACMEFiles.folder("letsencrypt") == "letsencrypt")
        let one = ACMEFiles.folder("https://ca.example.org:14000/dir")
        let other = ACMEFiles.folder("https://ca.example.org:14000/other")
        #expect(one.hasPrefix("ca.example.org-") && other.hasPrefix("ca.example.org-") && one != other)
        #expect(!ACMEFiles.folder("https://../../etc").contains("/"))
    }

    private static func respond(
        _ uri: String, _ method: HTTPMethod = .GET, host: String? = "chat.example.org", port: Int = 443
    ) -> PlainHTTPResponse {
        let answers = ChallengeAnswers()
        answers.publish(ACMEChallenge(domain: "example.org", token: "token", answer: "token.thumbprint"))
        return PlainHTTPResponse(
            method, uri, host: host, domains: ["example.org", "chat.example.org"], port: port, answers: answers)
    }

    @Test("the answer to a challenge is the key authorization, and other tokens are not found")
    func answer() {
        let answer = Self.respond("/.well-known/acme-challenge/token")
        #expect(answer.status == .ok && answer.body == "token.thumbprint" && answer.location == nil)
        for uri in ["/.well-known/acme-challenge/", "/.well-known/acme-challenge/other"] {
            #expect(Self.respond(uri).status == .notFound, "\(uri)")
        }
        let answers = ChallengeAnswers()
        answers.publish(ACMEChallenge(domain: "example.org", token: "token", answer: "token.thumbprint"))
        answers.withdrawAll()
        #expect(answers.answer(to: "token") == nil)
    }

    @Test("other requests are redirected to HTTPS on one of the domains, with their path")
    func redirect() {
        #expect(Self.respond("/room?x=1").location == "https://chat.example.org/room?x=1")
        #expect(Self.respond("/", host: "chat.example.org:80").location == "https://chat.example.org/")
        #expect(Self.respond("/", host: "evil.example.com").location == "https://example.org/")
        #expect(Self.respond("/", host: nil, port: 8443).location == "https://example.org:8443/")
        #expect(Self.respond("http://evil.example.com/").location == "https://chat.example.org/")
        #expect(Self.respond("/a\r\nb").location == "https://chat.example.org/")
        #expect(Self.respond("/", .POST).status == .methodNotAllowed)
    }

    @Test("the redirect leads to the port of publicURL, which a router may forward to another one")
    func redirectPort() throws {
        func port(_ url: String?) throws -> Int {
            var settings = Self.valid.merging(["port": "8443"]) { $1 }
            settings["publicURL"] = url
            return try ConfabConfiguration.load(overrides: settings).redirectPort
        }
        #expect(try port(nil) == 8443)
        #expect(try port("https://chat.example.org") == 443)
        #expect(try port("https://chat.example.org:9443/video") == 9443)
    }

    @Test("keys that other users can read are reported, and the reason of a failed order is kept until a success")
    func files() throws {
        let folder = NSTemporaryDirectory() + "confab-acme-\(UUID().uuidString)"
        defer { try? FileManager.default.removeItem(atPath: folder) }
        var configuration = try ConfabConfiguration.load(overrides: Self.valid)
        configuration.dataDirectory = folder
        let files = try #require(ACMEFiles(configuration))
        #expect(throws: DataDirectoryError.self) { try files.nextAccountKey() }
        #expect(files.failure() == nil)
        let first = try files.accountKey()
        #expect(files.exposures() == [])
        // A backup that was restored with the usual modes.
        try FileManager.default.setAttributes([.posixPermissions: 0o644], ofItemAtPath: files.accountPath)
        #expect(files.exposures().count == 1 && files.exposures()[0].contains("chmod 600"))
        files.note(
            ACMEFailure(code: .challengeFailed, reason: "It failed.", detail: "NXDOMAIN", advice: "Check the records."))
        let failure = try #require(files.failure())
        #expect(failure.event == "It failed. The authority says: NXDOMAIN.")
        #expect(failure.advice == "Check the records.")
        files.note(nil)
        #expect(files.failure() == nil)
        let next = try files.nextAccountKey()
        #expect(next.rawRepresentation != first.rawRepresentation)
        #expect(try files.nextAccountKey().rawRepresentation == next.rawRepresentation)
        try files.useNextAccountKey()
        #expect(try files.accountKey().rawRepresentation == next.rawRepresentation)
        #expect(files.exposures() == [] && !FileManager.default.fileExists(atPath: files.nextAccountPath))
    }
}
