import Foundation
import RTC
import Testing
import Wire

/// An attack on the media of a separate server during a call between two people. The call must not be disturbed, a new
/// client must be served afterwards, and the server's memory must stay below a bound.
struct MediaAttack: Sendable {
    /// The server announces its loopback address for media, because the robots are on the same machine. Its budgets are
    /// large enough for the tests.
    static let settings = [
        "CONFAB_MEDIA_ADDRESS": "127.0.0.1", "CONFAB_LIMITS_HANDSHAKE_BURST": "100000",
        "CONFAB_LIMITS_SOCKETS_PER_ADDRESS": "1000",
    ]
    /// The attackers' address. It differs from the call's address if the machine has several.
    static let elsewhere = FloodedSession.elsewhere
    /// The shortest stall after which a person would hang up. The printed stalls include the pauses of a busy machine.
    static let longestGap = MediaInterval.seconds(2)
    /// The maximum fraction of the call's packets that may be missing. Lost audio is not retransmitted.
    static let maxMissing = 0.02

    var number: Int
    var name: String
    var settings: [String: String] = [:]
    /// The maximum growth of the server's memory in bytes.
    var maxGrowth = Attack.maxGrowth
    /// Whether one of the two is behind a firewall that allows only TCP.
    var tcp = false

    /// Runs the attack and prints its row of the table.
    func run(_ body: (MediaPlace, UndisturbedCall) async throws -> AttackOutcome) async throws {
        try await ServerProcess.run(Self.settings.merging(settings) { $1 }) { server in
            let place = try await MediaPlace(server)
            let call = try UndisturbedCall.start(place, tcp: tcp)
            try call.goesOn()
            let before = server.memory
            call.enter(.during)
            let outcome = try await body(place, call)
            call.enter(.after)
            try serveAnother(place)
            try call.goesOn()
            let report = try call.finish()
            let growth = server.peakMemory - before
            AttackReport.print(
                case: number, name: name, sent: outcome.sent, cameBack: outcome.cameBack,
                peakMemory: server.peakMemory, grewBy: growth, others: report.text)
            judge(report)
            #expect(growth < maxGrowth, "\(name): the server grew by \(mebibytes(growth))")
        }
    }

    /// Checks that a new client can join, publish, and receive its own stream.
    private func serveAnother(_ place: MediaPlace) throws {
        do {
            let robot = try MediaRobot(place)
            try robot.openBoth()
            try robot.publish()
            guard let stream = robot.published else { return }
            try robot.watch(stream, from: robot.source?.mark)
            let deadline = ContinuousClock.now + .seconds(30)
            while robot.receptions.values.contains(where: { $0.count < 3 }) {
                try robot.run(for: .milliseconds(10))
                guard ContinuousClock.now < deadline else { throw TimedOut("no media: \(robot.receptions)") }
            }
        } catch {
            Issue.record("\(name): after the attack a new client is not served: \(error)")
        }
    }

    private func judge(_ report: CallReport) {
        #expect(report.share < Self.maxMissing, "\(name): \(report.text)")
        #expect(report.videoMissing <= report.sent / 100, "\(name): video that was not retransmitted: \(report.text)")
        for phase in [report.before, report.during, report.after] {
            #expect(phase.longestGap < Self.longestGap, "\(name): \(report.text)")
        }
        #expect(report.foreign == 0, "\(name): \(report.foreign) packets of another publisher")
        #expect(report.forged == 0, "\(name): \(report.forged) packets that could not be decrypted or were duplicates")
    }
}
