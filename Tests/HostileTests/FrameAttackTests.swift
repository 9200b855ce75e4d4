import Foundation
import Testing
import Wire

extension Hostile {
    @Suite("Case 8: WebSocket frames") struct FrameAttacks {
        /// The ping interval is short, because the server waits one interval for a client's close frame. The budgets
        /// are the defaults. Even a busy machine must exhaust a budget faster than it is refilled.
        private static let settings = [
            "CONFAB_CONNECTION_PING_INTERVAL": "500ms", "CONFAB_CONNECTION_MISSED_PINGS": "40",
            "CONFAB_LIMITS_REQUESTS_PER_SECOND": "20", "CONFAB_LIMITS_REQUEST_BURST": "100",
        ]

        /// Opens connections, sends `hello` on half of them and the attack on all of them, and waits until the server
        /// has closed them.
        private func attack(
            _ name: String, sent: String, count: Int = 100, code: UInt16, _ bytes: @escaping @Sendable () -> [UInt8]
        ) async throws {
            try await Attack(number: 8, name: name, settings: Self.settings).run { server in
                let lines = try (0..<count).map { index in
                    index.isMultiple(of: 2)
                        ? try RawWebSocket.openWelcomed(port: server.port) : try RawWebSocket.open(port: server.port)
                }
                let bytes = bytes()
                for line in lines { line.socket.sendWhatGoes(bytes, within: .seconds(10)) }
                let endings = try Tally.closes(of: lines)
                #expect(endings["\(code)"] == count, "\(endings.text)")
                let open = Tally.ends(of: lines.map(\.socket))
                #expect(open == 0, "\(open) connections are still open")
                return AttackOutcome(sent: "\(count) × \(sent)", cameBack: endings.text)
            }
        }

        @Test("a frame that announces 2 GiB is refused as soon as its header arrives")
        func hugeClaim() async throws {
            try await attack("2 GiB claimed", sent: "a head and 64 KiB", code: 1009) {
                RawFrame(opcode: 1, payload: [UInt8](repeating: 0x20, count: 65536), claimedLength: 1 << 31).bytes
            }
        }

        @Test("endless continuation frames are refused at the size limit")
        func endlessContinuation() async throws {
            let part = [UInt8](repeating: 0x20, count: 16 * 1024)
            let message =
                RawFrame.text(part, final: false).bytes
                + (0..<63).flatMap { _ in RawFrame.continuation(part, final: false).bytes }
            try await attack("endless continuation", sent: "64 parts of 16 KiB", count: 20, code: 1009) { message }
        }

        @Test("endless empty continuation frames are refused too")
        func emptyContinuations() async throws {
            let message =
                RawFrame.text([], final: false).bytes
                + (0..<1500).flatMap { _ in RawFrame.continuation([], final: false).bytes }
            try await attack("empty continuations", sent: "1500 empty parts", count: 2, code: 4429) { message }
        }

        @Test("endless pings are refused")
        func pings() async throws {
            let pings = (0..<1500).flatMap { _ in RawFrame.ping([UInt8](repeating: 1, count: 125)).bytes }
            try await attack("pings", sent: "1500 pings of 125 bytes", count: 2, code: 4429) { pings }
        }

        @Test("unmasked frames are refused")
        func unmasked() async throws {
            try await attack("unmasked", sent: "an unmasked text", code: 1002) {
                RawFrame(opcode: 1, payload: Array(WebSocketCase.hello.utf8), masked: false).bytes
            }
        }

        @Test("permessage-deflate is not negotiated, and a compression bomb is not decompressed")
        func bomb() async throws {
            let offer = [("Sec-WebSocket-Extensions", "permessage-deflate; client_max_window_bits")]
            var attack = Attack(number: 8, name: "deflate bomb", settings: Self.settings)
            // Each frame is smaller than the limit for a session description, and the server keeps it until the message
            // is complete. Decompressed, all frames would have 1.6 GiB.
            attack.maxGrowth += 50 * 256 * 1024
            try await attack.run { server in
                // RSV1 marks compressed data in permessage-deflate (RFC 7692 §6).
                let bomb = RawFrame(opcode: 1, payload: Self.deflatedZeros, rsv: 4).bytes
                let lines = try (0..<50).map { _ in try RawWebSocket.open(port: server.port, headers: offer) }
                for line in lines {
                    #expect(line.answer["Sec-WebSocket-Extensions"] == nil)
                    try line.socket.send(bomb)
                }
                let endings = try Tally.closes(of: lines)
                #expect(endings["1002"] == 50, "\(endings.text)")
                return AttackOutcome(sent: "50 × \(Self.deflatedZeros.count) bytes for 32 MiB", cameBack: endings.text)
            }
        }

        /// About 32 MiB of zeros as a DEFLATE stream (RFC 1951): one block with fixed codes. The block contains the
        /// literal 0 and then copies of 258 bytes at distance 1. Each copy has 13 bits: code 285 (11000101) and
        /// distance code 0 (00000).
        private static let deflatedZeros: [UInt8] = {
            var bits: [Bool] = [true, true, false]  // Last block, fixed codes; low bit first.
            bits += [false, false, true, true, false, false, false, false]  // 00110000 is the literal 0.
            let copy = [true, true, false, false, false, true, false, true] + [Bool](repeating: false, count: 5)
            for _ in 0..<130_000 { bits += copy }
            bits += [Bool](repeating: false, count: 7)  // The end of the block.
            return stride(from: 0, to: bits.count, by: 8).map { start in
                bits[start..<min(start + 8, bits.count)].enumerated().reduce(UInt8(0)) { byte, bit in
                    bit.element ? byte | 1 << UInt8(bit.offset) : byte
                }
            }
        }()

        @Test("unfinished messages use at most the memory of the largest session description")
        func unfinished() async throws {
            let (count, description) = (100, 256 * 1024)
            var attack = Attack(number: 8, name: "messages never finished", settings: Self.settings)
            // An incomplete message is kept in an array that doubles as it grows.
            attack.maxGrowth = count * description * 2 + Attack.maxGrowth
            let part = RawFrame.text([UInt8](repeating: 0x20, count: description - 1), final: false).bytes
            try await attack.run { server in
                let lines = try (0..<count).map { _ in try RawWebSocket.openWelcomed(port: server.port) }
                for line in lines {
                    try line.socket.send(part)
                    try line.send(frame: .ping([1]))
                }
                var alive = 0
                for line in lines {
                    while let frame = try line.read(), frame != ServerFrame(opcode: 10, fin: true, rsv: 0, payload: [1])
                    {
                        #expect(frame.opcode == 9)
                    }
                    alive += line.closeCode == nil ? 1 : 0
                }
                let held = server.memory
                for line in lines { try line.send(frame: .continuation([0x20, 0x20], final: false)) }
                let endings = try Tally.closes(of: lines)
                #expect(endings["1009"] == count, "\(endings.text)")
                return AttackOutcome(
                    sent: "\(count) × 256 KiB less one byte",
                    cameBack: "\(alive) held at \(mebibytes(held)), \(endings.text)"
                )
            }
        }
    }
}
