import Foundation
import RTC
import Testing
import Wire

extension Hostile {
    @Suite("Case 6: media over TCP") struct MediaStreams {
        /// The number of connections without a password that one address may hold, and the time after which the server
        /// closes them.
        private static let strangers = 16
        private static let handshakeTimeout: Duration = .seconds(10)

        @Test("connections without a password are limited by address and end after ten seconds; others continue")
        func slowFraming() async throws {
            let attack = MediaAttack(number: 6, name: "slow ICE-TCP", tcp: true)
            try await attack.run { place, _ in
                let server = try Self.server(place)
                // If the machine has only one address, the attackers share the limit with the call.
                let here = MediaAttack.elsewhere.map { _ in "127.0.0.3" }
                let began = ContinuousClock.now
                func dial(_ from: String?) throws -> RawSocket {
                    try RawSocket(port: Int(server.port), host: server.host, from: from)
                }
                let held = try (0..<Self.strangers).map { index in
                    let socket = try dial(here)
                    // Connections that send nothing, half a length, a length, a slow frame, empty frames, or random
                    // frames.
                    let beginnings: [[UInt8]] = [
                        [], [0], [4, 0], [0, 100, 0, 1, 2], [UInt8](repeating: 0, count: 2000),
                        MediaLine.frame([UInt8](repeating: 0x55, count: 300)),
                    ]
                    socket.sendWhatGoes(beginnings[index % beginnings.count])
                    return socket
                }
                let refused = try (0..<8).map { _ in try dial(here) }
                let open = Tally.ends(of: refused, within: .seconds(5))
                if here != nil { #expect(open == 0, "\(open) of 8 too many are open") }
                let long = try (0..<4).map { _ in try dial(here.map { _ in "127.0.0.4" }) }
                // 2049 is longer than any valid frame. HTTP and TLS begin with even larger values.
                for (socket, head) in zip(
                    long, [[8, 1], [0xff, 0xff], Array("GET / HTTP/1.1".utf8), [0x16, 3, 1, 2, 0]])
                {
                    socket.sendWhatGoes(head)
                }
                let tooLong = Tally.ends(of: long, within: .seconds(5))
                #expect(tooLong == 0, "\(tooLong) of 4 frames that are too long are accepted")
                #expect(ContinuousClock.now - began < Self.handshakeTimeout, "this machine is too slow for this test")
                // Meanwhile, another client connects over TCP.
                let robot = try MediaRobot(place, tcp: true, from: here.map { _ in "127.0.0.5" })
                try robot.openBoth()
                var trickled = 0
                while ContinuousClock.now - began < Self.handshakeTimeout + .seconds(20), trickled < 2000 {
                    for socket in held { socket.sendWhatGoes([0], within: .zero) }
                    trickled += 1
                    if held.allSatisfy({ $0.isClosedByPeer(within: .zero) }) { break }
                    try robot.run(for: .milliseconds(50))
                }
                let left = Tally.ends(of: held, within: .zero)
                #expect(left == 0, "\(left) of \(held.count) are still open")
                let lived = ContinuousClock.now - began
                // New connections are accepted again.
                let again = try dial(here)
                again.sendWhatGoes([0])
                #expect(!again.isClosedByPeer(within: .milliseconds(300)))
                return AttackOutcome(
                    sent: "\(held.count) slow, \(refused.count) more, \(long.count) long frames",
                    cameBack:
                        "\(refused.count - open) refused, \(long.count - tooLong) cut off, the rest after \(lived.text)"
                )
            }
        }

        /// The server's address for media over TCP.
        private static func server(_ place: MediaPlace) throws -> TransportAddress {
            let robot = try MediaRobot(place, from: MediaAttack.elsewhere)
            let (_, answer) = try robot.offer(.receive, MediaOffering.slots(1))
            guard let candidate = answer.candidates.first(where: { $0.transport == .tcpPassive }) else {
                throw TimedOut("the server has no TCP candidate")
            }
            return candidate.address
        }
    }
}
