import Foundation
import Signaling
import Testing
import Wire

/// A socket that tries to resume a client connection, and what it received. Unlike `Person`, it continues the numbering
/// of earlier sockets.
private final class Claimant {
    let line: RawWebSocket
    private(set) var welcome = Welcome()
    private(set) var errors: [String] = []
    /// The highest number received on any socket of the client connection.
    private(set) var received: UInt64

    init(_ server: ServerProcess, _ secret: String, received: UInt64) throws {
        line = try RawWebSocket.open(port: server.port)
        self.received = received
        var hello = Hello()
        hello.resume = Hello.Resume(secret: secret, received: received)
        try line.send(text: Envelope(message: ClientMessage.hello(hello)).encode())
        while let message = try next() {
            guard case .welcome(let welcome) = message else { continue }
            self.welcome = welcome
            return
        }
        throw TimedOut("no welcome: closed with \(line.closeCode ?? 1006) after \(errors)")
    }

    private func next() throws -> ServerMessage? {
        guard let text = try line.readText() else { return nil }
        let envelope = try Envelope<ServerMessage>.decode(Array(text.utf8))
        if let seq = envelope.seq { received = max(received, seq) }
        if case .error(let error) = envelope.message { errors.append(error.error.code.rawValue) }
        return envelope.message
    }

    /// Sends a ping and returns whether a pong arrives.
    func isAnswered() throws -> Bool {
        line.socket.sendWhatGoes(RawFrame.text(Envelope(ack: received, message: ClientMessage.ping).encode()).bytes)
        while let message = try next() {
            if case .pong = message { return true }
        }
        return false
    }
}

extension Hostile {
    @Suite("Case 9: stolen connections") struct ResumeAttacks {
        private static let settings = KeptSecretAttacks.settings.merging(["CONFAB_CONNECTION_RESUME_GRACE": "30s"]) {
            $1
        }

        private static func meet(_ server: ServerProcess) async throws -> (Person, Person, Admission) {
            let forging = try await Forging(server)
            return try KeptSecretAttacks.meet(server, token: forging.token(forging.userClaims()))
        }

        @Test("a resume secret with any changed character resumes nothing and disturbs no one")
        func alteredSecrets() async throws {
            try await Attack(number: 9, name: "altered resume secrets", settings: Self.settings).run { server in
                let (ann, bob, admission) = try await Self.meet(server)
                let (secret, other) = (ann.welcome.resume.secret, bob.welcome.resume.secret)
                var altered = KeptSecretAttacks.altered(secret)
                // Combine one connection with another connection's proof.
                altered.append(String(secret.prefix(23) + other.dropFirst(23)))
                altered += ["a", "R", ""].map { "\($0)_\(secret.dropFirst(2))" }
                altered += [secret.uppercased(), secret + other, "", "r_", "r_" + String(repeating: "A", count: 43)]
                altered.append(try KeptSecretAttacks.newSecret(server))
                var tally = Tally()
                for (index, text) in altered.enumerated() {
                    let thief = try Claimant(server, text, received: [0, 1, ann.received, 1 << 53][index % 4])
                    tally.count(thief.welcome.resumed ? "resumed" : thief.errors.joined(separator: " "))
                    #expect(thief.errors == ["resume_failed"], "\(text)")
                    #expect(!thief.welcome.resumed && thief.welcome.connection != ann.welcome.connection)
                    #expect(thief.welcome.state.roulette.state == .idle && thief.welcome.state.sessions == [])
                }
                let heard = ann.heard.count
                let signal = SessionVerb.Signal(session: admission.session, type: "chat", data: "still here")
                #expect(try ann.hearAnswer(to: ann.say(.session(.signal(signal)))) == nil)
                let line = try bob.hear("line") { if case .session(.signal(let signal)) = $0 { signal } else { nil } }
                #expect(line.data == "still here")
                #expect(!(ann.heard.dropFirst(heard) + bob.heard).contains { $0.type == "roulette.partner" })
                return AttackOutcome(sent: "\(altered.count) secrets", cameBack: tally.text)
            }
        }

        @Test("a resume secret works once: a replay takes over no connection")
        func replayed() async throws {
            try await Attack(number: 9, name: "replayed resume secrets", settings: Self.settings).run { server in
                let (ann, bob, _) = try await Self.meet(server)
                ann.drop()
                var spent = [ann.welcome.resume.secret]
                var owner = try Claimant(server, spent[0], received: ann.received)
                var tally = Tally()
                for _ in 0..<5 {
                    #expect(owner.welcome.resumed && owner.welcome.connection == ann.welcome.connection)
                    #expect(!spent.contains(owner.welcome.resume.secret))
                    // The first message on a new socket revokes earlier secrets.
                    #expect(try owner.isAnswered())
                    for secret in spent {
                        let thief = try Claimant(server, secret, received: owner.received)
                        tally.count(thief.welcome.resumed ? "resumed" : thief.errors.joined(separator: " "))
                        #expect(thief.errors == ["resume_failed"] && !thief.welcome.resumed)
                    }
                    #expect(try owner.isAnswered())
                    owner.line.socket.close()
                    spent.append(owner.welcome.resume.secret)
                    owner = try Claimant(server, owner.welcome.resume.secret, received: owner.received)
                }
                // The valid secret takes over the connection, and the server closes the previous socket.
                #expect(try owner.isAnswered())
                let next = try Claimant(server, owner.welcome.resume.secret, received: owner.received)
                #expect(next.welcome.resumed)
                #expect(try owner.line.readClose() == 4409)
                #expect(try bob.hearAnswer(to: bob.say(.roulette(.stop))) == nil)
                #expect(
                    !bob.heard.contains {
                        if case .roulette(.ended(let ended)) = $0 { ended.reason != .stopped } else { false }
                    })
                return AttackOutcome(sent: "\(tally.total) spent secrets", cameBack: tally.text)
            }
        }

        @Test("after a restart no resume secret is valid, and all clients start over")
        func afterRestart() async throws {
            try await ServerProcess.run(Self.settings) { server in
                let (ann, bob, _) = try await Self.meet(server)
                server.kill()
                try server.restart()
                let attack = try UnderAttack(server, case: 9, "resume secrets after kill -9")
                var tally = Tally()
                for person in [ann, bob] {
                    let back = try Claimant(server, person.welcome.resume.secret, received: person.received)
                    tally.count(back.errors.joined(separator: " "))
                    #expect(back.errors == ["resume_failed"] && !back.welcome.resumed)
                    #expect(back.welcome.state.roulette.state == .idle && back.welcome.state.sessions == [])
                }
                try attack.finish(sent: "2 secrets", cameBack: tally.text)
            }
        }
    }
}
