import Foundation
import Testing

/// What an attack did, for its line of the table.
struct AttackOutcome: Sendable {
    var sent: String
    var cameBack: String
}

/// One attack on a server of its own, beside two people who chat: they must not be disturbed, and the server's memory
/// must not grow past a bound.
struct Attack: Sendable {
    /// What a server may grow by under most attacks: several times what was seen, far below what is sent.
    static let mostGrowth = 32 << 20

    var number: Int
    var name: String
    var settings: [String: String] = [:]
    /// In bytes.
    var mostGrowth = Self.mostGrowth
    /// How the two people reach the server.
    var connect: @Sendable (ServerProcess) throws -> RawSocket = { try RawSocket(port: $0.port) }

    /// Runs the attack and prints its line.
    func run(_ body: (ServerProcess) async throws -> AttackOutcome) async throws {
        try await ServerProcess.run(UndisturbedPair.settings.merging(settings) { $1 }) { server in
            let pair = try UndisturbedPair.start(server, connect: connect)
            let before = server.memory
            let outcome = try await body(server)
            // Somebody new is served too.
            do {
                try Person.connect(on: connect(server)).greet()
            } catch {
                Issue.record("\(name): after the attack somebody new is not served: \(error)")
            }
            // An attack may be over in a moment; what it did to others shows only when they have had time to speak.
            try eventually("the pair said only \(pair.messages) lines") { pair.messages >= 20 || !pair.isChatting }
            let report = try pair.finish()
            let growth = server.peakMemory - before
            AttackReport.print(
                case: number, name: name, sent: outcome.sent, cameBack: outcome.cameBack,
                peakMemory: server.peakMemory, grewBy: growth, others: report.text
            )
            #expect(growth < mostGrowth, "\(name): the server grew by \(mebibytes(growth))")
        }
    }
}

/// Answers, or ends of connections, counted for the table.
struct Tally {
    private var counts: [String: Int] = [:]

    mutating func count(_ answer: String) { counts[answer, default: 0] += 1 }

    subscript(_ answer: String) -> Int { counts[answer] ?? 0 }

    var total: Int { counts.values.reduce(0, +) }

    var text: String { counts.sorted { $0.key < $1.key }.map { "\($0.value) × \($0.key)" }.joined(separator: ", ") }

    /// Waits until each line is closed by the server, and counts with which code; 1006 when it just ended.
    static func closes(of lines: [RawWebSocket], within limit: Duration = .seconds(60)) throws -> Tally {
        var endings = Tally()
        let deadline = ContinuousClock.now + limit
        for line in lines {
            let code = try line.readClose(within: max(.milliseconds(1), deadline - ContinuousClock.now))
            endings.count("\(code)")
            // So that the server need not wait for the answer to its close.
            line.socket.sendWhatGoes(RawFrame.close(code).bytes, within: .zero)
        }
        return endings
    }

    /// Waits until each connection is ended by the server; says how many were not.
    static func ends(of sockets: [RawSocket], within limit: Duration = .seconds(60)) -> Int {
        let deadline = ContinuousClock.now + limit
        return sockets.filter { !$0.isClosedByPeer(within: max(.zero, deadline - ContinuousClock.now)) }.count
    }

    /// Takes what comes until then, or until the server has ended each connection; returns those that are open then.
    static func open(of sockets: [RawSocket], until deadline: ContinuousClock.Instant) -> [RawSocket] {
        var open = sockets.filter { !$0.isClosedByPeer(within: .zero) }
        while !open.isEmpty, MediaWaiting.isAnyReadable(open.map(\.descriptor), until: deadline) {
            open.removeAll { $0.isClosedByPeer(within: .zero) }
        }
        return open
    }
}
