import Foundation
import Synchronization
import Testing

extension Hostile {
    /// A polling client has only its polls: what the server writes into one that was given up must come again.
    @Suite("Polls that are given up") struct SocketIOLoss {
        /// Budgets out of the way: what is looked at is what arrives.
        private static let settings = [
            "CONFAB_LIMITS_VERBS_PER_SECOND": "100000", "CONFAB_LIMITS_VERB_BURST": "100000",
        ]

        /// Has the server say something to this client, again and again: each message that asks for an acknowledgement
        /// gets one.
        private static func talk(_ client: RawSocketIO, count: Int, seed: UInt64) -> Background<Void> {
            Background {
                var random = Random(seed: seed)
                let socket = try RawSocket(port: client.port)
                for number in 1...count {
                    try client.post("3:\(number)::x", on: socket)
                    // Nothing comes there now: the next is said at any moment.
                    _ = socket.isReadable(until: .now + .microseconds(.random(in: 0..<6000, using: &random)))
                }
            }
        }

        /// How a client gives up a poll.
        enum Abandoning: CaseIterable { case close, reset, closeUnread }

        @Test(
            "nothing is lost, doubled or out of order, whenever and however polls are given up",
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
                        // At any moment, at the latest when the answer comes.
                        _ = socket.isReadable(until: .now + .microseconds(.random(in: 0..<5000, using: &random)))
                        switch how {
                        case .close: socket.close()
                        case .reset: socket.reset()
                        case .closeUnread:
                            // The answer lies there, unread, when the socket is closed.
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

        @Test("a poll given up after 3 s, as Python's client does, loses nothing")
        func pythonsPatience() async throws {
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
