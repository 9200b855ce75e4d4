import ArgumentParser
import Server
import Signaling
import Wire

/// The `confab broadcast` command. It sends requests to the running server, as an application of the main project does.
struct BroadcastCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "broadcast", abstract: "Broadcast sessions of the main project live from the running server.",
        discussion: "Applications of other projects use OpenTok's REST API (docs/opentok.md).",
        subcommands: [Start.self, Stop.self, List.self, Status.self]
    )

    private static let path = "/broadcast"

    /// Starts to broadcast a session.
    struct Start: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Start to broadcast a session and print the broadcast's ID.",
            discussion: """
                At least one client must be in the session. Everyone in it is notified. confab broadcast status prints the URL for \
                viewers.
                """)
        @OptionGroup var target: RoomCommand.ServerOptions

        @Argument(help: "ID of the session.")
        var session: String

        @Flag(help: "Let viewers be a few seconds behind instead of 15 to 20.")
        var lowLatency = false

        @Flag(help: "Let viewers go back to what they have missed.")
        var dvr = false

        @Option(
            help: """
                Also send it to this RTMP server: rtmp://HOST/APPLICATION/STREAM-NAME. Can be repeated. Other users of this machine can \
                see it while the command runs.
                """)
        var rtmp: [String] = []

        @Flag(help: "Send it only to the RTMP servers, without a URL for viewers.")
        var rtmpOnly = false

        @Option(help: "Size of the video, such as 1280x720.")
        var resolution: CompositionResolution?

        @Option(help: "End it after this many seconds at the latest.")
        var maxDuration: Int?

        func validate() throws {
            guard !lowLatency || !dvr else {
                throw ValidationError("Specify --low-latency or --dvr, not both.")
            }
            guard !rtmpOnly || !rtmp.isEmpty && !lowLatency && !dvr else {
                throw ValidationError("--rtmp-only needs --rtmp, and has no --low-latency or --dvr.")
            }
        }

        func run() async throws {
            var members: [(String, JSONValue)] = [
                ("sessionId", .string(try SessionID(argument: session).text)), ("outputs", try outputs()),
            ]
            if let resolution { members.append(("resolution", .string(resolution.rawValue))) }
            if let maxDuration { members.append(("maxDuration", .integer(Int64(maxDuration)))) }
            print(try await target.send(ofProject: "POST", path, members).text("id"))
        }

        private func outputs() throws -> JSONValue {
            var outputs: [JSONObject.Member] = []
            if !rtmpOnly {
                let hls: [JSONObject.Member] = [
                    .init(name: "lowLatency", value: .bool(lowLatency)), .init(name: "dvr", value: .bool(dvr)),
                ]
                outputs.append(.init(name: "hls", value: .object(JSONObject(hls))))
            }
            if !rtmp.isEmpty { outputs.append(.init(name: "rtmp", value: .array(try rtmp.map(Self.destination)))) }
            return .object(JSONObject(outputs))
        }

        /// The server checks the rest. The error does not repeat the URL, which contains a secret.
        private static func destination(_ url: String) throws -> JSONValue {
            guard let slash = url.lastIndex(of: "/") else {
                throw ValidationError("--rtmp needs a URL such as rtmp://example.com/live/stream-name.")
            }
            return .object(
                JSONObject([
                    .init(name: "serverUrl", value: .string(String(url[..<slash]))),
                    .init(name: "streamName", value: .string(String(url[url.index(after: slash)...]))),
                ]))
        }
    }

    /// Stops a broadcast.
    struct Stop: AsyncParsableCommand {
        static let configuration = CommandConfiguration(abstract: "Stop a broadcast.")
        @OptionGroup var target: RoomCommand.ServerOptions
        @Argument(help: "ID of the broadcast.") var id: String

        func run() async throws {
            _ = try await target.send(ofProject: "POST", "\(path)/\(try broadcastID(id))/stop")
        }
    }

    /// Lists broadcasts.
    struct List: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "List broadcasts, newest first.", discussion: "Those that have ended are listed for 30 days.")
        @OptionGroup var target: RoomCommand.ServerOptions

        @Option(help: "ID of the session whose broadcasts are listed (default: all sessions).")
        var session: String?

        func run() async throws {
            try await target.printAll("broadcasts", in: path, of: session) { $0.broadcastLine }
        }
    }

    /// Shows one broadcast.
    struct Status: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Show a broadcast, the URL for viewers, and the status of each RTMP server.",
            discussion: "Everyone who has the URL can watch.")
        @OptionGroup var target: RoomCommand.ServerOptions
        @Argument(help: "ID of the broadcast.") var id: String

        func run() async throws {
            let broadcast = try await target.send(ofProject: "GET", "\(path)/\(try broadcastID(id))")
            print(broadcast.broadcastLine)
            print("session: \(broadcast.text("sessionId"))")
            if case .string(let reason)? = broadcast["reason"] { print("reason: \(reason)") }
            guard case .object(let urls)? = broadcast["broadcastUrls"] else { return }
            if urls["hls"] != nil { print("hls: \(urls.text("hls"))") }
            // Their URLs contain secrets.
            guard case .array(let targets)? = urls["rtmp"] else { return }
            for case .object(let target) in targets { print("rtmp: \(target.text("status"))") }
        }
    }
}

private func broadcastID(_ text: String) throws -> BroadcastID {
    guard let id = BroadcastID(text) else {
        throw ValidationError("The ID of a broadcast has 32 hexadecimal digits. See confab broadcast list.")
    }
    return id
}

extension JSONObject {
    /// One line about a broadcast: its ID and status, the status over HLS, and the size of the video.
    fileprivate var broadcastLine: String {
        var hls = ""
        if case .object(let urls)? = self["broadcastUrls"] { hls = urls.text("hlsStatus") }
        return [text("id"), text("status"), hls, text("resolution")].filter { !$0.isEmpty }.joined(separator: "  ")
    }
}
