import RTC
import TestSupport
import Testing

@testable import Peers
@testable import Robots
@testable import SFU

@Suite("A robot's connection") struct RobotConnectionTests {
    @Test("carries audio and video through the router without loss") func carries() throws {
        let world = try RobotWorld(seed: 1)
        let witness = Witness()
        let publisher = try world.publisher(1)
        let subscriber = try world.subscriber(2, of: [1], handler: witness)
        #expect(world.network.run(for: .seconds(10)) { publisher.isConnected && subscriber.isConnected })
        world.network.run(for: .seconds(4))
        #expect(witness.of("a0").count > 190)
        #expect(witness.of("v0").count > 400)
        #expect(witness.missing("a0").isEmpty && witness.missing("v0").isEmpty)
        #expect(witness.arrivals.allSatisfy { $0.sentAt.map { $0 < world.network.now } ?? false })
        for reception in subscriber.receptions { #expect(reception.lost == 0 && reception.packets > 0) }
        #expect(publisher.strayPackets == 0 && subscriber.strayPackets == 0)
        #expect(publisher.malformed == 0 && subscriber.malformed == 0)
        #expect(witness.states.last == .connected)
    }

    @Test("receives audio, video and retransmissions of sixty people") func large() throws {
        let network = SimulatedMediaNetwork(seed: 10, weather: NetworkConditions())
        let witness = Witness()
        let one = try RobotWorld.connection(on: network, at: RobotPair.near(1))
        let other = try RobotWorld.connection(on: network, at: RobotPair.far(1))
        other.handler = witness
        let sections = (0..<60).flatMap { slot in
            [OfferedMedia.audio(mid: "a\(slot)", .sendonly), .video(mid: "v\(slot)", .sendonly)]
        }
        let candidate = Candidate(foundation: "1", transport: .udp, priority: 100, address: RobotPair.far(1))
        let answer = try other.answer(offer: one.offer(sections), candidates: [candidate], now: network.now)
        try one.accept(answer: answer, now: network.now)
        #expect(network.run(for: .seconds(10)) { one.isConnected && other.isConnected })
        let payload = [UInt8](repeating: 0x90, count: 100)
        for track in one.tracks {
            let isSent = payload.withUnsafeBytes {
                one.send($0, of: track, timestamp: 1, marker: true, now: network.now)
            }
            #expect(isSent)
            if track.repairSSRC != nil { one.retransmit(track.sequence, of: track) }
        }
        network.run(for: .milliseconds(200))
        #expect(other.receptions.count == 120 && other.strayPackets == 0)
        for reception in other.receptions {
            #expect(reception.packets == 1, "\(reception.mid)")
            #expect(reception.retransmissions == (reception.kind == .video ? 1 : 0), "\(reception.mid)")
        }
    }

    @Test("requests lost packets again and receives them", arguments: 1...4 as ClosedRange<UInt64>)
    func mends(seed: UInt64) throws {
        let world = try RobotWorld(seed: seed, weather: NetworkConditions(losses: 30, duplicates: 5, delay: 10...25))
        let witness = Witness()
        let publisher = try world.publisher(1)
        let subscriber = try world.subscriber(2, of: [1], handler: witness)
        #expect(world.network.run(for: .seconds(20)) { witness.of("v0").count > 100 }, "seed \(seed)")
        world.network.run(for: .seconds(5))
        world.network.weather = NetworkConditions()
        world.network.run(for: .seconds(1))
        let video = try #require(subscriber.reception("v0"))
        #expect(video.retransmissions > 0 && video.retransmissionsRequested > 0, "seed \(seed)")
        // Packets that were lost before a new keyframe are not requested, because they are no longer needed.
        let arrivals = witness.of("v0")
        let keyframe = try #require(arrivals.filter(\.startsKeyframe).map(\.number).max(), "seed \(seed)")
        // Neither are packets from before the first that arrived, which the receiver does not know of.
        let known = max(keyframe, arrivals[0].number)
        #expect(witness.missing("v0").allSatisfy { $0 < known }, "seed \(seed)")
        #expect(arrivals.count { $0.isRetransmission && $0.number > keyframe } > 0, "seed \(seed)")
        #expect(arrivals.count { $0.number > keyframe } > 400, "seed \(seed)")
        #expect(publisher.track("v")?.retransmissionsSent ?? 0 > 0, "seed \(seed)")
        // The connection converts retransmissions back, so they have the SSRC and payload type of the original packets.
        let usual = try #require(witness.of("v0").first { !$0.isRetransmission })
        for arrival in witness.of("v0") {
            #expect(arrival.ssrc == usual.ssrc && arrival.payloadType == usual.payloadType, "seed \(seed)")
        }
    }

    @Test("behaves identically with the same seed") func repeatable() throws {
        // Test robots without a router, because a router's peers are in a dictionary, whose order differs between runs.
        func run(_ seed: UInt64) throws -> [Witness.Arrival] {
            let network = SimulatedMediaNetwork(
                seed: seed, weather: NetworkConditions(losses: 20, duplicates: 3, delay: 5...30))
            let witness = Witness()
            let pairs = try (1...3).map { try RobotPair(on: network, $0, witness) }
            network.run(for: .seconds(6))
            #expect(pairs.allSatisfy { $0.one.isConnected && $0.other.isConnected })
            #expect(pairs.contains { $0.one.track("v")?.retransmissionsSent ?? 0 > 0 })
            return witness.arrivals
        }
        let (first, second, another) = (try run(77), try run(77), try run(78))
        #expect(first.count > 1000)
        #expect(first.elementsEqual(second))
        #expect(!first.elementsEqual(another))
    }

    @Test("sends a keyframe for a new subscriber") func keyframes() throws {
        let world = try RobotWorld(seed: 5)
        let (first, second) = (Witness(), Witness())
        let publisher = try world.publisher(1)
        _ = try world.subscriber(2, of: [1], handler: first)
        #expect(world.network.run(for: .seconds(10)) { first.of("v0").count > 50 })
        let track = try #require(publisher.track("v"))
        let asked = track.keyframesRequested
        let late = try world.subscriber(3, of: [1], handler: second)
        #expect(world.network.run(for: .seconds(10)) { second.of("v0").count > 50 })
        #expect(track.keyframesRequested > asked)
        #expect(late.reception("v0")?.lost == 0)
    }

    @Test("continues through an ICE restart") func restarts() throws {
        let world = try RobotWorld(seed: 6)
        let witness = Witness()
        let publisher = try world.publisher(1)
        _ = try world.subscriber(2, of: [1], handler: witness)
        #expect(world.network.run(for: .seconds(10)) { witness.of("v0").count > 50 })
        try world.negotiate(publisher, 1, .send, publisher.restart())
        world.network.run(for: .seconds(3))
        #expect(publisher.isConnected)
        #expect(witness.missing("v0").isEmpty && witness.missing("a0").isEmpty)
        #expect(witness.of("v0").count > 300)
    }

    @Test("sends reports every second") func reports() throws {
        let world = try RobotWorld(seed: 7)
        let witness = Witness()
        let publisher = try world.publisher(1)
        let subscriber = try world.subscriber(2, of: [1], handler: witness)
        world.network.run(for: .seconds(6))
        let report = try #require(publisher.track("v")?.lastReport)
        #expect(report.lost == 0 && report.highestSequenceNumber > 0)
        // The subscriber has received sender reports, because its report blocks refer to them.
        #expect(subscriber.receptions.allSatisfy { $0.reportBlock(at: world.network.now)?.lastSenderReport != 0 })
    }

    @Test("sends each simulcast layer with its RID") func layers() throws {
        let world = try RobotWorld(seed: 8)
        let connection = try world.connection()
        var video = OfferedMedia.video(mid: "v", .sendonly)
        video.rids = ["h", "l"]
        try world.negotiate(connection, 1, .send, connection.offer([video]))
        #expect(connection.tracks.map(\.rid) == ["h", "l"])
        #expect(Set(connection.tracks.map(\.ssrc)).count == 2)
        #expect(world.network.run(for: .seconds(10)) { connection.isConnected })
        let frame = [UInt8](repeating: 0x90, count: 100)
        for track in connection.tracks {
            let isSent = frame.withUnsafeBytes {
                connection.send($0, of: track, timestamp: 1, marker: true, now: world.network.now)
            }
            #expect(isSent)
        }
        world.network.run(for: .milliseconds(100))
        #expect(world.router.counters.packetsIn == 2)
    }

    @Test("ends with BYE and sends nothing afterwards") func ends() throws {
        let world = try RobotWorld(seed: 9)
        let witness = Witness()
        let publisher = try world.publisher(1)
        _ = try world.subscriber(2, of: [1], handler: witness)
        #expect(world.network.run(for: .seconds(10)) { witness.of("v0").count > 50 })
        publisher.close(now: world.network.now)
        #expect(publisher.state == .closed && publisher.nextTimeout == nil)
        world.network.run(for: .milliseconds(100))
        let count = witness.arrivals.count
        world.network.run(for: .seconds(2))
        #expect(witness.arrivals.count == count)
    }
}

@Suite("Two robots, one of which makes the offer") struct RobotPairTests {
    @Test("connect if the answerer is ICE-lite") func pair() throws {
        let network = SimulatedMediaNetwork(seed: 3)
        let witness = Witness()
        let pair = try RobotPair(on: network, 1, witness)
        #expect(pair.answer.contains("a=ice-lite") && pair.answer.contains("a=setup:passive"))
        #expect(network.run(for: .seconds(10)) { witness.of("v").count > 50 })
        #expect(witness.missing("v").isEmpty && witness.missing("a").isEmpty)
        #expect(pair.other.strayPackets == 0)
    }

    @Test("connect if the offerer is ICE-lite and the DTLS server") func lite() throws {
        let network = SimulatedMediaNetwork(seed: 4)
        let witness = Witness()
        let one = try RobotWorld.connection(on: network, at: RobotPair.near(1))
        let other = try RobotWorld.connection(on: network, at: RobotPair.far(1))
        other.handler = witness
        one.liteCandidates = [
            Candidate(foundation: "1", transport: .udp, priority: 100, address: RobotPair.near(1))
        ]
        let offer = one.offer([.audio(mid: "a", .sendonly), .video(mid: "v", .sendonly)])
        #expect(offer.contains("a=ice-lite") && offer.contains("a=setup:actpass"))
        let answer = try other.answer(offer: offer, now: network.now)
        #expect(!answer.contains("a=ice-lite") && answer.contains("a=setup:active"))
        try one.accept(answer: answer, now: network.now)
        one.source = LoadSource(of: one, now: network.now, phase: .zero)
        #expect(network.run(for: .seconds(10)) { witness.of("v").count > 50 })
        #expect(one.isLite && !other.isLite)
        #expect(witness.missing("v").isEmpty && witness.missing("a").isEmpty)
    }
}

@Suite("Invalid input of a robot") struct RobotHostileTests {
    @Test("invalid descriptions are rejected with a message", arguments: ["", "v=0", "hello", "v=0\r\nm=audio"])
    func descriptions(text: String) throws {
        let world = try RobotWorld(seed: 1)
        let connection = try world.connection()
        #expect(throws: SDPError.self) { try connection.accept(answer: text, now: world.network.now) }
        _ = connection.offer([.video(mid: "v", .sendonly)])
        #expect(throws: SDPError.self) { try connection.accept(answer: text, now: world.network.now) }
        #expect(throws: SDPError.self) { try connection.answer(offer: text, now: world.network.now) }
    }

    @Test("random bytes change nothing", arguments: [1, 2, 3] as [UInt64]) func noise(seed: UInt64) throws {
        let world = try RobotWorld(seed: seed)
        let witness = Witness()
        let publisher = try world.publisher(1)
        let subscriber = try world.subscriber(2, of: [1], handler: witness)
        #expect(world.network.run(for: .seconds(10)) { witness.of("v0").count > 50 }, "seed \(seed)")
        var random = SeededGenerator(seed: seed)
        for _ in 0..<20_000 {
            var bytes = (0..<Int.random(in: 0...60, using: &random)).map { _ in
                UInt8.random(in: 0...255, using: &random)
            }
            if !bytes.isEmpty, Bool.random(using: &random) {
                bytes[0] = [0, 1, 0x80, 0x90, 22, 20].randomElement(using: &random) ?? 0
            }
            for connection in [publisher, subscriber] {
                bytes.withUnsafeMutableBytes {
                    connection.receive($0, on: Path(socket: 0, remote: RobotWorld.server), now: world.network.now)
                }
            }
        }
        let count = witness.of("v0").count
        world.network.run(for: .seconds(2))
        #expect(publisher.isConnected && subscriber.isConnected, "seed \(seed)")
        #expect(witness.of("v0").count > count + 150 && witness.missing("v0").isEmpty, "seed \(seed)")
    }

    @Test("valid SRTP with malformed content is harmless", arguments: [1, 2, 3] as [UInt64])
    func control(seed: UInt64) throws {
        let world = try RobotWorld(seed: seed)
        let publisher = try world.publisher(1)
        #expect(world.network.run(for: .seconds(10)) { publisher.track("v")?.packetsSent ?? 0 > 300 })
        let track = try #require(publisher.track("v"))
        var random = SeededGenerator(seed: seed)
        for _ in 0..<20_000 {
            var bytes = (0..<Int.random(in: 4...80, using: &random)).map { _ in
                UInt8.random(in: 0...255, using: &random)
            }
            bytes[0] = 0x80 | bytes[0] & 0x1f
            bytes[1] = UInt8.random(in: 200...206, using: &random)
            bytes[2] = 0
            bytes[3] = UInt8(bytes.count / 4 - 1)
            if bytes.count >= 12, Bool.random(using: &random) {
                for index in 0..<4 {
                    bytes[8 + index] = UInt8(truncatingIfNeeded: track.ssrc >> (24 - 8 * UInt32(index)))
                }
            }
            bytes.withUnsafeBytes { publisher.receiveControl($0, world.network.now) }
        }
        // A NACK requests at most a thousand packets, and each is retransmitted once.
        #expect(publisher.isConnected)
        let sent = track.packetsSent
        world.network.run(for: .seconds(1))
        #expect(track.packetsSent > sent)
    }
}
