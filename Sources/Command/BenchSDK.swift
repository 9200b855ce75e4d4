import ArgumentParser
import Foundation
import Robots
import Server
import Signaling
import Wire

/// The `confab bench sdk` command. Measures clients of the Swift SDK.
struct BenchSDK: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "sdk",
        abstract: "Connect clients of the Swift SDK to a temporary server and measure their CPU time and memory.",
        discussion: """
            All clients run in this process, and the server in another. The figures are this process's.

              confab bench sdk --clients 500 --seconds 20 --json
            """
    )

    @Option(help: "Number of idle clients.")
    var clients = 500

    @Option(help: "Duration of the measurement of idle clients in seconds.")
    var seconds = 20

    @Option(help: "Number of signals to send.")
    var signals = 40_000

    @Option(help: "Number of matches in the roulette, each of two new clients.")
    var matches = 50

    @Flag(help: "Print the result as JSON.")
    var json = false

    func validate() throws {
        guard (1...BenchSFU.maxRobots).contains(clients) else {
            throw ValidationError("--clients must be from 1 to \(BenchSFU.maxRobots).")
        }
        guard (1...3600).contains(seconds) else { throw ValidationError("--seconds must be from 1 to 3600.") }
        guard (1...10_000_000).contains(signals) else {
            throw ValidationError("--signals must be from 1 to 10000000.")
        }
        guard (1...10_000).contains(matches) else { throw ValidationError("--matches must be from 1 to 10000.") }
    }

    func run() async throws {
        raiseDescriptorLimit()
        let child = try MeasuredServer.start()
        defer { child.stop() }
        guard let server = URL(string: child.url) else {
            throw CommandError(description: "The server has no usable address: \(child.url)")
        }
        var generator = SystemRandomNumberGenerator()
        let session = child.project.makeSessionID(mediaMode: .routed, now: .now, using: &generator)
        let token = child.project.makeSessionToken(
            SessionTokenClaims(session: session, role: .publisher, lifetime: .seconds(3600)), now: .now,
            using: &generator)
        var load = SDKRun(server: server, clients: clients, seconds: seconds, signals: signals, matches: matches)
        load.progress = { line in FileHandle.standardError.write(Data((line + "\n").utf8)) }
        let report: SDKRun.Report
        do {
            report = try await load.run(in: session, token)
        } catch {
            throw CommandError(description: "\(error)")
        }
        if json {
            let encoder = JSONEncoder()
            encoder.outputFormatting = [.sortedKeys]
            print(String(decoding: try encoder.encode(report), as: UTF8.self))
        } else {
            print(report.text)
        }
    }
}

extension SDKRun.Report {
    /// The results as text.
    var text: String {
        func figure(_ value: Double, _ digits: Int) -> String { String(format: "%.\(digits)f", value) }
        return """
            idle           \(figure(memoryPerClient, 1)) kB and \(figure(processorPerClient, 1)) µs of CPU time per \
            second for each of \(clients) clients
            signals        \(figure(signalsPerSecond, 0)) per second of CPU time, sent and received
            first frame    median \(figure(firstFrameMedian, 0)) ms, 95th percentile \(figure(firstFrame95, 0)) ms, \
            from `matched`, in \(matches) matches
            """
    }
}
