import RTC
import TestSupport
import Testing

@testable import SFU

@Suite("Flushes with subscribers on other nodes")
struct RelayFlushTests {
    @Test("the packets of several publishers to one node leave together, audio last")
    func byNode() throws {
        let room = try SimulatedRoom(nodes: 3)
        let clients = try room.clients(6)
        let publishers = [clients[0], clients[3]]
        for index in [1, 2, 4, 5] {
            for (slot, publisher) in publishers.enumerated() { clients[index].subscribe(to: publisher, slot: slot) }
        }
        room.run(1000)
        let server = room.servers[0]
        let nodes = Set(room.servers.dropFirst().map(\.address))
        var sent: [(remote: TransportAddress, kind: UInt8)] = []
        var shared = 0
        server.sink.sending = { bytes, path in
            let isMedia = (128...191).contains(bytes[0]) && !(192...223).contains(bytes[1])
            if isMedia, nodes.contains(path.remote) { sent.append((path.remote, bytes[1] & 0x7f)) }
        }
        server.flushed = { _ in
            var runs: [TransportAddress] = []
            for packet in sent where runs.last != packet.remote { runs.append(packet.remote) }
            #expect(Set(runs).count == runs.count, "a node got its packets in two pieces")
            for remote in runs {
                let kinds = sent.filter { $0.remote == remote }.map { $0.kind == 111 }
                if Set(kinds).count == 2 { shared += 1 }
                #expect(kinds == kinds.filter { !$0 } + kinds.filter { $0 }, "audio came before video")
            }
            sent.removeAll()
        }
        room.run(3000)
        #expect(shared > 20, "\(shared) flushes had audio and video for the same node")
        for index in [1, 2, 4, 5] {
            #expect(try clients[index].video().faults() == [] && clients[index].audio().faults() == [])
        }
    }

    @Test("packets of a frame that are a byte shorter are padded for the other node, and again for its subscribers")
    func equalSizes() throws {
        let room = try SimulatedRoom(nodes: 2)
        let clients = try room.clients(2)
        clients[1].subscribe(to: clients[0])
        let camera = try #require(clients[0].camera)
        (camera.videoBytes, camera.packetsInPicture) = (400...401, 4...4)
        room.run(1000)
        for (index, server) in room.servers.enumerated() {
            var frames: [UInt32: [(length: Int, isPadded: Bool)]] = [:]
            server.sink.sending = { bytes, _ in
                guard bytes.count > 300, (128...191).contains(bytes[0]) else { return }
                frames[bytes.bigEndian32(at: 4), default: []].append((bytes.count, bytes[0] & 0x20 != 0))
            }
            var padded = 0
            server.flushed = { _ in
                for (timestamp, packets) in frames {
                    let lengths = packets.map(\.length)
                    #expect(Set(lengths.dropLast()).count <= 1, "node \(index), \(timestamp): \(lengths)")
                    if packets.contains(where: \.isPadded) { padded += 1 }
                }
                frames.removeAll()
            }
            room.run(3000)
            #expect(padded > 20, "node \(index): \(padded) frames")
        }
        #expect(try clients[1].video().faults() == [])
    }

    @Test(
        "packets that the publisher retransmits reach the other node, together with those that follow",
        arguments: 1...3 as ClosedRange<UInt64>)
    func recovered(seed: UInt64) throws {
        let room = try SimulatedRoom(seed: seed, nodes: 2)
        let clients = try room.clients(2)
        clients[1].subscribe(to: clients[0])
        room.run(1000)
        var random = SeededGenerator(seed: seed)
        let nodes = room.servers.map(\.address)
        // Only packets from the publisher are lost.
        room.network.filter = { _, from, to in
            to != nodes[0] || nodes.contains(from) || Int.random(in: 0..<100, using: &random) >= 5
        }
        room.run(5000)
        room.network.filter = nil
        room.run(1000)
        #expect(room.servers[0].router.counters.packetsRecovered > 5, "seed \(seed)")
        #expect(room.servers[1].router.counters.packetsRecovered > 5, "seed \(seed)")
        let slot = try clients[1].video()
        #expect(slot.unreadable == 0 && slot.frames.count > 100 && slot.frames.allSatisfy(\.isComplete), "seed \(seed)")
    }
}
