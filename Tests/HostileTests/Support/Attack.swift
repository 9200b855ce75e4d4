import Foundation
import Testing

/// The result of an attack, for its row in the printed table.
struct AttackOutcome: Sendable {
    var sent: String
    var cameBack: String
}

/// An attack on a separate server while two people chat on it. The chat must not be disturbed, and the server's memory
/// must stay below a bound.
struct Attack: Sendable {
    /// The maximum growth of the server's memory in most attacks. It is several times the measured growth, but far less
    /// than the amount of data that an attack sends.
    static let maxGrowth = isSanitized ? 512 << 20 : 32 << 20
    /// Whether a sanitizer is used. It surrounds every block of memory, and keeps freed memory for a while.
    static let isSanitized = ProcessInfo.processInfo.environment["CONFAB_SANITIZER"] != nil

    var number: Int
    var name: String
    var settings: [String: String] = [:]
    /// The maximum growth of the server's memory in bytes.
    var maxGrowth = Self.maxGrowth
    /// How the two people connect to the server.
    var connect: @Sendable (ServerProcess) throws -> RawSocket = { try RawSocket(port: $0.port) }

    /// Runs the attack and prints its row of the table.
    func run(_ body: (ServerProcess) async throws -> AttackOutcome) async throws {
        try await ServerProcess.run(UndisturbedPair.settings.merging(settings) { $1 }) { server in
            let pair = try UndisturbedPair.start(server, connect: connect)
            let before = server.memory
            let outcome = try await body(server)
            // A new client must be served too.
            do {
                try Person.connect(on: connect(server)).greet()
            } catch {
                Issue.record("\(name): after the attack a new client is not served: \(error)")
            }
            // An attack may be very short. Its effect shows only after the pair has exchanged some messages.
            try eventually("the pair said only \(pair.messages) lines") { pair.messages >= 20 || !pair.isChatting }
            let report = try pair.finish()
            let growth = server.peakMemory - before
            AttackReport.print(
                case: number, name: name, sent: outcome.sent, cameBack: outcome.cameBack,
                peakMemory: server.peakMemory, grewBy: growth, others: report.text
            )
            #expect(growth < maxGrowth, "\(name): the server grew by \(mebibytes(growth))")
        }
    }
}

/// Counts of answers or closed connections, for the table.
struct Tally {
    private var counts: [String: Int] = [:]

    mutating func count(_ answer: String) { counts[answer, default: 0] += 1 }

    subscript(_ answer: String) -> Int { counts[answer] ?? 0 }

    var total: Int { counts.values.reduce(0, +) }

    var text: String { counts.sorted { $0.key < $1.key }.map { "\($0.value) × \($0.key)" }.joined(separator: ", ") }

    /// Waits until the server has closed each connection, and counts the close codes. A connection without a close
    /// frame counts as 1006.
    static func closes(of lines: [RawWebSocket], within limit: Duration = .seconds(60)) throws -> Tally {
        var endings = Tally()
        let deadline = ContinuousClock.now + limit
        for line in lines {
            let code = try line.readClose(within: max(.milliseconds(1), deadline - ContinuousClock.now))
            endings.count("\(code)")
            // Answer the close, so that the server need not wait.
            line.socket.sendWhatGoes(RawFrame.close(code).bytes, within: .zero)
        }
        return endings
    }

    /// Waits until the server has ended each connection and returns how many are still open.
    static func ends(of sockets: [RawSocket], within limit: Duration = .seconds(60)) -> Int {
        let deadline = ContinuousClock.now + limit
        return sockets.filter { !$0.isClosedByPeer(within: max(.zero, deadline - ContinuousClock.now)) }.count
    }

    /// Reads until the deadline, or until the server has ended all connections. Returns the connections that are still
    /// open.
    static func open(of sockets: [RawSocket], until deadline: ContinuousClock.Instant) -> [RawSocket] {
        var open = sockets.filter { !$0.isClosedByPeer(within: .zero) }
        while !open.isEmpty, MediaWaiting.isAnyReadable(open.map(\.descriptor), until: deadline) {
            open.removeAll { $0.isClosedByPeer(within: .zero) }
        }
        return open
    }
}
