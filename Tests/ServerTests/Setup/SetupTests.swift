import Foundation
import NIOConcurrencyHelpers
import Synchronization
import Testing

@testable import Server

/// `confab setup` in a temporary folder, with lines as an operator types them.
@Suite("Setup in a folder") struct SetupTests {
    /// A temporary folder, removed with the value.
    private final class Folder: Sendable {
        let path = NSTemporaryDirectory() + "confab-setup-\(UUID().uuidString)"

        init() throws {
            try FileManager.default.createDirectory(
                atPath: path + "/etc/nginx/conf.d", withIntermediateDirectories: true)
        }

        deinit { try? FileManager.default.removeItem(atPath: path) }

        func text(_ file: String) throws -> String { try String(contentsOfFile: path + file, encoding: .utf8) }

        func mode(_ file: String) throws -> Int? {
            let attributes = try FileManager.default.attributesOfItem(atPath: path + file)
            return (attributes[.posixPermissions] as? NSNumber)?.intValue
        }

        /// All files with their inodes: a file that is written again gets another one.
        func inodes() throws -> [String: String] {
            var found: [String: String] = [:]
            for name in try FileManager.default.subpathsOfDirectory(atPath: path) {
                let attributes = try FileManager.default.attributesOfItem(atPath: path + "/" + name)
                guard attributes[.type] as? FileAttributeType == .typeRegular else { continue }
                found[name] = attributes[.systemFileNumber].map { "\($0)" } ?? "?"
            }
            return found
        }
    }

    /// The lines of an operator, and what was shown to them.
    private final class Terminal: Sendable {
        private let lines: Mutex<[String]>
        private let output = Mutex("")

        init(_ lines: [String]) { self.lines = Mutex(lines) }

        var shown: String { output.withLock { $0 } }
        var isAtEnd: Bool { lines.withLock { $0.isEmpty } }

        var console: Setup.Console {
            Setup.Console(
                read: { self.lines.withLock { lines -> String? in lines.isEmpty ? nil : lines.removeFirst() } },
                write: { text in self.output.withLock { $0 += text } })
        }
    }

    private func surroundings() throws -> SetupSurroundings {
        let own = try #require(IPAddress("9.9.9.9"))
        return SetupSurroundings(
            lookUp: { NameObservation(host: $0, addresses: [own]) }, addresses: { [own] },
            executable: "/opt/confab", processors: 2, check: { _, _ in [] })
    }

    private func options(_ folder: Folder, _ answers: [SetupQuestion: String] = [:], asks: Bool = true) -> Setup.Options
    {
        var options = Setup.Options()
        options.paths.prefix = folder.path
        options.answers = answers
        options.asks = asks
        return options
    }

    @Test("answers that are typed become a configuration that the server loads")
    func typed() async throws {
        let folder = try Folder()
        let terminal = Terminal([
            "dirct", "direct", "bücher.example", "chat.example.org", "", "yes", "a@example.org", "yes",
        ])
        try await Setup(options(folder), console: terminal.console, surroundings: try surroundings()).run()
        #expect(terminal.isAtEnd)
        #expect(terminal.shown.contains("is not a usable answer for --mode") && terminal.shown.contains("xn--"))
        #expect(terminal.shown.contains("TCP 443") && terminal.shown.contains("useradd"))
        let path = folder.path + "/etc/confab/confab.yaml"
        let configuration = try ConfabConfiguration.load(file: path)
        #expect(configuration.acme.domains == ["chat.example.org"] && configuration.acme.agreeToTerms)
        #expect(configuration.handlesHTTPS && configuration.publicURL == "https://chat.example.org")
        #expect(try folder.mode("/etc/confab/confab.yaml") == 0o644)
        #expect(try folder.text("/etc/systemd/system/confab.service") == DeploySample.unit)
    }

    @Test("a second run touches no file, and a changed answer only the file that has it")
    func again() async throws {
        let folder = try Folder()
        let answers: [SetupQuestion: String] = [
            .mode: "proxy", .domain: "chat.example.org", .turnServer: "turn.example.org",
        ]
        func run(_ answers: [SetupQuestion: String]) async throws -> String {
            let terminal = Terminal([])
            try await Setup(
                options(folder, answers, asks: false), console: terminal.console, surroundings: try surroundings()
            ).run()
            return terminal.shown
        }
        _ = try await run(answers)
        let first = try folder.inodes()
        #expect(
            first.keys.sorted() == [
                "etc/confab/confab.yaml", "etc/confab/environment", "etc/nginx/conf.d/confab.conf",
                "etc/systemd/system/confab.service",
            ])
        #expect(try folder.mode("/etc/confab/environment") == 0o600)
        let secret = try folder.text("/etc/confab/environment")
        #expect(try await run(answers).contains("Nothing changes"))
        #expect(try await run([:]).contains("Nothing changes"))
        #expect(try folder.inodes() == first)

        let path = folder.path + "/etc/confab/confab.yaml"
        try FileManager.default.setAttributes([.posixPermissions: 0o640], ofItemAtPath: path)
        _ = try await run([.turnServer: "other.example.org"])
        let second = try folder.inodes()
        #expect(second.filter { first[$0.key] != $0.value }.keys.sorted() == ["etc/confab/confab.yaml"])
        #expect(try folder.mode("/etc/confab/confab.yaml") == 0o640, "a file keeps its mode")
        #expect(try folder.text("/etc/confab/environment") == secret)
    }

    @Test("a file that is saved while setup waits for the confirmation is not overwritten")
    func changedMeanwhile() async throws {
        let folder = try Folder()
        let site = "/etc/nginx/conf.d/confab.conf"
        let console = Setup.Console(
            read: {
                try? "# Mine\n".write(toFile: folder.path + site, atomically: true, encoding: .utf8)
                return "yes"
            }, write: { _ in })
        let setup = Setup(
            options(folder, [.mode: "proxy", .domain: "chat.example.org"]), console: console,
            surroundings: try surroundings())
        let error = await #expect(throws: SetupError.self) { try await setup.run() }
        #expect(error?.description.contains("has changed meanwhile") == true)
        #expect(try folder.text(site) == "# Mine\n")
        #expect(try folder.inodes().count == 1, "nothing else was written")
    }

    @Test("nothing is written in a dry run, after no, or at the end of the input")
    func nothingWritten() async throws {
        let folder = try Folder()
        var dry = options(folder, [.mode: "lan"], asks: false)
        dry.writes = false
        let terminal = Terminal([])
        try await Setup(dry, console: terminal.console, surroundings: try surroundings()).run()
        #expect(terminal.shown.contains("  + lan: true\n") && terminal.shown.contains("--dry-run"))
        for lines in [["lan", "maybe", "no"], ["lan"], []] {
            let setup = Setup(options(folder), console: Terminal(lines).console, surroundings: try surroundings())
            await #expect(throws: SetupError.self) { try await setup.run() }
        }
        let silent = Setup(
            options(folder, [.mode: "proxy"], asks: false), console: Terminal([]).console,
            surroundings: try surroundings())
        let error = await #expect(throws: SetupError.self) { try await silent.run() }
        #expect(error?.description.contains("--domain") == true)
        #expect(try folder.inodes().isEmpty)
    }

    @Test("with a prefix, this machine's ports and addresses are not checked, and the plan says so")
    func otherSystem() async throws {
        let folder = try Folder()
        let foreign = try #require(IPAddress("8.8.8.8"))
        let isChecked = NIOLockedValueBox(false)
        var surroundings = try surroundings()
        surroundings.lookUp = { NameObservation(host: $0, addresses: [foreign]) }
        surroundings.check = { _, _ in
            isChecked.withLockedValue { $0 = true }
            return [.passed(.ports, "", "free")]
        }
        let terminal = Terminal([])
        let answers: [SetupQuestion: String] = [.mode: "proxy", .domain: "chat.example.org"]
        try await Setup(
            options(folder, answers, asks: false), console: terminal.console, surroundings: surroundings
        ).run()
        #expect(!isChecked.withLockedValue { $0 })
        #expect(terminal.shown.contains("Not checked on this machine, because --prefix"))
        #expect(terminal.shown.contains("2 skipped") && !terminal.shown.contains("this machine has"))
    }

    @Test("links do not lead out of the prefix")
    func links() async throws {
        let (folder, outside) = (try Folder(), try Folder())
        let files = FileManager.default
        try files.createSymbolicLink(atPath: folder.path + "/etc/confab", withDestinationPath: outside.path)
        let up = String(repeating: "../", count: 40)
        try files.createSymbolicLink(
            atPath: folder.path + "/etc/systemd", withDestinationPath: "\(up)\(outside.path)/./units")
        try await Setup(
            options(folder, [.mode: "lan"], asks: false), console: Terminal([]).console,
            surroundings: try surroundings()
        ).run()
        #expect(try outside.inodes().isEmpty)
        let inside = folder.path + outside.path
        #expect(files.fileExists(atPath: inside + "/confab.yaml"), "a link is one of the system below the prefix")
        #expect(files.fileExists(atPath: inside + "/units/system/confab.service"))
        let again = Terminal([])
        try await Setup(options(folder, asks: false), console: again.console, surroundings: try surroundings()).run()
        #expect(again.shown.contains("Nothing changes"), "files are read where they were written")
    }

    @Test("a loop of links, a pipe and a file that is too large are named, and no advice is given that does not help")
    func unreadable() async throws {
        func error(_ prepare: (String) throws -> Void) async throws -> String {
            let folder = try Folder()
            try FileManager.default.createDirectory(
                atPath: folder.path + "/etc/confab", withIntermediateDirectories: true)
            try prepare(folder.path + "/etc/confab/confab.yaml")
            let setup = Setup(
                options(folder, [.mode: "lan"], asks: false), console: Terminal([]).console,
                surroundings: try surroundings())
            let error = await #expect(throws: SetupError.self) { try await setup.run() }
            return error?.description ?? ""
        }
        let loop = try await error {
            try FileManager.default.createSymbolicLink(atPath: $0, withDestinationPath: "confab.yaml")
        }
        let pipe = try await error { path in try #require(mkfifo(path, 0o600) == 0) }
        let large = try await error { try Data(count: 1 << 20 + 1).write(to: URL(filePath: $0)) }
        #expect(loop.contains("/etc/confab/confab.yaml has too many links"))
        #expect(pipe.contains("/etc/confab/confab.yaml is not a regular file"))
        #expect(large.contains("/etc/confab/confab.yaml is too large"))
        for text in [loop, pipe, large] { #expect(!text.contains("root"), "\(text)") }
    }

    @Test("if a file cannot be written, the error names those that were written before it")
    func writtenPartly() async throws {
        let folder = try Folder()
        let units = folder.path + "/etc/systemd/system"
        try FileManager.default.createDirectory(atPath: units, withIntermediateDirectories: true)
        // What the file is called until it is complete.
        let unfinished = "\(units)/confab.service.\(getpid()).setup"
        try Data().write(to: URL(filePath: unfinished))
        let terminal = Terminal([])
        let setup = Setup(
            options(folder, [.mode: "lan"], asks: false), console: terminal.console, surroundings: try surroundings())
        let error = await #expect(throws: SetupError.self) { try await setup.run() }
        let text = error?.description ?? ""
        #expect(text.contains("Already written: /etc/confab/confab.yaml.") && !text.contains("root"), "\(text)")
        #expect(terminal.shown.contains("systemctl daemon-reload"), "the next run may not show all steps")
        #expect(try folder.inodes()["etc/confab/confab.yaml"] != nil)
        #expect(!FileManager.default.fileExists(atPath: units + "/confab.service"))
    }
}
