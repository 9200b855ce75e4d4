import Testing
import Wire

/// Measures a chat between two people, and the server's memory, during an attack. It is for tests that cannot use
/// `Attack`, because the pair must connect after a restart of the server, or because its results are compared with
/// those of another pair.
struct UnderAttack {
    private let server: ServerProcess
    private let number: Int
    private let name: String
    private let pair: UndisturbedPair
    private let memory: Int

    init(_ server: ServerProcess, case number: Int, _ name: String) throws {
        (self.server, self.number, self.name) = (server, number, name)
        pair = try UndisturbedPair.start(server)
        memory = server.memory
    }

    /// Ends the chat, which fails if a message was lost, and prints the row.
    @discardableResult
    func finish(sent: String, cameBack: String) throws -> PairReport {
        // The measurement needs a minimum number of messages.
        try eventually("the pair said only \(pair.messages) lines") { pair.messages >= 20 || !pair.isChatting }
        let report = try pair.finish()
        let peak = server.peakMemory
        AttackReport.print(
            case: number, name: name, sent: sent, cameBack: cameBack, peakMemory: peak, grewBy: peak - memory,
            others: report.text
        )
        #expect(server.isRunning)
        #expect(report.messages > 0)
        #expect(peak - memory < Attack.maxGrowth, "the server's memory grew by \(mebibytes(peak - memory))")
        return report
    }
}

extension Person {
    /// Waits for the next match.
    func hearMatched() throws -> RouletteNotice.Matched {
        try hear("match") { if case .roulette(.matched(let matched)) = $0 { matched } else { nil } }
    }

    /// Returns the outcome of a hello or a join: `welcome`, `joined`, or an error's code and the close code, which is
    /// `-` if the connection stays open.
    ///
    /// - Parameter seq: the join's number; nil for the hello.
    func verdict(on seq: UInt64? = nil) throws -> String {
        let deadline = ContinuousClock.now + .seconds(20)
        while let message = try next(until: deadline) {
            switch message {
            case .welcome where seq == nil: return "welcome"
            case .session(.joined(let joined)) where joined.re == seq: return "joined"
            case .error(let error) where error.re == nil || error.re == seq:
                // Send a ping. If the connection stays open, a pong arrives. Otherwise the close arrives first.
                line.socket.sendWhatGoes(RawFrame.text(Envelope(message: ClientMessage.ping).encode()).bytes)
                return try "\(error.error.code.rawValue) \(closeOrPong(until: deadline))"
            default: continue
            }
        }
        return "closed \(closeCode ?? 1006)"
    }

    private func closeOrPong(until deadline: ContinuousClock.Instant) throws -> String {
        while let message = try next(until: deadline) {
            if case .pong = message { return "-" }
        }
        return "\(closeCode ?? 1006)"
    }
}

extension Hostile {
    @Suite("Without an attack") struct Peace {
        @Test("two people chat undisturbed without an attack: the baseline of the other suites")
        func baseline() async throws {
            try await ServerProcess.run(UndisturbedPair.settings) { server in
                let peace = try UnderAttack(server, case: 0, "no attack")
                let visitor = try Person.arrive(port: server.port)
                let asked = 200
                for _ in 0..<asked {
                    let seq = try visitor.say(.roulette(.count))
                    let count = try visitor.hear("count") {
                        if case .roulette(.count(let count)) = $0 { count } else { nil }
                    }
                    #expect((count.re, count.online, count.waiting) == (seq, 3, 0))
                }
                try peace.finish(sent: "\(asked) counts", cameBack: "\(asked) answers")
            }
        }
    }
}
