import RTC
import TestSupport
import Testing

@testable import SFU

/// Forwarding in several flushes, because there are more packets than one flush may send.
@Suite("Long flushes")
struct FlushTests {
    private func busyRoom(
        seed: UInt64 = 1, watchers: Int = 12
    ) throws -> (SimulatedRoom, SimulatedClient, [SimulatedClient]) {
        let room = try SimulatedRoom(seed: seed, longestFlush: 10)
        let publisher = room.client()
        try publisher.publish()
        let watching = (0..<watchers).map { _ in room.client() }
        for client in watching { try client.watch(slots: 1) }
        try room.connect()
        for client in watching { client.subscribe(to: publisher) }
        return (room, publisher, watching)
    }

    @Test("a flush sends no more video than its limit, and everything arrives in order")
    func limit() throws {
        let (room, _, watching) = try busyRoom()
        var (most, unfinished): (UInt64, Int) = (0, 0)
        room.server.flushed = { [router = room.router] before in
            most = max(most, router.counters.packetsForwarded - before)
            if router.hasMore { unfinished += 1 }
        }
        room.run(4000)
        // One audio packet for each subscriber does not count.
        #expect(most <= 10 + 2 * 12, "\(most)")
        #expect(unfinished > 50, "\(unfinished)")
        for client in watching {
            let slot = try client.video()
            #expect(slot.faults() == [] && slot.frames.count > 100 && slot.frames.dropLast().allSatisfy(\.isComplete))
            #expect(try client.audio().faults() == [])
            #expect(slot.unreadable == 0 && slot.duplicates == 0)
        }
        #expect(room.router.counters.packetsDropped == 0)
    }

    @Test("subscribers that get nothing of an encoding do not use up a flush")
    func others() throws {
        let (room, publisher, watching) = try busyRoom(watchers: 30)
        room.run(2000)
        // All but the last subscriber are paused.
        for client in watching.dropLast() {
            let slot = try #require(room.router.subscriber(client.key)?.track("v0"))
            slot.allow(0, 0)
        }
        room.run(500)
        var unfinished = 0
        room.server.flushed = { [router = room.router] _ in if router.hasMore { unfinished += 1 } }
        room.run(2000)
        #expect(unfinished == 0)
        #expect(try watching[29].video().faults() == [])
        #expect(publisher.camera?.keyframesMade ?? 0 < 10)
    }

    @Test("a stream's wait for the others is measured, from the arrival of its oldest packet")
    func waits() throws {
        let (room, _, _) = try busyRoom(watchers: 30)
        let other = room.client()
        try other.publish()
        let viewer = room.client()
        try viewer.watch(slots: 1)
        room.run(2000)
        viewer.subscribe(to: other)
        _ = room.router.takeOldestArrival()
        var (longest, measured) = (MediaInterval.zero, 0)
        room.server.flushed = { [router = room.router, network = room.network] _ in
            guard let arrivedAt = router.takeOldestArrival() else { return }
            measured += 1
            longest = max(longest, network.now - arrivedAt)
            #expect(router.takeOldestArrival() == nil)
        }
        room.run(4000)
        #expect(measured > 200, "\(measured)")
        // A frame for 30 takes many flushes, 1 ms apart. The other room's frames wait for a few of them, and not for all.
        #expect(longest >= .milliseconds(1) && longest <= .milliseconds(10), "\(longest)")
    }

    @Test("losses are repaired with the right picture ids", arguments: 1...3 as ClosedRange<UInt64>)
    func losses(seed: UInt64) throws {
        let (room, _, watching) = try busyRoom(seed: seed)
        room.run(1000)
        room.network.weather = NetworkConditions(losses: 30, delay: 5...20)
        room.run(5000)
        room.network.weather = NetworkConditions()
        room.run(1000)
        #expect(room.router.counters.packetsRetransmitted > 20)
        for client in watching {
            let pictures = try client.video().inOrder.compactMap { arrival in
                arrival.picture.map { (arrival.tag.frame, $0) }
            }
            for ((frame, picture), (next, following)) in zip(pictures, pictures.dropFirst()) where next >= frame {
                let step = UInt32((following &- picture) & 0x7fff)
                #expect(step == next - frame, "seed \(seed): frame \(frame) to \(next)")
            }
        }
    }

    @Test("subscribers come and go between the flushes", arguments: 1...3 as ClosedRange<UInt64>)
    func changes(seed: UInt64) throws {
        let (room, publisher, watching) = try busyRoom(seed: seed)
        var random = SeededGenerator(seed: seed)
        for _ in 0..<300 {
            let client = watching[Int.random(in: 0..<watching.count, using: &random)]
            let leaves = Bool.random(using: &random)
            if leaves { client.unsubscribe(from: publisher) } else { client.subscribe(to: publisher) }
            room.run(Int64.random(in: 1...9, using: &random))
        }
        for client in watching { client.subscribe(to: publisher) }
        room.run(1500)
        for client in watching {
            let slot = try client.video()
            #expect(slot.faults() == [] && slot.duplicates == 0, "seed \(seed)")
            #expect(slot.inOrder.last.map { room.network.now - $0.at < .milliseconds(200) } ?? false, "seed \(seed)")
        }
    }

    @Test("the packets of several publishers to one subscriber leave together, audio last")
    func byDestination() throws {
        let room = try SimulatedRoom()
        let clients = try room.clients(4)
        for one in clients {
            for (slot, other) in clients.filter({ $0 !== one }).prefix(2).enumerated() {
                one.subscribe(to: other, slot: slot)
            }
        }
        room.run(1000)
        var sent: [(remote: TransportAddress, kind: UInt8)] = []
        var shared = 0
        room.server.sink.sending = { bytes, path in sent.append((path.remote, bytes[1] & 0x7f)) }
        room.server.flushed = { _ in
            var runs: [TransportAddress] = []
            for packet in sent where runs.last != packet.remote { runs.append(packet.remote) }
            #expect(Set(runs).count == runs.count, "a subscriber got its packets in two pieces")
            for remote in runs {
                let kinds = sent.filter { $0.remote == remote }.map { $0.kind == 109 }
                if Set(kinds).count == 2 { shared += 1 }
                #expect(kinds == kinds.filter { !$0 } + kinds.filter { $0 }, "audio came before video")
            }
            sent.removeAll()
        }
        // Reports are sent between flushes.
        for _ in 0..<3000 {
            sent.removeAll()
            room.run(1)
        }
        #expect(shared > 20, "\(shared) flushes had audio and video for the same subscriber")
        for client in clients { #expect(try client.video().faults() == [] && client.audio().faults() == []) }
    }

    @Test("packets of a frame that are shorter by a byte get padding, so that one message can carry the frame")
    func equalSizes() throws {
        let room = try SimulatedRoom()
        let clients = try room.clients(2)
        clients[1].subscribe(to: clients[0])
        let camera = try #require(clients[0].camera)
        (camera.videoBytes, camera.packetsInPicture) = (400...401, 4...4)
        room.run(1000)
        var frames: [UInt32: [(length: Int, isPadded: Bool)]] = [:]
        room.server.sink.sending = { bytes, _ in
            guard bytes.count > 300, (128...191).contains(bytes[0]) else { return }
            frames[bytes.bigEndian32(at: 4), default: []].append((bytes.count, bytes[0] & 0x20 != 0))
        }
        var padded = 0
        room.server.flushed = { _ in
            for (timestamp, packets) in frames {
                let lengths = packets.map(\.length)
                #expect(Set(lengths.dropLast()).count <= 1, "\(timestamp): \(lengths)")
                if packets.contains(where: \.isPadded) { padded += 1 }
            }
            frames.removeAll()
        }
        room.run(3000)
        #expect(padded > 20, "\(padded) frames")
        #expect(try clients[1].video().faults() == [])
    }

    @Test("padded packets are repaired when they are lost, also if their flush was interrupted")
    func paddedLosses() throws {
        let (room, publisher, watching) = try busyRoom(watchers: 4)
        let camera = try #require(publisher.camera)
        (camera.videoBytes, camera.packetsInPicture) = (400...401, 3...5)
        room.run(1000)
        room.network.weather = NetworkConditions(losses: 30, delay: 5...20)
        var padded = 0
        room.server.sink.sending = { bytes, _ in
            if bytes.count > 300, (128...191).contains(bytes[0]), bytes[0] & 0x20 != 0 { padded += 1 }
        }
        room.run(5000)
        room.network.weather = NetworkConditions()
        room.run(1000)
        #expect(padded > 100 && room.router.counters.packetsRetransmitted > 20)
        for client in watching {
            let slot = try client.video()
            let complete = slot.frames.count(where: \.isComplete)
            #expect(
                slot.unreadable == 0 && complete * 100 > slot.frames.count * 97, "\(complete) of \(slot.frames.count)")
        }
    }

    /// An RTP packet with eight bytes of payload.
    private static let packet: [UInt8] = [0x80, 96, 0, 1, 0, 0, 0, 2, 0, 0, 0, 3, 5, 5, 5, 5, 5, 5, 5, 5]

    @Test("a packet gets padding only where it may be written, and none in the history")
    func padding() throws {
        var memory = Self.packet + [UInt8](repeating: 0xee, count: 20)
        try memory.withUnsafeMutableBytes { bytes in
            let whole = UnsafeRawBufferPointer(rebasing: bytes[..<20])
            let parsed = try #require(RTPPacket(whole))
            var pending = FeedPacket(bytes: whole, packet: parsed, sequence: 1, codec: 0, startsKeyframe: false)
            pending.spare = 10
            pending.pad(to: 19)
            #expect(pending.padding == 0, "there is room for ten bytes and not for eleven")
            pending.pad(to: 8)
            #expect(pending.padding == 0)
            pending.pad(to: 11)
            #expect(pending.padding == 3 && Array(bytes[20..<24]) == [0, 0, 3, 0xee])
            #expect(pending.payload.count == 8)
            pending.move(to: whole)
            #expect(pending.padding == 0 && pending.spare == 0)
            pending.pad(to: 9)
            #expect(pending.padding == 0)
        }
    }

    @Test("padding that a packet arrived with is replaced")
    func arrivedPadding() throws {
        var memory = Self.packet + [0, 2, 0xee, 0xee]
        memory[0] |= 0x20
        try memory.withUnsafeMutableBytes { bytes in
            let whole = UnsafeRawBufferPointer(rebasing: bytes[..<22])
            let parsed = try #require(RTPPacket(whole))
            var pending = FeedPacket(bytes: whole, packet: parsed, sequence: 1, codec: 0, startsKeyframe: false)
            pending.spare = 1
            pending.pad(to: 12)
            #expect(pending.padding == 0, "there is room for three bytes and not for four")
            pending.pad(to: 11)
            #expect(pending.padding == 3 && Array(bytes[20..<24]) == [0, 0, 3, 0xee])
            #expect(pending.payload.count == 8)
        }
    }

    /// Feeds a track without a publisher.
    private final class Source: FeedSource {
        func updateLiveness() {}
        func demandChanged() {}
        func requestKeyframeSoon() {}
    }

    @Test("a feed that restarts within a burst is flushed once")
    func restart() throws {
        let (room, source) = (try SimulatedRoom(), Source())
        let egress = room.router.egress
        let track = FeedTrack(mid: "v", kind: .video)
        track.source = source
        let feed = track.addFeed(rid: nil)
        let fanout = Fanout(track: track, egress: egress)
        track.add(fanout)
        var memory = Self.packet
        try memory.withUnsafeMutableBytes { bytes in
            let whole = UnsafeRawBufferPointer(bytes)
            let packet = FeedPacket(
                bytes: whole, packet: try #require(RTPPacket(whole)), sequence: 1, codec: 0, startsKeyframe: false)
            for _ in 0..<3 {
                feed.restart()
                feed.pass(packet, arrivedAt: room.network.now)
            }
            #expect(egress.unflushed.count == 1 && egress.unflushed.first?.pending.count == 1)
            egress.flush(now: room.network.now)
            #expect(egress.unflushed.isEmpty)
            feed.pass(packet, arrivedAt: room.network.now)
            #expect(egress.unflushed.count == 1)
            egress.flush(now: room.network.now)
        }
        withExtendedLifetime(source) {}
    }
}
