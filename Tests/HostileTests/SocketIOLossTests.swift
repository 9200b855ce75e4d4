import Foundation
import Synchronization
import Testing

extension Hostile {
    /// A polling client receives messages only in its polls. The server must send messages again if the poll that
    /// contained them was aborted.
    @Suite("Aborted polls") struct SocketIOLoss {
        /// Large budgets, because this test is about delivery.
        private static let settings = [
            "CONFAB_LIMITS_REQUESTS_PER_SECOND": "100000", "CONFAB_LIMITS_REQUEST_BURST": "100000",
        ]

        /// Makes the server send messages to this client, by sending messages that request an acknowledgment.
        private static func talk(_ client: RawSocketIO, count: Int, seed: UInt64) -> Background<Void> {
            Background {
                var random = Random(seed: seed)
                let socket = try RawSocket(port: client.port)
                for number in 1...count {
                    try client.post("3:\(number)::x", on: socket)
                    // Wait a random time before the next message. Nothing arrives on this socket.
                    _ = socket.isReadable(until: .now + .microseconds(.random(in: 0..<6000, using: &random)))
                }
            }
        }

        /// How a client aborts a poll.
        enum Abandoning: CaseIterable { case close, reset, closeUnread }

        @Test(
            "nothing is lost, duplicated or reordered when polls are aborted",
            arguments: Abandoning.allCases)
        func abandonedPolls(_ how: Abandoning) async throws {
            let seed = UInt64.random(in: 1 ... .max)
            let count = 300
            try await ServerProcess.run(Self.settings) { server in
                let client = try RawSocketIO(port: server.port)
                try client.poll()
                let talking = Self.talk(client, count: count, seed: seed)
                var random = Random(seed: ~seed)
                var heard: [Int] = []
                var given = 0
                let deadline = ContinuousClock.now + .seconds(120)
                while heard.last != count, ContinuousClock.now < deadline {
                    let socket = try RawSocket(port: client.port)
                    try socket.send("GET \(client.pollPath) HTTP/1.1\r\nHost: x\r\n\r\n")
                    if Int.random(in: 0..<3, using: &random) == 0 {
                        given += 1
                        // Abort at a random time, or when the response arrives.
                        _ = socket.isReadable(until: .now + .microseconds(.random(in: 0..<5000, using: &random)))
                        switch how {
                        case .close: socket.close()
                        case .reset: socket.reset()
                        case .closeUnread:
                            // Let the response arrive, and close the socket without reading it.
                            _ = socket.isReadable(until: .now + .milliseconds(20))
                            socket.close()
                        }
                        continue
                    }
                    for packet in RawSocketIO.packets(try socket.readAnswer(within: .seconds(30)).text) {
                        if packet.hasPrefix("6:::"), let number = Int(packet.dropFirst(4)) { heard.append(number) }
                    }
                }
                try talking.join(within: .seconds(120))
                print("polls given up by \(how): \(given) of them, \(heard.count) messages heard, seed \(seed)")
                #expect(heard == Array(1...count), "seed \(seed)")
                #expect(given > 10)
            }
        }

        @Test("a poll aborted after 3 s, as by Python's client, loses nothing")
        func pollTimeoutOfPython() async throws {
            try await ServerProcess.run { server in
                let client = try RawSocketIO(port: server.port)
                _ = try client.hear(#"5:::{"name":"initial""#)
                let socket = try RawSocket(port: server.port)
                try socket.send("GET \(client.pollPath) HTTP/1.1\r\nHost: x\r\n\r\n")
                #expect(!socket.isReadable(until: .now + .seconds(3)))
                socket.close()
                try client.post(RawSocketIO.event("next"))
                #expect(try client.poll() == RawSocketIO.event("empty"))
            }
        }
    }
}
