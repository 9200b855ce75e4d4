import ArgumentParser
import Server

/// The `confab doctor` command. Finds out why people cannot reach a server.
struct DoctorCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "doctor", abstract: "Find out why people cannot reach the server.",
        discussion: """
            Without --url, checks this machine, the configuration and the running server. Run it as the server's user, with the \
            --data-dir, --config and variables of the server. With --url, checks a server from outside: run that on another machine, \
            such as one at home. Prints a line for each check, and what to do if something is wrong. The exit status is 1 if a check \
            failed.
            """)

    @OptionGroup var data: DataOptions

    @Option(help: "Check the server at this URL from outside, for example https://chat.example.org.")
    var url: String?

    @Flag(help: "Print the report as JSON.")
    var json = false

    func run() async throws {
        let report = try await report()
        print(json ? report.json : report.text)
        if report.hasFailed { throw ExitCode.failure }
    }

    private func report() async throws -> DoctorReport {
        if let url {
            guard let doctor = Doctor(url: url) else {
                throw ValidationError("--url must be the URL of a server, for example https://chat.example.org.")
            }
            return await doctor.run()
        }
        do throws(ConfigurationError) {
            return await Doctor(configuration: try data.load(overrides: [:])).run()
        } catch {
            return Doctor.report(error)
        }
    }
}
