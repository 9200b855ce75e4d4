import ArgumentParser
import Foundation
import Peers
import Robots
import Server
import Signaling
import Wire

/// The `confab bench network` command: one simulated client that publishes or watches in the network namespace of this
/// process. `Benchmarks/networks` starts several such processes, each in a separate network namespace.
struct BenchNetwork: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "network",
        abstract: "Publish in three simulcast layers, or watch a session and print what arrives each second.",
        discussion: """
            A watcher prints one line a second: the second, kilobits received, the layer of each stream, percent of the audio \
            that was missing or more than 200 ms late, and the largest delay of the audio in milliseconds.

              confab bench network --server http://10.83.1.1:8080 --session "$session" --publish
              confab bench network --server http://10.83.1.1:8080 --session "$session" --seconds 90
            """
    )

    @OptionGroup var data: DataOptions

    @Option(help: "URL of a running server.")
    var server: String

    @Option(help: "ID of a session of the project in --data-dir.")
    var session: String

    @Flag(help: "Publish instead of watching.")
    var publish = false

    @Option(help: "Duration in seconds.")
    var seconds = 60

    func validate() throws {
        guard (1...3600).contains(seconds) else { throw ValidationError("--seconds must be from 1 to 3600.") }
        guard SessionID(session) != nil else { throw ValidationError("--session must be the ID of a session.") }
    }

    func run() async throws {
        guard let session = SessionID(session) else { return }
        let (project, _) = try data.project()
        var generator = SystemRandomNumberGenerator()
        let token = project.makeSessionToken(
            SessionTokenClaims(session: session, role: .publisher, lifetime: .seconds(3600)), now: .now,
            using: &generator)
        let run = NetworkBench(server: server, session: session, token: token, seconds: seconds)
        guard !publish else { return try await run.publish() }
        try await run.watch { second, sample in
            let layers = sample.layers.joined(separator: " ")
            print(
                "\(second)\t\(Int(sample.kilobits))\t\(layers)\t\(String(format: "%.1f", sample.concealed))\t"
                    + "\(Int(sample.delay))")
            // Flush each line, because other programs read the output while it is printed.
            fflush(nil)
        }
    }
}
