import Foundation
import TestSupport
import Testing

extension Hostile {
    /// `confab broadcast`, with a script in place of the compositor.
    @Suite("The command for broadcasts")
    struct BroadcastCommandTests {
        @Test(
            "starts, lists, shows and stops one, and says what is wrong with a request",
            .enabled(if: FakeCompositor.canEncode, "ffmpeg is not installed"))
        func commands() async throws {
            // More than 10 s at once, so that viewers can begin, and then a part each second, because a silent compositor is killed.
            let messages = try FakeCompositor.messages(seconds: 60)
            let compositor = try FakeCompositor(
                sending: Array(messages.prefix(40)), later: Array(messages.dropFirst(40)))
            defer { compositor.remove() }
            let settings = [
                "CONFAB_BROADCAST_COMPOSITOR": compositor.path, "CONFAB_RECORDING_NOTICE": "0s",
                "CONFAB_MEDIA_ADDRESS": "127.0.0.1",
            ]
            try await ServerProcess.run(settings) { server in
                #expect(try await Self.text(server, ["list"]) == "No broadcasts.")
                let session = try await Self.text(server, ["create"], of: "session")
                let token = try await Self.text(server, ["create", "--session", session], of: "token")
                let bots = try RunningProcess(
                    Executable.confab(),
                    ["bot", "--server", "http://127.0.0.1:\(server.port)", "--session", session, "--token", token],
                    environment: ["PATH": "/usr/bin"], logFile: server.dataDirectory + "/bots.log")
                defer { bots.send(SIGKILL) }
                let id = try await Self.start(server, [session, "--low-latency", "--resolution", "1280x720"])
                let line = "\(id)  started  ready  1280x720"
                try await until("viewers can begin") {
                    try await Self.text(server, ["list", "--session", session]) == line
                }
                #expect(try await Self.text(server, ["list"]) == line)
                let lines = try await Self.text(server, ["status", id]).components(separatedBy: "\n")
                #expect(lines.prefix(2) == [line, "session: \(session)"])
                #expect(lines.count == 3 && lines.last?.hasPrefix("hls: /broadcasts/\(id)/") == true)
                #expect(try await Self.text(server, ["stop", id]) == "")
                try await until("the broadcast has ended") {
                    try await Self.text(server, ["status", id]).hasPrefix("\(id)  stopped  ended  1280x720\n")
                }
                #expect(try await Self.text(server, ["status", id]).contains("\nreason: user initiated\n"))

                let secret = "rtmp://127.0.0.1/live/secret"
                for (arguments, sentence) in [
                    (["stop", id], "already stopped"), (["status", "a"], "32 hexadecimal digits"),
                    (["start", "a"], "Unknown session ID"),
                    (["start", session, "--dvr", "--low-latency"], "not both"),
                    (["start", session, "--rtmp-only"], "--rtmp-only needs --rtmp"),
                    (["start", session, "--rtmp", "rtmp:secret"], "--rtmp needs a URL"),
                    (["start", session, "--rtmp", "rtmp://127.0.0.1/secret"], "serverUrl must have a path"),
                    (["start", session, "--rtmp", secret, "--max-duration", "1"], "maxDuration"),
                ] {
                    let result = try await server.command(["broadcast"] + arguments)
                    #expect(result.status != 0 && result.errors.contains(sentence), "\(arguments): \(result.errors)")
                    #expect(!result.errors.contains("secret") && !result.output.contains("secret"))
                }
            }
        }

        private static func text(
            _ server: ServerProcess, _ arguments: [String], of command: String = "broadcast"
        ) async throws -> String {
            let result = try await server.command([command] + arguments)
            try #require(result.status == 0, "\(arguments): \(result.errors)")
            return result.output.trimmingCharacters(in: .newlines)
        }

        /// Starts a broadcast as soon as the bot is in the session.
        private static func start(_ server: ServerProcess, _ arguments: [String]) async throws -> String {
            let deadline = ContinuousClock.now + .seconds(60)
            while true {
                let result = try await server.command(["broadcast", "start"] + arguments)
                if result.status == 0 { return result.output.trimmingCharacters(in: .newlines) }
                try #require(ContinuousClock.now < deadline, "\(result.errors)")
            }
        }
    }
}
