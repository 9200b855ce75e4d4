import Foundation
import Testing

extension Hostile {
    /// Floods of connections from one address, before any request.
    @Suite("Floods of connections") struct ConnectionAttacks {
        private static let budget = [
            "CONFAB_LIMITS_NEW_CONNECTION_BURST": "50", "CONFAB_LIMITS_NEW_CONNECTIONS_PER_SECOND": "1",
            "CONFAB_LIMITS_REQUEST_HEADER_TIMEOUT": "5m",
        ]

        /// Opens connections and returns those that the server has not closed when enough are closed.
        private static func flood(_ server: ServerProcess, _ count: Int, closed: Int) throws -> [RawSocket] {
            var open = try (0..<count).map { _ in try RawSocket(port: server.port) }
            try eventually("only \(count - open.count) of \(count) are closed") {
                open.removeAll { $0.isClosedByPeer(within: .zero) }
                return count - open.count >= closed
            }
            return open
        }

        @Test("new connections of an address beyond its budget are closed at once, and other addresses are served")
        func plain() async throws {
            try await ServerProcess.run(Self.budget) { server in
                // The budget is refilled during the flood, so the numbers are not exact.
                let open = try Self.flood(server, 200, closed: 120)
                #expect(open.count >= 50)
                #expect(try open[0].ask("/health").status == 200)
                // On Linux all of 127.0.0.0/8 is this machine.
                if let elsewhere = FloodedSession.elsewhere {
                    #expect(try RawSocket(port: server.port, from: elsewhere).ask("/health").status == 200)
                }
                try eventually("the address is never served again") {
                    (try? RawSocket(port: server.port).ask("/health").status) == 200
                }
            }
        }

        @Test("the budget applies before a TLS handshake")
        func tls() async throws {
            guard let tunnel = try TLSTunnel() else { return }
            defer { tunnel.remove() }
            try await ServerProcess.run(Self.budget.merging(tunnel.settings) { $1 }) { server in
                let open = try Self.flood(server, 200, closed: 120)
                #expect(open.count >= 50)
            }
        }

        @Test("connections of a trusted proxy have no budget")
        func proxy() async throws {
            let settings = Self.budget.merging(["CONFAB_TRUSTED_PROXIES": "127.0.0.1"]) { $1 }
            try await ServerProcess.run(settings) { server in
                let sockets = try (0..<200).map { _ in try RawSocket(port: server.port) }
                for socket in sockets { #expect(try socket.ask("/health").status == 200) }
            }
        }
    }
}
