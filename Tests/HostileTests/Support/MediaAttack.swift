import Foundation
import RTC
import Testing
import Wire

/// One attack on the media of a server of its own, beside two people in a call: they must not be disturbed, somebody
/// new must be served afterwards, and the server's memory must not grow past a bound.
struct MediaAttack: Sendable {
    /// Media is announced at loopback, where the robots are; and they may say as much as the tests need.
    static let settings = [
        "CONFAB_MEDIA_ADDRESS": "127.0.0.1", "CONFAB_LIMITS_HELLO_BURST": "100000",
        "CONFAB_LIMITS_SOCKETS_PER_ADDRESS": "1000",
    ]
    /// Where the attackers are: another address than the call's, where the machine has more than one.
    static let elsewhere = FloodedSession.elsewhere
    /// A stall that a person would hang up over. What was seen is printed; a busy machine's pauses are part of it.
    static let longestGap = MediaInterval.seconds(2)
    /// Of all packets of the call: sound that a full socket lost is not repeated.
    static let mostMissing = 0.02

    var number: Int
    var name: String
    var settings: [String: String] = [:]
    /// In bytes.
    var mostGrowth = Attack.mostGrowth
    /// Whether one of the two is behind a firewall that lets only TCP through.
    var tcp = false

    /// Runs the attack and prints its line.
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
            #expect(growth < mostGrowth, "\(name): the server grew by \(mebibytes(growth))")
        }
    }

    /// Somebody new joins, publishes, and is heard by himself.
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
            Issue.record("\(name): after the attack somebody new is not served: \(error)")
        }
    }

    private func judge(_ report: CallReport) {
        #expect(report.share < Self.mostMissing, "\(name): \(report.text)")
        #expect(report.videoMissing <= report.sent / 100, "\(name): video that was not repeated: \(report.text)")
        for phase in [report.before, report.during, report.after] {
            #expect(phase.longestGap < Self.longestGap, "\(name): \(report.text)")
        }
        #expect(report.foreign == 0, "\(name): \(report.foreign) packets of somebody else")
        #expect(report.forged == 0, "\(name): \(report.forged) packets that could not be decrypted, or came twice")
    }
}
