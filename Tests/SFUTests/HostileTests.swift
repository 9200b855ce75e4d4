import RTC
import TestSupport
import Testing

@testable import SFU

/// Attacks with packets that are correctly encrypted but otherwise invalid.
enum Attack: String, CaseIterable, CustomTestStringConvertible {
    case otherSectionsSSRC, endlessSSRCs, othersSSRC, wrongNames, nestedRetransmissions, unmatchedRetransmissions
    case payloadTypes
    case sequenceJumps, timestampJumps, padding, contributors, extensions, descriptors, reports

    var testDescription: String { rawValue }

    func send(_ connection: SimulatedConnection, beside other: SimulatedConnection, _ random: inout SeededGenerator) {
        guard let sound = connection.sources.first, let camera = connection.sources.last else { return }
        let source = Bool.random(using: &random) ? sound : camera
        guard var packet = camera.again(camera.sequence) else { return }
        func word() -> UInt32 { random.next(upperBound: UInt32.max) }
        let isRetransmission = [.nestedRetransmissions, .unmatchedRetransmissions].contains(self)
        if !isRetransmission {
            packet.payload.removeFirst(2)
            camera.sequence &+= 1
            (packet.sequence, packet.ssrc, packet.payloadType) = (
                camera.sequence, camera.ssrc, camera.codec.payloadType
            )
        }
        switch self {
        case .otherSectionsSSRC:
            (packet.ssrc, packet.payloadType) = (source.ssrc, UInt8.random(in: 90...112, using: &random))
        case .endlessSSRCs: packet.ssrc = word()
        case .othersSSRC: packet.ssrc = other.sources.randomElement(using: &random)?.ssrc ?? 0
        case .nestedRetransmissions:
            // Make the packet a retransmission of itself, which contains another retransmission.
            packet.payload[0] = UInt8(packet.sequence >> 8)
            packet.payload[1] = UInt8(truncatingIfNeeded: packet.sequence)
            packet.payload[2] = 0x80 | 97
        case .unmatchedRetransmissions:
            packet.payload[0] = UInt8.random(in: 0...255, using: &random)
            packet.payload = Array(packet.payload.prefix(Int.random(in: 0...40, using: &random)))
        case .payloadTypes: packet.payloadType = UInt8.random(in: 0...127, using: &random)
        case .sequenceJumps:
            camera.sequence &+= 30_000
            packet.sequence = camera.sequence
        case .timestampJumps: packet.timestamp = word()
        case .descriptors:
            packet.payload = (0..<Int.random(in: 0...8, using: &random)).map { _ in .random(in: 0...255, using: &random)
            }
        case .reports: return sendReports(connection, beside: other, &random)
        case .wrongNames, .padding, .contributors, .extensions: break
        }
        sendHeader(packet, connection, source, &random)
    }

    private func sendHeader(
        _ packet: OutgoingPacket, _ connection: SimulatedConnection, _ source: SimulatedSource,
        _ random: inout SeededGenerator
    ) {
        var payload = packet.payload
        if self == .padding { payload = [UInt8](repeating: 255, count: 255) }
        let names = ["a", "v", "x", "", "\u{0}", "vvvvvvvvvvvvvvvv"]
        let extra = (0..<80).map { _ in UInt8.random(in: 0...255, using: &random) }
        let (name, words) = (names.randomElement(using: &random) ?? "", UInt8.random(in: 0...15, using: &random))
        connection.sendRaw(payload: payload) { memory in
            var header = RTPHeaderWriter(
                into: memory, payloadType: packet.payloadType, marker: packet.marker, sequenceNumber: packet.sequence,
                timestamp: packet.timestamp, ssrc: packet.ssrc
            )
            switch self {
            case .wrongNames, .endlessSSRCs:
                for id in [connection.extensionID(.mid), connection.extensionID(.rtpStreamID)] {
                    Array(name.utf8).withUnsafeBytes { _ = header.addExtension(id: id, bytes: $0) }
                }
                return header.finish()
            case .padding:
                memory[0] |= 0x20
                return header.finish()
            case .contributors:
                memory[0] |= words
                for index in 0..<Int(words) * 4 { memory[12 + index] = extra[index] }
                return 12 + Int(words) * 4
            case .extensions:
                // Add random extension elements, in the one-byte or the two-byte form.
                memory[0] |= 0x10
                let profile: [UInt8] = words & 1 == 0 ? [0xbe, 0xde] : [0x10, words]
                memory.baseAddress.map { _ in
                    memory[12...].copyBytes(from: profile + [0, words] + extra.prefix(Int(words) * 4))
                }
                return 16 + Int(words) * 4
            default: return header.finish()
            }
        }
    }

    private func sendReports(
        _ connection: SimulatedConnection, beside other: SimulatedConnection, _ random: inout SeededGenerator
    ) {
        let ssrcs = (connection.sources + other.sources).map(\.ssrc)
        let garbage = (0..<64).map { _ in UInt32.random(in: 0...UInt32.max, using: &random) }
        connection.sendControl { writer in
            for ssrc in ssrcs {
                let info = RTCP.SenderInfo(
                    ssrc: ssrc, ntp: NTPTime(UInt64(garbage[0]) << 32 | UInt64(garbage[1])), rtpTimestamp: garbage[2],
                    packetCount: garbage[3], octetCount: garbage[4]
                )
                RTCP.writeSenderReport(info, to: &writer)
                RTCP.writePLI(sender: ssrc, media: ssrc, to: &writer)
                RTCP.writeNACK(sender: ssrc, media: ssrc, lost: garbage.prefix(9).map { UInt16($0 >> 16) }, to: &writer)
            }
            RTCP.writeBye(sources: ssrcs, to: &writer)
            RTCP.writeREMB(sender: 1, bitrate: UInt64(garbage[5]) << 32, sources: garbage, to: &writer)
        }
        // Send an RTCP packet of a known type with a random length and body.
        connection.sendControl { writer in
            writer.u8(0x80 | UInt8(garbage[6] & 0x3f))
            writer.u8(UInt8(200 + garbage[7] % 8))
            writer.u16(UInt16(garbage[8] % 20))
            for word in garbage.prefix(Int(garbage[9] % 30)) { writer.u32(word) }
        }
    }
}

@Suite struct HostileTests {
    @Test(arguments: Attack.allCases) func anAttackDoesNotAffectOtherClients(_ attack: Attack) throws {
        let room = try SimulatedRoom(seed: 5)
        let clients = try room.clients(5)
        let (attacker, victim, honest) = (clients[0], clients[1], clients[2])
        victim.subscribe(to: attacker, slot: 0)
        victim.subscribe(to: honest, slot: 1)
        clients[3].subscribe(to: clients[4])
        clients[4].subscribe(to: clients[3])
        room.run(1000)
        let beside =
            try [victim.audio(1), victim.video(1)] + clients[3...].flatMap { [try $0.audio(), try $0.video()] }
        let connection = try #require(attacker.send)
        for _ in 0..<300 {
            for _ in 0..<3 { attack.send(connection, beside: try #require(honest.send), &room.random) }
            // Lost packets must not permanently desynchronize the receiver's rollover counter.
            room.network.filter = { bytes, _, to in
                to != victim.receive?.address || bytes.first.map { $0 < 128 } == true
                    || Int.random(in: 0..<10, using: &room.random) > 0
            }
            room.run(4)
            room.network.filter = nil
            room.run(4)
        }
        for slot in beside where slot !== beside[0] && slot !== beside[1] {
            #expect(slot.faults() == [] && slot.arrivals.count > 60)
        }
        // The next stream in the victim's transceiver plays without problems.
        victim.unsubscribe(from: honest)
        victim.subscribe(to: honest, slot: 0)
        room.run(50)
        let slots = [try victim.audio(), try victim.video()]
        for slot in slots { slot.forgetArrivals() }
        room.run(2000)
        for slot in slots {
            #expect(slot.labels == [honest.number] && slot.arrivals.count > 60 && slot.unreadable == 0)
        }
        let peer = try #require(room.router.publisher(attacker.key))
        #expect(peer.sources.count <= Publisher.maxSources && peer.encodingCount <= Publisher.maxEncodings)
        #expect(room.server.events.filter { !$0.isSpeaking }.count <= 6)
    }

    @Test func jumpsOfAPublishersSequenceNumbersAreNotForwarded() throws {
        let room = try SimulatedRoom()
        let clients = try room.clients(2)
        clients[1].subscribe(to: clients[0])
        for _ in 0..<8 {
            room.run(1000)
            for source in clients[0].send?.sources ?? [] {
                // SRTP would take a larger step for a backward one and reject the packet.
                source.sequence &+= UInt16.random(in: 1100..<0x8000, using: &room.random)
            }
        }
        room.run(1000)
        for slot in [try clients[1].audio(), try clients[1].video()] {
            #expect(slot.faults() == [] && slot.arrivals.count > 400)
        }
    }

    @Test func randomDecryptedPacketsNeverTrap() throws {
        let seed = UInt64.random(in: .min ... .max)
        print("seed \(seed)")
        let room = try SimulatedRoom(seed: seed)
        let clients = try room.clients(4)
        clients[1].subscribe(to: clients[0])
        clients[2].subscribe(to: clients[0])
        clients[3].subscribe(to: clients[2])
        room.run(500)
        let sender = try #require(clients[0].send)
        let samples = try self.samples(sender, slots: #require(clients[1].receive).slots, &room.random)
        let table = room.router.peers
        let peers = [
            try #require(table.peer(clients[0].key, .send)), try #require(table.peer(clients[1].key, .receive)),
        ]
        let buffers = (0..<8).map { _ in UnsafeMutableRawBufferPointer.allocate(byteCount: 2048, alignment: 16) }
        defer { for buffer in buffers { buffer.deallocate() } }
        for round in 0..<100_000 {
            let bytes = Self.mutated(samples[round % samples.count], &room.random)
            let memory = UnsafeMutableRawBufferPointer(rebasing: buffers[round % 8][..<bytes.count])
            memory.copyBytes(from: bytes)
            let view = UnsafeRawBufferPointer(memory)
            if round % 3 == 0 {
                room.router.receiveControl(view, from: peers[round % 2], now: room.network.now)
            } else {
                let now = room.network.now
                peers[round % 50 == 0 ? 1 : 0].half.receiveMedia(view, spare: 0, now: now, arrivedAt: now)
            }
            if round % 8 == 7 { room.router.flush(now: room.network.now) }
            if round % 400 == 399 { room.run(5) }
        }
        #expect(room.router.counters.malformed > 1000)
        #expect(try clients[3].audio().faults() == [] && clients[3].video().faults() == [])
        #expect(try clients[3].audio().arrivals.count > 50)
        let publisher = try #require(room.router.publisher(clients[0].key))
        #expect(publisher.sources.count <= Publisher.maxSources && publisher.encodingCount <= Publisher.maxEncodings)
    }

    /// Returns valid packets of all kinds.
    private func samples(
        _ connection: SimulatedConnection, slots: [SimulatedSlot], _ random: inout SeededGenerator
    ) -> [[UInt8]] {
        var samples: [[UInt8]] = []
        var now = connection.now
        for _ in 0..<100 {
            now = now + .milliseconds(10)
            for source in connection.sources {
                for packet in source.produce(now: now) {
                    samples.append(connection.plain(packet, of: source))
                    if let again = source.again(packet.sequence) { samples.append(connection.plain(again, of: source)) }
                }
            }
        }
        for ssrc in connection.sources.map(\.ssrc) + slots.map(\.ssrc) {
            var memory = [UInt8](repeating: 0, count: 600)
            let length = memory.withUnsafeMutableBytes { bytes in
                var writer = ByteWriter(bytes)
                let info = RTCP.SenderInfo(ssrc: ssrc, ntp: NTPTime(5), rtpTimestamp: 7, packetCount: 1, octetCount: 2)
                RTCP.writeSenderReport(info, to: &writer)
                RTCP.writeSourceDescription(ssrc: ssrc, cname: "c", to: &writer)
                RTCP.writeNACK(sender: 1, media: ssrc, lost: (0..<40).map { $0 * 3 }, to: &writer)
                RTCP.writePLI(sender: 1, media: ssrc, to: &writer)
                RTCP.writeFIR(sender: 1, entries: [.init(ssrc: ssrc, sequenceNumber: 1)], to: &writer)
                RTCP.writeREMB(sender: 1, bitrate: 1_000_000, sources: [ssrc], to: &writer)
                RTCP.writeBye(sources: [ssrc], to: &writer)
                return writer.count
            }
            for _ in 0..<10 { samples.append(Array(memory[..<length])) }
        }
        return samples.shuffled(using: &random)
    }

    private static func mutated(_ sample: [UInt8], _ random: inout SeededGenerator) -> [UInt8] {
        var bytes = sample
        switch Int.random(in: 0..<10, using: &random) {
        case 0: return (0..<Int.random(in: 0...80, using: &random)).map { _ in .random(in: 0...255, using: &random) }
        case 1: bytes = Array(bytes.prefix(Int.random(in: 0...bytes.count, using: &random)))
        case 2: bytes += (0..<Int.random(in: 1...400, using: &random)).map { _ in .random(in: 0...255, using: &random) }
        default: break
        }
        guard !bytes.isEmpty else { return bytes }
        // Mutate mostly the headers, because only headers are parsed.
        for _ in 0..<Int.random(in: 0...4, using: &random) {
            bytes[Int.random(in: 0..<min(bytes.count, 48), using: &random)] = .random(in: 0...255, using: &random)
        }
        return bytes
    }
}
