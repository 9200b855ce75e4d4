import CAllocations
import RTC
import TestSupport
import Testing

@testable import SFU

@Suite("Subscribers on other event loops than their publishers")
struct PipeTests {
    @Test("packets reach them in the order in which those on the publisher's loop receive them")
    func order() throws {
        let room = try SimulatedRoom(seed: 5, loops: 2)
        let clients = try room.clients(3)
        clients[1].subscribe(to: clients[0])
        clients[2].subscribe(to: clients[0])
        room.run(1000)
        for client in clients[1...] { for slot in client.receive?.slots ?? [] { slot.forgetArrivals() } }
        room.run(3000)
        let (near, far) = (try clients[2].video().arrivals.map(\.tag), try clients[1].video().arrivals.map(\.tag))
        #expect(near.count > 150 && near == far)
    }

    @Test("the publisher sends the layers that they need, and only these")
    func layers() throws {
        let camera = try SimulatedLayers(watchers: 2, loops: 3)
        for watcher in camera.watchers { watcher.subscribe(to: camera.publisher) }
        camera.prefer(0, 320, 180)
        camera.prefer(1, 640, 360)
        camera.room.run(6000)
        #expect(camera.wanted.last == ["h", "q"])
        for watcher in camera.watchers { for slot in watcher.receive?.slots ?? [] { slot.forgetArrivals() } }
        camera.room.run(1000)
        #expect(Set(try camera.slot(0).arrivals.map(\.tag.label)) == [12])
        #expect(Set(try camera.slot(1).arrivals.map(\.tag.label)) == [11])
        camera.prefer(1, 1280, 720)
        camera.room.run(3000)
        #expect(camera.wanted.last == ["f", "q"])
        #expect(try camera.slot(1).arrivals.last?.tag.label == 10)
        #expect(try camera.slot(1).faults() == [])
    }

    @Test("a feed that none of them watches costs the ring nothing")
    func unwatched() throws {
        let room = try SimulatedRoom(loops: 2)
        let clients = try room.clients(3)
        clients[2].subscribe(to: clients[0])
        room.run(2000)
        #expect(room.router.counters.packetsForwarded > 200)
        #expect(room.router.counters.packetsPiped == 0)
        clients[1].subscribe(to: clients[0], video: false)
        room.run(2000)
        #expect((90...110).contains(room.router.counters.packetsPiped))
    }

    @Test("the keyframe requests of many subscribers on several loops are combined")
    func keyframes() throws {
        let room = try SimulatedRoom(loops: 3)
        let clients = try room.clients(10, slots: 1)
        for client in clients[1...] { client.subscribe(to: clients[0]) }
        room.run(1000)
        #expect(room.router.counters.keyframesRequested <= 3)
        for client in clients[1...] { #expect(try client.video().arrivals.count > 50) }
    }

    @Test("a later subscriber starts although the publisher's loop has none")
    func laterSubscriber() throws {
        let room = try SimulatedRoom(loops: 2)
        let clients = try room.clients(4)
        clients[1].subscribe(to: clients[0])
        room.run(3000)
        clients[3].subscribe(to: clients[0])
        room.run(500)
        #expect(try clients[3].video().arrivals.count > 20)
    }

    @Test("a subscriber that cannot decode the codec gets another one")
    func codecs() throws {
        let room = try SimulatedRoom(loops: 2)
        let (publisher, watcher) = (room.client(), room.client())
        let (vp8, vp9) = (Codec(.vp8, payloadType: 96, rtxPayloadType: 97), Codec(.vp9(profile: 0), payloadType: 98))
        try publisher.publish(video: vp8, others: [.video: [vp9]])
        try watcher.watch(video: Codec(.vp9(profile: 0), payloadType: 100))
        try room.connect()
        watcher.subscribe(to: publisher)
        room.run(3000)
        #expect(room.server.wanted.last?.payloadType == 98)
        #expect(try watcher.video().arrivals.isEmpty)
    }

    @Test("the active speaker of all loops is reported once")
    func speakers() throws {
        let room = try SimulatedRoom(loops: 3)
        let clients = try room.clients(3)
        for (client, level) in zip(clients, [100, 20, 100]) { client.microphone?.level = UInt8(level) }
        room.run(3000)
        for (client, level) in zip(clients, [100, 100, 15]) { client.microphone?.level = UInt8(level) }
        room.run(4000)
        let events = room.servers.map { $0.events.filter(\.isSpeaking) }
        #expect(events[1].isEmpty && events[2].isEmpty)
        #expect(
            events[0] == [
                .speaking(session: "s", stream: clients[1].stream), .speaking(session: "s", stream: clients[2].stream),
            ])
        for server in room.servers {
            #expect(server.router.streams.publication(clients[2].stream)?.isSpeaking == true)
        }
        // The next loop reports when the publishers of the first have left.
        room.leave(clients[0])
        room.unpublish(clients[2])
        room.run(1000)
        #expect(room.servers[1].events.last == .speaking(session: "s", stream: nil))
    }

    @Test("two who begin to speak at once are the same active speaker on all loops")
    func simultaneousSpeakers() throws {
        let room = try SimulatedRoom(loops: 2)
        let clients = try room.clients(2)
        for client in clients { client.microphone?.level = 110 }
        room.run(3000)
        for client in clients { client.microphone?.level = 20 }
        room.run(4000)
        let speaking = room.servers.map { server in
            clients.map { server.router.streams.publication($0.stream)?.isSpeaking }
        }
        #expect(speaking[0] == speaking[1] && speaking[0].contains(true))
        #expect(room.servers[1].router.speakers.current("s") == room.router.speakers.current("s"))
    }

    @Test("only the loudest of all loops are forwarded")
    func loudest() throws {
        let room = try SimulatedRoom(loops: 2) { $0.loudestStreams = 2 }
        let publishers = (0..<4).map { _ in room.client() }
        for (index, client) in publishers.enumerated() {
            try client.publish(video: nil)
            client.microphone?.level = [30, 40, 100, 110][index]
        }
        let watchers = (0..<2).map { _ in room.client() }
        for watcher in watchers { try watcher.watch(slots: 4) }
        try room.connect()
        for watcher in watchers {
            for (slot, client) in publishers.enumerated() { watcher.subscribe(to: client, slot: slot) }
        }
        func heard(_ milliseconds: Int64) throws -> [[Bool]] {
            let before = try watchers.map { watcher in try (0..<4).map { try watcher.audio($0).arrivals.count } }
            room.run(milliseconds)
            return try watchers.indices.map { index in
                try (0..<4).map { try watchers[index].audio($0).arrivals.count > before[index][$0] }
            }
        }
        room.run(1000)
        #expect(try heard(500) == [[true, true, false, false], [true, true, false, false]])
        publishers[3].microphone?.level = 20
        room.run(500)
        #expect(try heard(1000) == [[true, false, false, true], [true, false, false, true]])
    }

    @Test("the bandwidth limits hold for all loops together")
    func capacity() throws {
        let room = try SimulatedRoom(loops: 2) { $0.sessionBitrate = 900_000 }
        let clients = try room.clients(5, slots: 1)
        for client in clients[1...2] { client.subscribe(to: clients[0]) }
        room.run(4000)
        func full(_ server: SimulatedServer) -> [RouterEvent] {
            server.events.filter { if case .full = $0 { true } else { false } }
        }
        let notFull = RouterEvent.full(session: "s", false)
        func isFull(_ server: SimulatedServer) -> Bool { full(server).contains { $0 != notFull } }
        #expect(!isFull(room.servers[0]) && !isFull(room.servers[1]))
        for client in clients[3...4] { client.subscribe(to: clients[0]) }
        room.run(4000)
        #expect(full(room.servers[0]).last != notFull && isFull(room.servers[0]) && !isFull(room.servers[1]))
        room.leave(clients[4])
        room.leave(clients[3])
        room.run(4000)
        #expect(full(room.servers[0]).last == notFull && !isFull(room.servers[1]))
    }

    @Test("the first client on an idle loop is refused if the server is full")
    func fullElsewhere() throws {
        let room = try SimulatedRoom(loops: 2) { $0.totalBitrate = 300_000 }
        let clients = try room.clients(3, slots: 1)
        room.leave(clients[1])
        room.run(1000)
        #expect(room.servers[1].router.isIdle && !room.servers[1].router.isFull)
        clients[2].subscribe(to: clients[0])
        room.run(3000)
        #expect(room.router.isFull && room.servers[1].router.isFull)
        room.leave(clients[2])
        room.run(5000)
        #expect(!room.router.isFull && !room.servers[1].router.isFull && room.servers[1].router.isIdle)
    }

    @Test("an idle loop gets no packets")
    func idleSubscriber() throws {
        let room = try SimulatedRoom(loops: 2)
        let clients = try room.clients(3)
        for client in clients[1...] { client.subscribe(to: clients[0]) }
        room.run(1000)
        #expect(room.router.counters.packetsPiped > 50)
        room.leave(clients[1])
        room.run(100)
        let piped = room.router.counters.packetsPiped
        room.run(1000)
        #expect(room.router.counters.packetsPiped == piped && room.servers[1].router.isIdle)
    }

    @Test("a session does not stay full when the loop that reported it becomes idle")
    func idleReporter() throws {
        let room = try SimulatedRoom(loops: 2) { $0.sessionBitrate = 900_000 }
        let clients = try room.clients(6, slots: 1)
        // The publisher is on the second loop, and only the first subscriber is on the first.
        for index in [0, 3, 5] { clients[index].subscribe(to: clients[1]) }
        for index in [2, 4] { room.leave(clients[index]) }
        func full() -> [[RouterEvent]] {
            room.servers.map { $0.events.filter { if case .full = $0 { true } else { false } } }
        }
        room.run(5000)
        #expect(full()[0].last == .full(session: "s", true))
        #expect(full()[1].allSatisfy { $0 == .full(session: "s", false) })
        room.leave(clients[0])
        room.run(6000)
        #expect(room.router.isIdle)
        #expect((full()[1].last ?? full()[0].last) == .full(session: "s", false))
    }

    @Test("the end of the active speaker is reported although its loop becomes idle")
    func idleSpeaker() throws {
        let room = try SimulatedRoom(loops: 2)
        let clients = try room.clients(2)
        room.unpublish(clients[1])
        clients[0].microphone?.level = 20
        clients[1].subscribe(to: clients[0])
        room.run(2000)
        #expect(room.server.events.last == .speaking(session: "s", stream: clients[0].stream))
        room.leave(clients[0])
        room.run(2000)
        #expect(room.servers.flatMap(\.events).last == .speaking(session: "s", stream: nil))
        #expect(room.router.isIdle)
    }

    @Test("a track that has ended is not attached, even if its publisher still lists it")
    func endedTrack() throws {
        let room = try SimulatedRoom(loops: 2)
        let clients = try room.clients(2)
        room.run(500)
        let router = clients[1].router
        router.feeds.track("v", of: clients[0].key)?.end()
        clients[1].subscribe(to: clients[0])
        #expect(router.subscriber(clients[1].key)?.track("v0")?.source == nil)
        #expect(router.egress.fanouts.values.allSatisfy { $0.track.kind == .audio })
    }

    @Test("a publisher that connects again is received again, and one that leaves is forgotten everywhere")
    func reconnection() throws {
        let room = try SimulatedRoom(loops: 2)
        let clients = try room.clients(2)
        clients[1].subscribe(to: clients[0])
        room.run(1000)
        try clients[0].publish()
        try room.connect()
        try clients[1].video().forgetArrivals()
        room.run(1000)
        #expect(try clients[1].video().arrivals.count > 50 && clients[1].video().faults() == [])
        room.leave(clients[0])
        room.run(100)
        let router = room.servers[1].router
        #expect(router.feeds.tracks(of: clients[0].key).isEmpty && router.egress.fanouts.isEmpty)
    }

    @Test(
        "packets of a running call allocate nothing",
        .enabled(if: confab_counts_allocations() != 0, "a sanitizer or another C library uses its own allocator"))
    func allocations() throws {
        let room = try SimulatedRoom(seed: 4, loops: 2)
        let publisher = room.client()
        try publisher.publish()
        let watching = (0..<6).map { _ in room.client() }
        for client in watching { try client.watch(slots: 1) }
        try room.connect()
        for client in watching { client.subscribe(to: publisher) }
        room.run(3000)
        for server in room.servers { server.onPackets.isOn = true }
        let before = room.servers.map(\.router.counters.packetsForwarded)
        room.run(30_000)
        for (server, before) in zip(room.servers, before) {
            #expect(server.router.counters.packetsForwarded - before > 9000)
            // Once a second, messages with the bitrates of layers and the sender reports are allocated.
            #expect(server.onPackets.total < 30 * 100)
        }
    }
}
