import Foundation

/// Sets up a server on this machine: `confab setup`.
///
/// It asks, looks at the machine, and shows what it will change before it writes anything. The rules are in `Plan/`: this is the
/// shell around them. It starts no programs, so it prints the commands that remain.
///
/// ```swift
/// var options = Setup.Options()
/// options.answers[.domain] = "chat.example.org"
/// try await Setup(options).run()
/// ```
public struct Setup: Sendable {
    /// What the flags say.
    public struct Options: Sendable {
        /// The answers that were given as flags.
        public var answers: [SetupQuestion: String] = [:]
        /// Where files are.
        public var paths = SetupPaths()
        /// Whether to ask. Otherwise defaults are accepted, and an answer without a default is an error.
        public var asks = true
        /// Whether to write files. Otherwise they are only shown.
        public var writes = true

        /// Creates options without answers.
        public init() {}
    }

    /// How it talks with the operator.
    public struct Console: Sendable {
        fileprivate let read: @Sendable () -> String?
        fileprivate let write: @Sendable (String) -> Void

        /// - Parameters:
        ///   - read: returns the next line without its newline; nil at the end of the input.
        ///   - write: shows text.
        public init(read: @escaping @Sendable () -> String?, write: @escaping @Sendable (String) -> Void) {
            self.read = read
            self.write = write
        }

        /// Standard input and standard output.
        public static let standard = Console(
            read: { readLine() }, write: { FileHandle.standardOutput.write(Data($0.utf8)) })
    }

    private let options: Options
    private let console: Console
    private let surroundings: SetupSurroundings

    /// Creates the command.
    public init(_ options: Options, console: Console = .standard) {
        self.init(options, console: console, surroundings: .real)
    }

    /// - Parameter surroundings: the network and the machine. Tests replace them.
    init(_ options: Options, console: Console, surroundings: SetupSurroundings) {
        self.options = options
        self.console = console
        self.surroundings = surroundings
    }

    /// Asks, shows the changes, and writes them.
    ///
    /// - Throws: `SetupError` with a sentence for the operator. Files may have been written if the error is about a file.
    public func run() async throws(SetupError) {
        let files = SetupFiles(prefix: options.paths.prefix)
        let machine = try surroundings.observe(options.paths, files)
        let path = options.paths.configuration
        let existing = try SetupConfiguration(machine.files[path], path)
        var interview = try SetupInterview(
            flags: options.answers, known: existing.known, local: machine.addresses)
        try await ask(&interview)
        var random = SystemRandomNumberGenerator()
        var plan = try SetupPlanner.plan(interview, machine, using: &random)
        plan.findings += await check(plan.configuration, machine)
        console.write(plan.report(firewall: machine.firewall))
        guard !plan.files.isEmpty else { return console.write(plan.stepsText) }
        guard options.writes else {
            return console.write("\nNothing was written, because of --dry-run.\n" + plan.stepsText)
        }
        try confirm()
        for file in plan.files { try files.requireUnchanged(file) }
        try write(plan, files)
        console.write("\nWritten: \(plan.files.map(\.path).joined(separator: ", "))\n" + plan.stepsText)
    }

    /// Looks whether the server would work on this machine. Files below a prefix are for another system, about which this machine says
    /// nothing.
    private func check(_ configuration: ConfabConfiguration, _ machine: SetupMachine) async -> [DoctorFinding] {
        guard options.paths.prefix.isEmpty else {
            return [DoctorFinding.Check.ports, .addresses].map { check in
                .skipped(check, "", "Not checked on this machine, because --prefix writes files for another system.")
            }
        }
        return await surroundings.check(configuration, machine)
    }

    private func write(_ plan: SetupPlan, _ files: SetupFiles) throws(SetupError) {
        for (index, file) in plan.files.enumerated() {
            do throws(SetupError) {
                try files.write(file)
            } catch {
                guard index > 0 else { throw SetupError("\(error) Nothing was written.") }
                // The next run does not show the steps for files that it does not write.
                console.write(plan.stepsText)
                let written = plan.files.prefix(index).map(\.path).joined(separator: ", ")
                throw SetupError(
                    "\(error) Already written: \(written). Correct this and run setup again, which writes the others. Then follow the "
                        + "steps above.")
            }
        }
    }

    private func ask(_ interview: inout SetupInterview) async throws(SetupError) {
        while true {
            switch interview.step {
            case .done: return
            case .lookUp(let domain):
                let name = await surroundings.lookUp(domain)
                interview.found(name)
            case .ask(let question, let prompt, let suggested):
                guard options.asks else {
                    try interview.acceptDefault()
                    continue
                }
                let shown = suggested.map { " [\($0.isEmpty ? "none" : $0)]" } ?? ""
                console.write("\n\(prompt)\(shown): ")
                guard let line = console.read() else {
                    throw SetupError(
                        "The input ended, and an answer is missing: add \(question.flag). See confab help setup.")
                }
                do throws(SetupError) {
                    try interview.answer(line)
                } catch {
                    console.write("\(error)\n")
                }
            }
        }
    }

    private func confirm() throws(SetupError) {
        guard options.asks else { return }
        while true {
            console.write("\nWrite these changes? yes or no [yes]: ")
            let line = console.read()
            switch line?.trimmingBlanks().lowercased() {
            case "", "yes", "y": return
            case nil, "no", "n": throw SetupError("Nothing was written.")
            default: console.write("Answer yes or no.\n")
            }
        }
    }
}

extension SetupPlan {
    /// The changes, the checks and the ports.
    fileprivate func report(firewall: SetupMachine.Firewall?) -> String {
        var text = "\nChanges:\n\n\(changesText)"
        if let sample {
            text += "\nThere is no folder for sites of nginx here. Give your proxy this configuration:\n\n\(sample)"
        }
        text += "\nChecks:\n\n\(DoctorReport(findings).text)\n"
        text += "\nOpen in the firewalls of this machine and of its provider:\n\n"
        for port in ports {
            let padding = String(repeating: " ", count: max(1, 18 - port.text.count))
            text += "  \(port.text)\(padding)\(port.purpose)\n"
        }
        if let firewall {
            text += "\nHere:\n\n" + ports.map { "  \($0.command(firewall))\n" }.joined()
            if firewall == .firewalld { text += "  firewall-cmd --reload\n" }
        }
        return text
    }

    /// What to do next.
    fileprivate var stepsText: String {
        if steps.isEmpty { return "" }
        return "\nNext:\n\n" + steps.enumerated().map { "  \($0.offset + 1). \($0.element)\n" }.joined()
    }
}
