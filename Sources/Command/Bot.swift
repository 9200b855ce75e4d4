import ArgumentParser
import Dispatch
import Foundation
import MediaFiles
import Peers
import Robots
import Server
import Wire

/// The `confab bot` command: a client without a browser, so that one person alone can try all features.
struct BotCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "bot",
        abstract: "Run a bot that publishes a video, replies to chat messages and records other people.",
        discussion: """
            Join the roulette with the built-in sample video:
              confab bot --server http://127.0.0.1:8080 --roulette
            Join a session with your own files (VP8 in IVF, Opus in Ogg), and record everyone else:
              confab bot --session ID --token T --publish film.ivf --publish film.ogg --record recordings
            """
    )

    /// The maximum number of bots per process. Each bot has a WebSocket and two media connections. All bots share one
    /// thread for media.
    static let maxBots = 100

    @Option(help: "URL of the server.")
    var server = ConfabConfiguration.defaultServer

    @Option(help: "Session to join. It must be routed.")
    var session: String?

    @Option(help: "Token for the session, from `confab token create`.")
    var token: String?

    @Flag(help: "Join the roulette.")
    var roulette = false

    @Option(help: "IVF file (VP8) or Ogg file (Opus) to publish. Omit the extension to publish both.")
    var publish: [String] = []

    @Option(help: "Directory for recordings, with one file per audio or video track.")
    var record: String?

    @Option(help: "Display name of the bot.")
    var name = "Bot"

    @Option(help: "Chat message for each new partner, in addition to the notice that this is a bot.")
    var say: String?

    @Option(help: "Number of bots. They are not matched with each other.")
    var count = 1

    @Option(help: "Stop after this many seconds.")
    var seconds: Int?

    func validate() throws {
        guard roulette != (session != nil) else {
            throw ValidationError("Specify either --roulette or --session.")
        }
        guard (session == nil) == (token == nil) else {
            throw ValidationError("Specify both --session and --token, or neither.")
        }
        guard (1...Self.maxBots).contains(count) else {
            throw ValidationError("--count must be from 1 to \(Self.maxBots).")
        }
        guard seconds.map({ (1...1_000_000).contains($0) }) ?? true else {
            throw ValidationError("--seconds must be from 1 to 1000000.")
        }
        guard !name.isEmpty, name.utf8.count <= Limits.name else {
            throw ValidationError("--name must not be empty, and must be at most \(Limits.name) bytes long.")
        }
        guard say?.utf8.count ?? 0 <= Limits.signalData / 2 else {
            throw ValidationError("--say must be at most \(Limits.signalData / 2) bytes long.")
        }
    }

    func run() async throws {
        let (group, count) = (Bot.Group(try plan()), count)
        let bots = Task {
            try await withThrowingTaskGroup(of: Void.self) { tasks in
                for number in 0..<count {
                    tasks.addTask {
                        let prefix = count > 1 ? "\(number + 1): " : ""
                        let bot = try await Bot.connect(number, of: group) { line in Self.log(prefix + line) }
                        try await bot.run()
                    }
                }
                try await tasks.waitForAll()
            }
        }
        let sources = stopSources { bots.cancel() }
        defer { for source in sources { source.cancel() } }
        do {
            try await bots.value
        } catch _ where bots.isCancelled {
            // The bots were stopped by a signal, or because `--seconds` have passed.
        } catch {
            throw CommandError(description: "\(error)")
        }
    }

    /// Calls `stop` on Ctrl-C, on SIGTERM and when `--seconds` have passed, as long as the returned sources are
    /// retained.
    private func stopSources(_ stop: @escaping @Sendable () -> Void) -> [any DispatchSourceProtocol] {
        var sources: [any DispatchSourceProtocol] = []
        for number in [SIGINT, SIGTERM] {
            signal(number, SIG_IGN)
            let source = DispatchSource.makeSignalSource(signal: number, queue: .global())
            source.setEventHandler(handler: stop)
            source.activate()
            sources.append(source)
        }
        if let seconds {
            let timer = DispatchSource.makeTimerSource(queue: .global())
            timer.setEventHandler(handler: stop)
            timer.schedule(deadline: .now() + .seconds(seconds))
            timer.activate()
            sources.append(timer)
        }
        return sources
    }

    private static func log(_ line: String) {
        FileHandle.standardError.write(Data((line + "\n").utf8))
    }

    // MARK: The plan

    private func plan() throws -> BotPlan {
        var place = BotPlan.Place.roulette
        if let session, let token {
            guard let id = SessionID(session) else {
                throw CommandError(description: "\(session) is not a session ID. Use one from `confab session create`.")
            }
            place = .session(id, token: token)
        }
        if let record { try makeDirectory(record) }
        return BotPlan(
            server: server, place: place, clip: try clip(), directory: record, name: name, line: say)
    }

    private func makeDirectory(_ path: String) throws {
        do {
            try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
        } catch {
            throw CommandError(
                description: "Cannot create the directory \(path): \(error.localizedDescription)")
        }
        guard FileManager.default.isWritableFile(atPath: path) else {
            throw CommandError(description: "The directory \(path) is not writable. Choose another one.")
        }
    }

    private func clip() throws -> MediaClip {
        guard !publish.isEmpty else { return .sample }
        var clip = MediaClip()
        for path in try publish.flatMap(files) {
            do {
                try clip.add(try bytes(of: path))
            } catch let error as MediaFileError {
                throw CommandError(description: "\(path) \(error).")
            }
        }
        return clip
    }

    /// Returns the file that an argument specifies. If there is none, returns the existing files with this name and
    /// the extension .ivf or .ogg.
    private func files(_ argument: String) throws -> [String] {
        var isDirectory: ObjCBool = false
        if FileManager.default.fileExists(atPath: argument, isDirectory: &isDirectory), !isDirectory.boolValue {
            return [argument]
        }
        let files = ["ivf", "ogg"].map { "\(argument).\($0)" }.filter { FileManager.default.fileExists(atPath: $0) }
        guard !files.isEmpty else { throw CommandError(description: "\(argument) does not exist. Check --publish.") }
        return files
    }

    private func bytes(of path: String) throws -> [UInt8] {
        do {
            let file = try FileHandle(forReadingFrom: URL(filePath: path))
            defer { try? file.close() }
            let data = try file.read(upToCount: MediaClip.maxFile + 1) ?? Data()
            guard data.count <= MediaClip.maxFile else {
                throw CommandError(
                    description: "\(path) is larger than \(MediaClip.maxFile >> 20) MB. Use a shorter file.")
            }
            return [UInt8](data)
        } catch let error as CommandError {
            throw error
        } catch {
            throw CommandError(description: "Cannot read \(path): \(error.localizedDescription)")
        }
    }
}
