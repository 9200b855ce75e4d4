import Foundation
import Signaling
import Testing
import Wire

@testable import Server

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

@Suite("Samples of cameras", .ownThreads, .timeLimit(.minutes(3))) struct SampleServerTests {
    /// A JPEG image of 320 × 240 pixels, with the headers only.
    private static let jpeg: [UInt8] = [
        0xFF, 0xD8, 0xFF, 0xC0, 0, 11, 8, 0, 240, 1, 64, 1, 1, 0x11, 0, 0xFF, 0xDA, 0, 2, 0xFF, 0xD9,
    ]

    /// Sends a body as a sample, and returns the status and the error code.
    private static func send(
        _ server: TestServer, _ body: [UInt8], token: String?, type: String = "image/jpeg"
    ) async throws -> (status: Int, code: String?) {
        let url = try #require(URL(string: "http://127.0.0.1:\(server.port)/v1/roulette/sample"))
        var request = URLRequest(url: url)
        request.httpMethod = "POST"
        request.httpBody = Data(body)
        request.setValue(type, forHTTPHeaderField: "Content-Type")
        if let token { request.setValue("Bearer \(token)", forHTTPHeaderField: "Authorization") }
        let (data, response) = try await URLSession.shared.data(for: request)
        guard case .object(let object)? = try? JSONReader.parse(data), case .string(let code)? = object["code"] else {
            return ((response as? HTTPURLResponse)?.statusCode ?? 0, nil)
        }
        return ((response as? HTTPURLResponse)?.statusCode ?? 0, code)
    }

    /// Two people in a chat, on a server whose program is this shell script. `id` is the number of the question, `n` counts them. By
    /// default the program has so much time that it also answers while the other tests keep the machine busy.
    private static func chat(
        _ body: String, interval: Duration = .milliseconds(10), timeout: Duration = .seconds(60),
        _ run: @escaping @Sendable (TestServer, SocketClient, SocketClient, RouletteNotice.Matched) async throws -> Void
    ) async throws {
        let loop = """
            n=0
            while read -r line; do
            id=${line#*\\"id\\":}
            id=${id%%,*}
            n=$((n+1))
            \(body)
            done
            """
        try await TestServer.run {
            $0.moderation.program = ["/bin/sh", "-c", loop]
            $0.moderation.timeout = timeout
            $0.rules.sampleInterval = interval
        } _: { server in
            let (ann, bob) = (try await server.client(), try await server.client())
            try await ann.say(.roulette(.start(.init())))
            let bobs = try await bob.meet()
            _ = try await ann.hear("match") { if case .roulette(.matched(let matched)) = $0 { matched } else { nil } }
            try await run(server, ann, bob, bobs)
        }
    }

    @Test("a program blurs the video and ends the chat")
    func verdicts() async throws {
        let body =
            #"if [ $n = 1 ]; then verdict=blur; else verdict=end; fi; echo "{\"id\":$id,\"verdict\":\"$verdict\"}""#
        // A sample waits for two intervals until the program has started, which takes a while on a busy machine.
        try await Self.chat(body, interval: .seconds(6)) { server, ann, bob, matched in
            #expect(try await Self.send(server, Self.jpeg, token: matched.publish.token).status == 204)
            let blur = try await ann.hear("blur") { if case .roulette(.blur(let blur)) = $0 { blur } else { nil } }
            #expect(blur.whose == .partner && blur.blurred)
            _ = try await bob.hear("blur") {
                if case .roulette(.blur(let blur)) = $0 { blur.whose == .own } else { nil }
            }
            try await eventually {
                let answer = try await Self.send(server, Self.jpeg, token: matched.publish.token)
                return answer.status == 204 ? nil : "the second sample is refused: \(answer)"
            }
            let warning = try await bob.hear("warning") {
                if case .roulette(.warning(let warning)) = $0 { warning } else { nil }
            }
            #expect(warning.ends && warning.match == matched.match)
            let reason = try await bob.hear("end") {
                if case .roulette(.ended(let end)) = $0 { end.reason } else { nil }
            }
            #expect(reason == .stopped)
            _ = try await ann.hear("search") { if case .roulette(.waiting) = $0 { true } else { nil } }
            #expect(try await Self.send(server, Self.jpeg, token: matched.publish.token).code == "not_matched")
        }
    }

    @Test("requests that are no samples are refused with a stable code")
    func refusals() async throws {
        try await Self.chat("", interval: .seconds(600)) { server, _, _, matched in
            let token = matched.publish.token
            func check(_ answer: (status: Int, code: String?), _ status: Int, _ code: String) {
                #expect(answer.status == status && answer.code == code, "\(answer)")
            }
            check(try await Self.send(server, Self.jpeg, token: nil), 401, "token_malformed")
            let forged = try await Self.send(server, Self.jpeg, token: token + "x")
            #expect(forged.status == 401 && forged.code?.hasPrefix("token_") == true)
            check(try await Self.send(server, Self.jpeg, token: token, type: "image/png"), 415, "content_type")
            check(try await Self.send(server, Array("no image".utf8), token: token), 400, "malformed")
            let large = Self.jpeg + [UInt8](repeating: 0, count: Limits.sample)
            check(try await Self.send(server, large, token: token), 413, "message_too_large")
            #expect(try await Self.send(server, Self.jpeg, token: token).status == 204)
            check(try await Self.send(server, Self.jpeg, token: token), 429, "rate_limited")
        }
        try await TestServer.run { server in
            #expect(try await Self.send(server, Self.jpeg, token: "x").code == "not_found")
            let client = try await SocketClient.connect(port: server.port)
            #expect(try await client.greet().sampling == nil)
        }
    }

    @Test(
        "a chat continues with a program that is slow, lies or crashes", arguments: ["sleep 600", "echo no", "exit 1"])
    func faults(_ body: String) async throws {
        try await Self.chat(body, timeout: .seconds(1)) { server, ann, bob, matched in
            for _ in 1...20 { _ = try await Self.send(server, Self.jpeg, token: matched.publish.token) }
            let joined = try await bob.join(matched.publish)
            try await bob.say(.session(.signal(.init(session: joined.session, type: "chat", data: "hello"))))
            try await bob.ask(.roulette(.count))
            try await ann.ask(.roulette(.report(.init(reason: "rude"))))
        }
    }
}
