import Crypto
import Foundation
import Signaling
import TestSupport
import Testing
import Wire

@testable import Server

@Suite("Requests to webhooks") struct WebhookBodyTests {
    private static let common = #""sessionId":"1_session","projectId":"1000","#
    private static let time = #""timestamp":1700000000123"#
    private static let connection =
        #"{"id":"\#(WebhookSamples.connection.id)","createdAt":1699999940123,"data":"name=\"Ann\" \\ ☕"}"#
    private static let stream =
        #"{"id":"\#(WebhookSamples.stream.id)","connection":\#(connection),"createdAt":1699999970123,"#
        + #""name":"Ann's\ncamera","videoType":"camera"}"#

    private static let bodies: [(WebhookEvent.Kind, String)] = [
        (.sessionCreated, #"{\#(common)"event":"sessionCreated",\#(time)}"#),
        (.sessionDestroyed, #"{\#(common)"event":"sessionDestroyed",\#(time)}"#),
        (
            .connectionCreated(WebhookSamples.connection),
            #"{\#(common)"event":"connectionCreated",\#(time),"connection":\#(connection)}"#
        ),
        (
            .connectionDestroyed(WebhookSamples.connection, .forceDisconnected),
            #"{\#(common)"event":"connectionDestroyed",\#(time),"reason":"forceDisconnected","connection":\#(connection)}"#
        ),
        (
            .streamCreated(WebhookSamples.stream, of: WebhookSamples.connection),
            #"{\#(common)"event":"streamCreated",\#(time),"stream":\#(stream)}"#
        ),
        (
            .streamDestroyed(WebhookSamples.stream, of: WebhookSamples.connection, .forceUnpublished),
            #"{\#(common)"event":"streamDestroyed",\#(time),"reason":"forceUnpublished","stream":\#(stream)}"#
        ),
    ]

    @Test(arguments: bodies.indices) func `each event has OpenTok's document`(index: Int) throws {
        let (kind, text) = Self.bodies[index]
        let body = WebhookBody(WebhookSamples.event(kind))
        #expect(String(decoding: body.bytes, as: UTF8.self) == text)
        // An independent parser reads it too.
        let object = try #require(JSONSerialization.jsonObject(with: Data(body.bytes)) as? [String: Any])
        #expect(object["projectId"] as? String == "1000" && object["timestamp"] as? Int == 1_700_000_000_123)
    }

    @Test func `an archive is reported as OpenTok does, without a URL and with a time in whole seconds`() throws {
        var archive = ArchiveRecord(
            id: ArchiveID(high: 1, low: 2), project: "1000", session: WebhookSamples.event(.sessionCreated).session,
            request: ArchiveRequest(), createdAt: Timestamp(milliseconds: 1_700_000_000_999))
        (archive.request.name, archive.request.tag, archive.status) = ("Meeting", "secret-tag", .available)
        archive.reason = "user initiated"
        archive.composed = ComposedFile(name: "archive.mp4", size: 5_000_000_000)
        archive.duration = .milliseconds(61_900)
        let body = WebhookBody(WebhookSamples.event(.archive(archive)))
        let object = try #require(JSONSerialization.jsonObject(with: Data(body.bytes)) as? [String: Any])
        #expect(object["event"] as? String == "archive" && object["status"] as? String == "available")
        #expect(object["id"] as? String == "00000000000000010000000000000002" && object["partnerId"] as? Int == 1000)
        #expect(object["createdAt"] as? Int == 1_700_000_000_000 && object["duration"] as? Int == 61)
        #expect(object["size"] as? Int == 5_000_000_000 && object["reason"] as? String == "user initiated")
        #expect(object["resolution"] as? String == "640x480" && object["url"] is NSNull)
        #expect(!String(decoding: body.bytes, as: UTF8.self).contains("secret-tag"))
        #expect(!body.isEnd && body.kind == nil)
    }

    @Test func `a stream without video has no video type`() {
        var stream = WebhookSamples.stream
        stream.videoType = nil
        let body = WebhookBody(WebhookSamples.event(.streamCreated(stream, of: WebhookSamples.connection)))
        #expect(!String(decoding: body.bytes, as: UTF8.self).contains("videoType"))
    }

    @Test(arguments: [
        (GoneReason.clientDisconnected, "clientDisconnected"), (.networkDisconnected, "networkDisconnected"),
        (.forceDisconnected, "forceDisconnected"), (.clientUnpublished, "clientDisconnected"),
        (.forceUnpublished, "forceUnpublished"), (.matchEnded, "clientDisconnected"),
    ])
    func `every reason has one of OpenTok's`(reason: GoneReason, text: String) {
        #expect(WebhookBody.Reason(reason).rawValue == text)
    }

    @Test func `a request is signed with its time, and the secret is printed nowhere`() throws {
        let target = try WebhookTarget(url: "https://example.org/hooks?a=b", secret: WebhookSamples.secret)
        let message = WebhookMessage(delivery: [0, 1, 254, 255], body: Array(#"{"event":"sessionCreated"}"#.utf8))
        let request = PushRequest.webhook(message, to: target, at: Timestamp(milliseconds: 1_700_000_000_999))
        // Python: hmac.new(secret, b"1700000000." + body, "sha256").hexdigest()
        #expect(
            request["x-confab-signature"]
                == "t=1700000000,v1=ad43ca5dbfa05b3267edafee5ffbf444273f6b421e48bc7a115465616fc5bfe8")
        #expect(request["x-confab-delivery"] == "0001feff" && request["content-type"] == "application/json")
        #expect(request.host == "example.org" && request.path == "/hooks?a=b" && request.isSecure)
        #expect(request.body == message.body)
        let printed = "\(target) \(String(reflecting: target)) \(target.customMirror.children.count)"
        #expect(!printed.contains(WebhookSamples.secret) && !printed.contains("hooks"))
    }

    @Test(
        "the Python of the documentation accepts a request that was just signed, and no other",
        .enabled(if: FileManager.default.isExecutableFile(atPath: "/usr/bin/python3"), "Needs python3."))
    func documentation() async throws {
        let root = URL(filePath: #filePath).resolvingSymlinksInPath().appending(path: "../../../..").standardized
        let page = try String(contentsOf: root.appending(path: "docs/webhooks.md"), encoding: .utf8)
        let code = try #require(
            page.components(separatedBy: "```python\n").dropFirst().first?.components(separatedBy: "```")[0])
        let now = Timestamp(milliseconds: Int64(Date().timeIntervalSince1970 * 1000))
        func header(at time: Timestamp) -> String {
            WebhookSignature.value(Array("body".utf8), secret: WebhookSamples.secret, at: time)
        }
        let fresh = header(at: now)
        for (text, body, isGenuine) in [
            (fresh, "body", true), (fresh, "Body", false), (header(at: now - .seconds(400)), "body", false),
            (header(at: now + .seconds(400)), "body", false), (String(fresh.dropLast()), "body", false),
            ("", "body", false), ("t=\(String(repeating: "1", count: 5000)),v1=", "body", false),
            ("t=x,v1=", "body", false), (fresh.replacingOccurrences(of: "v1", with: "v2"), "body", false),
        ] {
            let script = [
                "-c",
                code + "\nimport sys\nsys.exit(0 if is_genuine(sys.argv[1], sys.argv[2].encode(), sys.argv[3]) else 9)",
                text, body, WebhookSamples.secret,
            ]
            let judged = try await blocking { try ChildProgram.run("/usr/bin/python3", script) }
            #expect(judged.status == (isGenuine ? 0 : 9), "\(text) \(body): \(judged.standardError)")
        }
    }

    @Test(arguments: [
        ("https://example.org", "https://example.org", "/"),
        ("https://example.org?key=1", "https://example.org", "/?key=1"),
        ("HTTP://Example.ORG:8080/x?y", "http://example.org:8080", "/x?y"),
        ("https://example.org:443/", "https://example.org", "/"),
        ("http://example.org:443/", "http://example.org:443", "/"),
        ("http://127.0.0.1:80/x", "http://127.0.0.1", "/x"),
        ("https://[2001:DB8::0:1]/x", "https://[2001:db8::1]", "/x"),
        ("http://[::ffff:127.0.0.1]:9/", "http://127.0.0.1:9", "/"),
    ])
    func `a URL is read in one way`(text: String, service: String, path: String) throws {
        let url = try WebhookURL(text)
        #expect(url.service == service && url.path == path)
    }

    @Test(arguments: [
        "", "example.org", "ftp://example.org/", "https:example.org", "https://", "https:///x",
        "https://user@example.org/",
        "https://user:word@example.org/", "https://example.org@127.0.0.1/", #"https://example.org\@127.0.0.1/"#,
        "https://example.org#@127.0.0.1/", "https://example.org/#x", "https://2130706433/", "https://0x7f000001/",
        "https://0x7f.1/", "https://127.1/", "https://0177.0.0.1/", "https://127.0.0.1./", "https://[::1",
        "https://::1/",
        "https://[::1%25lo]/", "https://[127.0.0.1]/", "https://[::1]x/", "https://example.org:/",
        "https://example.org:0/",
        "https://example.org:65536/", "https://example.org:+80/", "https://example.org/%", "https://example.org/ x",
        "https://example.org/\r\nHost: x", "https://exämple.org/", "https://example..org/", "https://a_b.org/",
    ])
    func `a URL that parsers read differently is refused with a sentence`(text: String) {
        let error = #expect(throws: InvalidWebhook.self) { try WebhookURL(text) }
        #expect(error?.description.hasSuffix(".") == true, "\(text)")
    }

    @Test func `a private address is refused when it is set, unless the settings allow it`() throws {
        var (changes, settings) = (ProjectChanges(), ConfabConfiguration.Webhooks())
        for host in ["127.0.0.1", "10.0.0.1:8080", "169.254.169.254", "[::1]", "[::ffff:10.0.0.1]", "[fd00::1]"] {
            let error = #expect(throws: WireError.self, "\(host)") {
                try changes.setWebhook("http://\(host)/x", settings)
            }
            #expect(error?.message.contains("webhooks.allowPrivateAddresses") == true)
        }
        try changes.setWebhook("https://8.8.8.8/x", settings)
        try changes.setWebhook("https://localhost/x", settings)
        settings.allowPrivateAddresses = true
        try changes.setWebhook("http://127.0.0.1/x", settings)
    }

    @Test func `a long URL and a short secret are refused`() {
        #expect(throws: InvalidWebhook.self) {
            try WebhookURL("https://example.org/" + String(repeating: "x", count: WebhookURL.maxSize))
        }
        #expect(throws: InvalidWebhook.self) { try WebhookTarget(url: "https://example.org/", secret: "short") }
    }
}
