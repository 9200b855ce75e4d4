import ArgumentParser
import Dispatch
import Foundation
import Robots
import Server
import Wire

/// A client without a browser, so that one person alone can try everything.
struct BotCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "bot",
        abstract: "Show a film to whoever is there, answer what they write, and record what they show.",
        discussion: """
            In the roulette, with the sample that comes with the program:
              confab bot --server http://127.0.0.1:8080 --roulette
            In a session, with files of your own (VP8 in IVF, Opus in Ogg), recording everybody else:
              confab bot --session ID --token T --publish film.ivf --publish film.ogg --record recordings
            """
    )

    /// Bots of one process. Each has a line, two media connections and a share of one thread.
    static let mostBots = 100

    @Option(help: "The server's address.")
    var server = ConfabConfiguration.defaultServer

    @Option(help: "The session to join; it must be a routed one.")
    var session: String?

    @Option(help: "A token for the session, as `confab token create` prints it.")
    var token: String?

    @Flag(help: "Meet strangers in the roulette.")
    var roulette = false

    @Option(help: "An IVF file with VP8 or an Ogg file with Opus, or both by their name without .ivf and .ogg.")
    var publish: [String] = []

    @Option(help: "The directory to record to, a file for each picture and each sound.")
    var record: String?

    @Option(help: "The name others see.")
    var name = "Bot"

    @Option(help: "What to say to whoever comes, besides that this is a bot.")
    var say: String?

    @Option(help: "So many bots at once; they do not meet each other.")
    var count = 1

    @Option(help: "End after so many seconds.")
    var seconds: Int?

    func validate() throws {
        guard roulette != (session != nil) else {
            throw ValidationError("Give --roulette or --session, one of the two.")
        }
        guard (session == nil) == (token == nil) else { throw ValidationError("--session and --token go together.") }
        guard (1...Self.mostBots).contains(count) else {
            throw ValidationError("--count is at least 1 and at most \(Self.mostBots).")
        }
        guard seconds.map({ (1...1_000_000).contains($0) }) ?? true else {
            throw ValidationError("--seconds is a number from 1 to 1000000.")
        }
        guard !name.isEmpty, name.utf8.count <= Limits.name else {
            throw ValidationError("--name has at most \(Limits.name) bytes.")
        }
        guard say?.utf8.count ?? 0 <= Limits.signalData / 2 else {
            throw ValidationError("--say has at most \(Limits.signalData / 2) bytes.")
        }
    }

    func run() async throws {
        let plan = try plan()
        let loop = try RobotLoop()
        defer { loop.stop() }
        let company = Bot.Company()
        let count = count
        let bots = Task {
            try await withThrowingTaskGroup(of: Void.self) { group in
                for number in 0..<count {
                    group.addTask {
                        let mark = count > 1 ? "\(number + 1): " : ""
                        let bot = try await Bot.connect(plan, number: number, of: company, on: loop) { line in
                            Self.tell(mark + line)
                        }
                        try await bot.run()
                    }
                }
                try await group.waitForAll()
            }
        }
        let stops = endings { bots.cancel() }
        defer { for stop in stops { stop.cancel() } }
        do {
            try await bots.value
        } catch is CancellationError {
        } catch let error as WireError {
            throw Complaint(description: "\(error.message) (\(error.code.rawValue))")
        } catch {
            throw Complaint(description: "\(error)")
        }
    }

    /// What ends the bots: Ctrl-C, SIGTERM and the time given.
    private func endings(_ end: @escaping @Sendable () -> Void) -> [any DispatchSourceProtocol] {
        var sources: [any DispatchSourceProtocol] = []
        for number in [SIGINT, SIGTERM] {
            signal(number, SIG_IGN)
            let source = DispatchSource.makeSignalSource(signal: number, queue: .global())
            source.setEventHandler(handler: end)
            source.activate()
            sources.append(source)
        }
        if let seconds {
            let timer = DispatchSource.makeTimerSource(queue: .global())
            timer.setEventHandler(handler: end)
            timer.schedule(deadline: .now() + .seconds(seconds))
            timer.activate()
            sources.append(timer)
        }
        return sources
    }

    private static func tell(_ line: String) {
        FileHandle.standardError.write(Data((line + "\n").utf8))
    }

    // MARK: The plan

    private func plan() throws -> BotPlan {
        var place = BotPlan.Place.roulette
        if let session, let token {
            guard let id = SessionID(session) else {
                throw Complaint(description: "This is not a session id: \(session)")
            }
            place = .session(id, token: token)
        }
        if let record { try makeDirectory(record) }
        return BotPlan(
            server: server, place: place, programme: try programme(), directory: record, name: name, line: say)
    }

    private func makeDirectory(_ path: String) throws {
        do {
            try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
        } catch {
            throw Complaint(
                description: "\(path) is no directory and cannot be made one: \(error.localizedDescription)")
        }
        guard FileManager.default.isWritableFile(atPath: path) else {
            throw Complaint(description: "Nothing can be written to \(path).")
        }
    }

    private func programme() throws -> Programme {
        guard !publish.isEmpty else { return .sample }
        var programme = Programme()
        for path in try publish.flatMap(files) {
            do {
                try programme.add(try bytes(of: path))
            } catch let error as MediaFileError {
                throw Complaint(description: "\(path) \(error).")
            }
        }
        return programme
    }

    /// The files that an argument names: itself, or those of its name with the two endings.
    private func files(_ argument: String) throws -> [String] {
        var isDirectory: ObjCBool = false
        if FileManager.default.fileExists(atPath: argument, isDirectory: &isDirectory), !isDirectory.boolValue {
            return [argument]
        }
        let files = ["ivf", "ogg"].map { "\(argument).\($0)" }.filter { FileManager.default.fileExists(atPath: $0) }
        guard !files.isEmpty else { throw Complaint(description: "There is no file \(argument).") }
        return files
    }

    /// In bytes: half an hour of a good picture. It is held in memory.
    private static let mostFile = 512 << 20

    private func bytes(of path: String) throws -> [UInt8] {
        do {
            let file = try FileHandle(forReadingFrom: URL(filePath: path))
            defer { try? file.close() }
            let data = try file.read(upToCount: Self.mostFile + 1) ?? Data()
            guard data.count <= Self.mostFile else {
                throw Complaint(description: "\(path) has more than \(Self.mostFile >> 20) MB; cut it.")
            }
            return [UInt8](data)
        } catch let error as Complaint {
            throw error
        } catch {
            throw Complaint(description: "\(path) cannot be read: \(error.localizedDescription)")
        }
    }
}
