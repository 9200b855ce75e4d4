import Foundation
import RTC
import Testing
import Wire

extension Hostile {
    @Suite("Case 16: handshakes and keys") struct MediaHandshakes {
        /// Returns a recorded ClientHello of one of our clients.
        private static func clientHello(_ place: MediaPlace) throws -> (hello: [UInt8], server: TransportAddress) {
            let robot = try MediaRobot(place, from: MediaAttack.elsewhere)
            let line = try robot.open(.receive, MediaOffering.slots(1))
            line.captured = []
            try robot.connect()
            guard let hello = line.captured?.first(where: { $0.first == 22 }) else { throw TimedOut("no ClientHello") }
            return (hello, line.path.remote)
        }

        @Test("handshakes without a prior ICE password are not answered and keep no client out")
        func strangers() async throws {
            try await MediaAttack(number: 16, name: "ClientHello of strangers").run { place, _ in
                let (hello, server) = try Self.clientHello(place)
                let sockets = try (0..<20).map { _ in try MediaDatagrams(from: MediaAttack.elsewhere) }
                let kinds: [[UInt8]] = [
                    hello, Self.record(21, [2, 40]), Self.record(20, [1]), Self.record(23, [0, 0]),
                    [22, 0xfe, 0xfd], [63], [20], [0x80, 111] + [UInt8](repeating: 0, count: 50),
                    [0x80, 200, 0, 1] + [UInt8](repeating: 0, count: 20),
                ]
                let isOver = Flag()
                let flood = Background {
                    var index = 0
                    while !isOver.isSet, index < 10_000 {
                        let socket = sockets[index % sockets.count]
                        socket.send(kinds[index % kinds.count], to: server)
                        index += 1
                        if index % 50 == 0 { _ = socket.receiveAll(within: .milliseconds(5)) }
                    }
                    return index
                }
                // Real clients must be able to connect during the flood.
                for _ in 0..<5 {
                    let robot = try MediaRobot(place, from: MediaAttack.elsewhere)
                    try robot.openBoth()
                }
                isOver.set()
                let sent = try flood.join()
                for socket in sockets { _ = socket.receiveAll(within: .milliseconds(10)) }
                let returned = sockets.reduce(0) { $0 + $1.received.count }
                #expect(returned == 0, "\(returned) answers")
                return AttackOutcome(sent: "\(sent) datagrams beside 10 handshakes", cameBack: "\(returned) answers")
            }
        }

        // MARK: With a password

        /// Encodes a DTLS 1.2 record (RFC 6347 §4.1).
        private static func record(_ type: UInt8, _ body: [UInt8], epoch: UInt16 = 0, number: UInt32 = 1) -> [UInt8] {
            [type, 0xfe, 0xfd] + bigEndian(epoch) + [0, 0] + bigEndian(number) + bigEndian(UInt16(body.count)) + body
        }

        /// Encodes a handshake message fragment (RFC 6347 §4.2.2).
        private static func fragment(
            _ type: UInt8, of length: UInt32, _ message: UInt16, at offset: UInt32, _ body: [UInt8],
            claiming claimed: UInt32? = nil, number: UInt32
        ) -> [UInt8] {
            func three(_ value: UInt32) -> [UInt8] { Array(bigEndian(value).dropFirst()) }
            let head = [type] + three(length) + bigEndian(message) + three(offset)
            return record(22, head + three(claimed ?? UInt32(body.count)) + body, number: number)
        }

        /// Returns incomplete handshakes. `datagram` returns the datagram with a given number.
        private static func dead(_ hello: [UInt8]) -> [(name: String, count: Int, datagram: (Int) -> [UInt8])] {
            let filling = [UInt8](repeating: 0x41, count: 900)
            func number(_ index: Int) -> UInt32 { UInt32(truncatingIfNeeded: index + 1) }
            return [
                ("hello, then nothing", 1, { _ in hello }), ("the same hello", 300, { _ in hello }),
                (
                    "fragments without end", 400,
                    { index in
                        fragment(1, of: 0xff_ffff, 0, at: UInt32(index) * 900, filling, number: number(index))
                    }
                ),
                (
                    "fragments of many messages", 400,
                    { index in
                        fragment(11, of: 8000, UInt16(index), at: 100, filling, number: number(index))
                    }
                ),
                (
                    "fragments of nothing", 400,
                    { index in
                        fragment(1, of: 500, 0, at: UInt32(index), [], number: number(index))
                    }
                ),
                ("messages of nothing", 400, { index in fragment(1, of: 0, 0, at: 0, [], number: number(index)) }),
                (
                    "overlapping fragments", 400,
                    { index in
                        let body = [UInt8](repeating: UInt8(index & 255), count: 200)
                        return fragment(
                            1, of: 300, UInt16(index % 3), at: UInt32(index % 200), body, number: number(index))
                    }
                ),
                (
                    "fragments beyond the end", 400,
                    { index in
                        fragment(1, of: 100, 0, at: 0xff_fff0, filling, claiming: 0xff_ffff, number: number(index))
                    }
                ),
                (
                    "lengths that change", 400,
                    { index in
                        fragment(1, of: UInt32(100 + index), 0, at: 0, [3, 3], number: number(index))
                    }
                ),
                (
                    "records of the next epoch", 400,
                    { index in
                        record(22, filling, epoch: 1, number: number(index))
                    }
                ),
                ("alerts", 50, { index in record(21, [UInt8(1 + index % 2), UInt8(index)], number: number(index)) }),
                ("a thousand records in a datagram", 30, { index in (0..<90).flatMap { _ in record(20, [1]) } }),
                (
                    "media before there are keys", 400,
                    { index in
                        [0x80, 96] + bigEndian(UInt16(index)) + [UInt8](repeating: 0, count: 100)
                    }
                ),
                (
                    "bytes", 400,
                    { index in [20 + UInt8(index % 44)] + [UInt8](repeating: UInt8(index & 255), count: index) }
                ),
            ]
        }

        @Test("unfinished handshakes cost little, time out, and delay no one")
        func deadHandshakes() async throws {
            try await MediaAttack(number: 16, name: "handshakes leading nowhere").run { place, _ in
                let (hello, server) = try Self.clientHello(place)
                var ends = Tally()
                var (sent, returned) = (0, 0)
                var held: [MediaRobot] = []
                for attack in Self.dead(hello) {
                    let robot = try MediaRobot(place, from: MediaAttack.elsewhere)
                    held.append(robot)
                    for side in [MediaSide.send, .receive] {
                        let sections =
                            side == .send ? [OfferedMedia.audio(mid: "a", .sendonly)] : MediaOffering.slots(1)
                        let (offering, answer) = try robot.offer(side, sections)
                        let socket = try MediaDatagrams(from: MediaAttack.elsewhere)
                        let check = MediaCheck(to: answer, from: offering.credentials.ufrag, nominates: true)
                        socket.send(check.bytes, to: server)
                        guard MediaCheck.code(of: socket.next() ?? []) == 0 else {
                            throw TimedOut("\(attack.name): no path")
                        }
                        for index in 0..<attack.count {
                            socket.send(attack.datagram(index), to: server)
                            if index % 100 == 99 { _ = socket.receiveAll(within: .milliseconds(5)) }
                        }
                        _ = socket.receiveAll(within: .milliseconds(20))
                        sent += socket.sent.count
                        returned += socket.received.bytes
                    }
                    try robot.run(for: .milliseconds(30))
                    ends.count(
                        robot.endings.isEmpty ? "silence" : Set(robot.endings).sorted().joined(separator: " and "))
                }
                let known: Set = [
                    "silence", "receive dtls_failed", "receive dtls_failed and send dtls_failed", "send dtls_failed",
                ]
                #expect(ends.total == held.count && known.reduce(0) { $0 + ends[$1] } == ends.total, "\(ends.text)")
                return AttackOutcome(
                    sent: "\(sent) datagrams in \(2 * held.count) handshakes",
                    cameBack: "\(returned) bytes, \(ends.text)")
            }
        }

        @Test("a client with a different certificate than announced is rejected and gets no media")
        func wrongFingerprint() async throws {
            try await MediaAttack(number: 16, name: "another certificate").run { place, _ in
                var random = SystemRandomNumberGenerator()
                let robot = try MediaRobot(place, from: MediaAttack.elsewhere)
                let source = MediaSource(using: &random, now: MediaWaiting.now)
                guard let other = Fingerprint(.sha256, [UInt8](repeating: 0xab, count: 32)) else {
                    return .init(sent: "", cameBack: "")
                }
                let sending = try robot.open(.send, source.sections) { $0.fingerprint = other }
                let receiving = try robot.open(.receive, MediaOffering.slots(1)) { $0.fingerprint = other }
                try robot.publish()
                if let stream = robot.streams.first { try robot.watch(stream.id) }
                let deadline = ContinuousClock.now + .seconds(30)
                while robot.endings.count < 2, ContinuousClock.now < deadline { try robot.run(for: .milliseconds(20)) }
                #expect(
                    robot.endings.sorted() == ["receive fingerprint_mismatch", "send fingerprint_mismatch"],
                    "\(robot.endings)")
                // Neither side has keys, so nothing that the client sends can be received.
                let before = receiving.heard
                for index in 0..<200 {
                    sending.send(raw: [0x80, 96] + bigEndian(UInt16(index)) + [UInt8](repeating: 0, count: 60))
                }
                try robot.run(for: .milliseconds(300))
                #expect(robot.receptions.values.allSatisfy { $0.packets == 0 })
                #expect(receiving.heard - before < 2000, "\(receiving.heard - before) bytes after the end")
                return AttackOutcome(
                    sent: "2 certificates that were not announced", cameBack: robot.endings.joined(separator: ", "))
            }
        }

        @Test("replayed packets are forwarded once")
        func replays() async throws {
            try await MediaAttack(number: 16, name: "SRTP sent again").run { place, _ in
                let robot = try MediaRobot(place, from: MediaAttack.elsewhere)
                try robot.openBoth()
                try robot.publish()
                guard let stream = robot.published, let line = robot.lines[.send] else {
                    throw TimedOut("nothing published")
                }
                try robot.watch(stream, from: robot.source?.mark)
                line.captured = []
                try robot.run(for: .milliseconds(700))
                let captured = (line.captured ?? []).filter { ($0.first ?? 0) >= 128 }
                line.captured = nil
                let other = try MediaDatagrams(from: MediaAttack.elsewhere)
                for _ in 0..<5 {
                    for (index, datagram) in captured.enumerated() {
                        line.send(raw: datagram)
                        other.send(datagram, to: line.path.remote)
                        if index % 50 == 49 { try robot.run(for: .milliseconds(5)) }
                    }
                }
                robot.hush()
                try robot.run(for: .milliseconds(300))
                let duplicates = robot.receptions.values.reduce(0) { $0 + $1.duplicates }
                let counters = robot.lines[.receive]?.transport.counters
                #expect(captured.count > 50 && duplicates == 0, "\(duplicates) of \(captured.count)")
                #expect(counters?.replayed == 0 && counters?.forged == 0, "\(String(describing: counters))")
                return AttackOutcome(
                    sent: "\(captured.count) packets, each 10 times more", cameBack: "\(duplicates) forwarded again")
            }
        }
    }
}
