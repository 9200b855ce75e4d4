import Foundation
import RTC
import Testing
import Wire

extension Hostile {
    /// Attacks by a third member of the call's session, which both others watch. It sends packets that no browser
    /// sends, encrypted with its own valid keys.
    @Suite("Cases 13 to 15: media") struct MediaPackets {
        private static func member(_ place: MediaPlace, slots: Int = 1) throws -> MediaRobot {
            let robot = try MediaRobot(place, from: MediaAttack.elsewhere)
            try robot.openBoth(slots: slots)
            try robot.publish()
            // Give both members of the call time to watch the attacker's streams.
            try robot.run(for: .milliseconds(200))
            return robot
        }

        /// Subscribes to the streams of the other two members. The server forwards them with other SSRCs, which the
        /// robot can then use in its packets.
        private static func watchBoth(_ robot: MediaRobot) throws {
            for (slot, stream) in robot.streams.prefix(2).enumerated() { try robot.watch(stream.id, slot: slot) }
            let deadline = ContinuousClock.now + .seconds(30)
            while robot.receptions.values.contains(where: { $0.packets < 10 }) {
                try robot.run(for: .milliseconds(20))
                guard ContinuousClock.now < deadline else { throw TimedOut("nothing to be seen") }
            }
        }

        /// The SSRCs with which the robot receives the other members' streams.
        private static func sources(_ robot: MediaRobot) -> [UInt32] {
            robot.receptions.values.flatMap { reception -> [UInt32] in [reception.ssrc, reception.repairSSRC ?? 0] }
        }

        /// Sends generated packets in batches while the robot runs.
        private static func send(
            _ count: Int, by robot: MediaRobot, pace: Int = 20, _ make: (Int, inout Random) -> MediaForgery
        ) throws -> Int {
            guard let line = robot.lines[.send] else { return 0 }
            let seed = UInt64.random(in: .min ... .max)
            print("seed \(seed)")
            var random = Random(seed: seed)
            var sent = 0
            for index in 0..<count {
                if make(index, &random).send(over: line) { sent += 1 }
                if index % pace == pace - 1 { try robot.run(for: .milliseconds(5)) }
            }
            return sent
        }

        @Test("packets with other members' mids, SSRCs and payload types reach no other stream")
        func spoofing() async throws {
            try await MediaAttack(number: 13, name: "SSRC, MID, RID, PT, seq").run { place, call in
                let robot = try Self.member(place, slots: 2)
                guard let own = robot.source else { throw TimedOut("no source") }
                try Self.watchBoth(robot)
                let theirs = Self.sources(robot)
                let names = ["a", "v", "a0", "v0", "a1", "0", "zz", "", "sixteen-letters!", "\u{7f}", "ä"].map {
                    Array($0.utf8)
                }
                robot.hush()
                var sequences = own.sequences
                let sent = try Self.send(3000, by: robot) { index, random in
                    var packet = MediaForgery(ssrc: [own.videoSSRC, own.audioSSRC][index & 1])
                    packet.payload = [0x90, 0x80, 0x81, 0x01, 0x10] + [UInt8](repeating: 0x42, count: 100)
                    packet.timestamp = random.next()
                    switch index % 8 {
                    case 0: packet.ssrc = theirs.randomElement(using: &random) ?? 1
                    case 1:
                        packet.ssrc = UInt32(index)
                        packet.add(.mid, names[index / 8 % names.count])
                    case 2:
                        packet.ssrc = .random(in: 1...70, using: &random)
                        packet.add(.mid, Array("v".utf8))
                        packet.add(.rtpStreamID, Array("r\(index % 100)".utf8))
                    case 3:
                        packet.ssrc = .random(in: 1...70, using: &random)
                        packet.add(.mid, Array("v".utf8))
                        packet.add(.repairedRtpStreamID, names[index / 8 % names.count])
                    case 4: packet.type = [0, 96, 97, 111, 127, 63, 35, 72].randomElement(using: &random) ?? 0
                    case 5: (packet.ssrc, packet.type) = (own.repairSSRC, 97)
                    case 6: packet.payload = [UInt8](repeating: UInt8(105), count: 105)
                    default: break
                    }
                    packet.padded = index % 8 == 6
                    if index % 8 == 5 {
                        // Retransmissions of retransmissions, retransmissions of packets that were never sent, and
                        // repeated retransmissions.
                        packet.payload = bigEndian(UInt16(truncatingIfNeeded: index / 3)) + packet.payload
                    }
                    // Forward jumps of the sequence number, of all sizes that our own transport accepts.
                    let jump: UInt16 = [1, 1, 1, 2, 100, 1001, 5000, 30_000].randomElement(using: &random) ?? 1
                    sequences[packet.ssrc, default: 0] &+= jump
                    packet.sequence = sequences[packet.ssrc] ?? 0
                    return packet
                }
                #expect(robot.endings.isEmpty && robot.lines.values.allSatisfy(\.isConnected))
                return AttackOutcome(
                    sent: "\(sent) packets of \(sequences.count) sources", cameBack: "the attacker stays connected")
            }
        }

        @Test("packets with malformed content are dropped after decryption")
        func broken() async throws {
            try await MediaAttack(number: 14, name: "broken RTP inside SRTP").run { place, call in
                let robot = try Self.member(place)
                guard let own = robot.source, let line = robot.lines[.send] else { throw TimedOut("no source") }
                let elements: [[UInt8]?] = [
                    nil, [], [0], [0x0f], [0xf0, 1, 2, 3], [0x1f], [0x1f, 1], [0x50], [0x51, 1], [0x60], [0x6f, 1, 2],
                    [0x10, 0xff], [0x1f] + [UInt8](repeating: 0x80, count: 16), [UInt8](repeating: 0x10, count: 252),
                    [1, 0], [1, 255], [1, 1, 0x61, 5, 2, 0, 1], [255, 255] + [UInt8](repeating: 9, count: 255), [5],
                ]
                robot.hush()
                var sequences = own.sequences
                let sent = try Self.send(3000, by: robot) { index, random in
                    var packet = MediaForgery(
                        ssrc: [own.videoSSRC, own.audioSSRC, own.repairSSRC, 99][index % 4],
                        type: [96, 111, 97, 96][index % 4])
                    sequences[packet.ssrc, default: 0] &+= 1
                    packet.sequence = sequences[packet.ssrc] ?? 0
                    packet.payload = MediaForgery.cutDescriptors[index / 4 % MediaForgery.cutDescriptors.count]
                    packet.elements = elements[index % elements.count]
                    packet.profile = [0xbede, 0x1000, 0x100f, 0x0000, 0xffff][index / 7 % 5]
                    packet.contributors = [UInt32](repeating: 7, count: index / 11 % 16)
                    packet.marker = index % 2 == 0
                    if index % 3 == 0 {
                        packet.padded = true
                        packet.payload.append([0, 1, 2, 255, UInt8(packet.payload.count & 0xff)][index / 3 % 5])
                    }
                    if index % 10 == 9 {
                        packet.payload = (0..<Int.random(in: 0...1200, using: &random)).map { _ in
                            .random(in: .min ... .max, using: &random)
                        }
                    }
                    return packet
                }
                // Packets that the server cannot decrypt, because their headers are malformed.
                let heads: [[UInt8]] = [
                    [0x80], [0x8f, 96], [0x9f, 96, 0, 1], [0x90, 96] + [UInt8](repeating: 0xff, count: 14),
                    [0x8f, 96] + [UInt8](repeating: 0, count: 30),
                    [0xbf, 0xff] + [UInt8](repeating: 0xff, count: 2040),
                    [0x80, 200], [0x80, 201, 0, 0], [0x80, 201] + [UInt8](repeating: 0xff, count: 10),
                    [0xbf, 223] + [UInt8](repeating: 0xff, count: 40),
                    [0x9f, 0x60, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff],
                ]
                for index in 0..<1000 { line.send(raw: heads[index % heads.count]) }
                try robot.run(for: .milliseconds(200))
                #expect(robot.endings.isEmpty && robot.lines.values.allSatisfy(\.isConnected))
                return AttackOutcome(
                    sent: "\(sent) broken packets, 1000 broken headers", cameBack: "the attacker stays connected")
            }
        }

        @Test(
            "feedback is answered within a budget, keyframe requests are limited, and false reports are harmless")
        func complaints() async throws {
            try await MediaAttack(number: 15, name: "NACK, PLI, FIR, REMB, BYE").run { place, call in
                let robot = try Self.member(place, slots: 2)
                guard let line = robot.lines[.receive], let sending = robot.lines[.send] else {
                    throw TimedOut("no line")
                }
                try Self.watchBoth(robot)
                let began = ContinuousClock.now
                let (asked, heard) = (call.keyframesAsked, robot.receptions.values.reduce(0) { $0 + $1.bytes })
                var sent = (bytes: 0, packets: 0)
                func say(_ bytes: [UInt8], over line: MediaLine) {
                    line.send(control: bytes)
                    sent = (sent.bytes + bytes.count, sent.packets + 1)
                }
                let streams = robot.streams
                let videos = robot.receptions.values.filter { $0.kind == .video }
                for round in 0..<400 {
                    for video in videos {
                        // Request all 65,536 sequence numbers with a few datagrams, repeatedly. Each NACK entry
                        // requests 17 numbers.
                        let first = UInt16(truncatingIfNeeded: round * 17 * 250)
                        say(
                            MediaControlForgery.nack(media: video.ssrc, (0..<250).map { first &+ UInt16($0 * 17) }),
                            over: line)
                        let many = (0..<10).flatMap {
                            MediaControlForgery.fir(media: video.ssrc, number: UInt8($0 & 0xff))
                        }
                        say(many + (0..<10).flatMap { _ in MediaControlForgery.pli(media: video.ssrc) }, over: line)
                    }
                    for ssrc in Self.sources(robot) {
                        say(MediaControlForgery.bye([ssrc, 1, 2, 3]), over: round % 2 == 0 ? line : sending)
                    }
                    let nonsense = MediaControlForgery.nonsense(videos.first?.ssrc ?? 1)
                    say(nonsense[round % nonsense.count], over: round / nonsense.count % 2 == 0 ? line : sending)
                    // A fresh subscription requests a keyframe too.
                    if round >= 200, round % 16 == 0 {
                        try robot.watch(streams[round / 16 % 2].id, slot: round / 32 % 2)
                    }
                    try robot.run(for: .milliseconds(5))
                }
                let elapsed = (ContinuousClock.now - began).inSeconds
                let keyframes = call.keyframesAsked - asked
                // The server sends each publisher at most one keyframe request per 300 ms, however many clients request keyframes.
                #expect(Double(keyframes) <= 2 * (elapsed / 0.3 + 2), "\(keyframes) keyframes in \(elapsed) s")
                let repeated = robot.receptions.values.reduce(0) { $0 + $1.repeatBytes }
                let flowed = robot.receptions.values.reduce(0) { $0 + $1.bytes }
                // The server retransmits at most as many bytes as it forwarded, plus a burst per stream and the
                // overhead of headers and encryption.
                #expect(repeated <= (flowed + 2 * 150_000) * 11 / 10, "\(repeated) bytes repeated, \(flowed) sent")
                #expect(robot.endings.isEmpty && robot.lines.values.allSatisfy(\.isConnected))
                return AttackOutcome(
                    sent: "\(sent.packets) compounds, \(sent.bytes) bytes",
                    cameBack:
                        "\(repeated) bytes repeated, \(flowed - heard) new; \(keyframes) keyframes in "
                        + String(format: "%.1f s", elapsed))
            }
        }
    }
}
