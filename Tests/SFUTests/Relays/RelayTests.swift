import RTC
import TestSupport
import Testing

@testable import SFU

@Suite("Subscribers on other nodes than their publishers")
struct RelayTests {
    /// Lets the relays lose datagrams.
    /// - Parameter isLost: called for each datagram between two nodes.
    private func interfere(with room: SimulatedRoom, _ isLost: @escaping () -> Bool) {
        let nodes = Set(room.servers.map(\.address))
        room.network.filter = { _, from, to in !(nodes.contains(from) && nodes.contains(to) && isLost()) }
    }

    /// Lets the relays lose five percent of all datagrams.
    private func loseDatagrams(of room: SimulatedRoom, seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        interfere(with: room) { Int.random(in: 0..<100, using: &random) < 5 }
    }

    /// Turns the client's sources off, and lets what is under way arrive.
    private func finish(_ client: SimulatedClient, in room: SimulatedRoom) {
        client.camera?.isOn = false
        client.microphone?.isOn = false
        room.run(1000)
    }

    @Test("packets reach them in the order in which those on the publisher's node receive them")
    func order() throws {
        let room = try SimulatedRoom(seed: 5, nodes: 2)
        let clients = try room.clients(3)
        clients[1].subscribe(to: clients[0])
        clients[2].subscribe(to: clients[0])
        room.run(4000)
        finish(clients[0], in: room)
        for (near, far) in [
            (try clients[2].video(), try clients[1].video()), (try clients[2].audio(), try clients[1].audio()),
        ] {
            let (here, there) = (near.arrivals.map(\.tag), far.arrivals.map(\.tag))
            let first = try #require(there.first)
            let start = try #require(here.firstIndex(of: first))
            #expect(there.count > 150 && Array(here[start...]) == there)
            #expect(far.faults() == [] && far.duplicates == 0)
        }
        // They are synchronized by the publisher's reports.
        #expect(try !clients[1].video().reports.isEmpty && !clients[1].audio().reports.isEmpty)
    }

    @Test("the publisher sends the layers that they need, and only these")
    func layers() throws {
        let camera = try SimulatedLayers(watchers: 2, nodes: 3)
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
        // Only the publisher's node sends announcements to the publisher.
        for server in camera.room.servers[1...] { #expect(server.wanted.isEmpty) }
    }

    @Test("a new preference switches the layer at a keyframe, without a gap", arguments: 1...3 as ClosedRange<UInt64>)
    func switching(seed: UInt64) throws {
        let call = try SimulatedLayers(seed: seed, nodes: 2)
        call.prefer(0, 320, 180)
        call.room.run(2000)
        var expected = try call.slot().labels
        #expect(expected.last == 12)
        for (width, label) in [(1280, 10), (640, 11), (320, 12), (641, 10), (1, 12)] as [(Int, UInt32)] {
            call.prefer(0, width)
            call.room.run(700)
            expected.append(label)
        }
        let slot = try call.slot()
        #expect(slot.labels == expected && slot.faults() == [])
        #expect(slot.longestGap < 150, "\(slot.longestGap) ms")
    }

    @Test("a layer that stops is replaced there too")
    func dying() throws {
        let call = try SimulatedLayers(nodes: 2)
        call.prefer(0, 640, 360)
        call.room.run(2000)
        call.layers[1].isOn = false
        call.room.run(2000)
        let slot = try call.slot()
        #expect(slot.labels.last == 10, "\(slot.labels)")
        call.layers[1].isOn = true
        call.room.run(1500)
        #expect(slot.labels.last == 11 && slot.faults() == [])
    }

    @Test("what none of them watches does not cross")
    func unwatched() throws {
        let room = try SimulatedRoom(nodes: 2)
        let clients = try room.clients(3)
        clients[2].subscribe(to: clients[0])
        room.run(2000)
        #expect(room.router.counters.packetsForwarded > 200)
        #expect(room.router.counters.packetsRelayed == 0)
        clients[1].subscribe(to: clients[0], video: false)
        room.run(2000)
        #expect((90...110).contains(room.router.counters.packetsRelayed))
        clients[1].unsubscribe(from: clients[0])
        room.run(1000)
        let relayed = room.router.counters.packetsRelayed
        room.run(1000)
        #expect(room.router.counters.packetsRelayed == relayed)
    }

    @Test("receiver reports cross only for publishers of whom something arrives")
    func reports() throws {
        let room = try SimulatedRoom(nodes: 2)
        let clients = try room.clients(8, slots: 1)
        let (near, far) = (room.server.address, room.servers[1].address)
        var reports = 0
        room.network.filter = { bytes, from, to in
            // SRTCP does not encrypt the type of the first packet.
            if from == far, to == near, bytes.count > 1, bytes[0] >> 6 == 2, bytes[1] == 201 { reports += 1 }
            return true
        }
        room.run(5000)
        #expect(reports == 0)
        clients[1].subscribe(to: clients[0], video: false)
        room.run(5000)
        #expect((4...6).contains(reports))
    }

    @Test("the node that chooses the active speaker hears publishers to whom nobody there subscribes")
    func activeSpeaker() throws {
        let room = try SimulatedRoom(nodes: 3)
        room.home = room.server
        let clients = try room.clients(3)
        for (client, level) in zip(clients, [100, 100, 20]) { client.microphone?.level = UInt8(level) }
        room.run(3000)
        func speaker() -> RouterEvent? { room.server.events.last(where: \.isSpeaking) }
        #expect(speaker() == .speaking(session: "s", stream: clients[2].stream))
        for (client, level) in zip(clients, [100, 15, 100]) { client.microphone?.level = UInt8(level) }
        let far = room.servers[2].router
        var relayed = far.counters.packetsRelayed
        room.run(4000)
        #expect(speaker() == .speaking(session: "s", stream: clients[1].stream))
        #expect((190...210).contains(far.counters.packetsRelayed - relayed), "audio crosses to this node, and no video")
        #expect(room.router.counters.packetsRelayed == 0)
        room.update(clients[2], audio: false, video: true)
        room.run(1000)
        relayed = far.counters.packetsRelayed
        room.run(1000)
        #expect(far.counters.packetsRelayed == relayed)
    }

    @Test("a stream crosses once for all subscribers of a node")
    func copies() throws {
        let room = try SimulatedRoom(nodes: 2)
        let clients = try room.clients(8, slots: 1)
        for index in [1, 3, 5, 7] { clients[index].subscribe(to: clients[0], video: false) }
        room.run(3000)
        #expect((130...150).contains(room.router.counters.packetsRelayed))
        for index in [1, 3, 5, 7] { #expect(try clients[index].audio().arrivals.count > 130) }
    }

    @Test("the keyframe requests of many subscribers on several nodes are combined")
    func keyframes() throws {
        let room = try SimulatedRoom(nodes: 3)
        let clients = try room.clients(10, slots: 1)
        for client in clients[1...] { client.subscribe(to: clients[0]) }
        room.run(1500)
        #expect(room.router.counters.keyframesRequested <= 3)
        for client in clients[1...] { #expect(try client.video().arrivals.count > 50) }
    }

    @Test("a later subscriber starts soon, although its node receives the stream already")
    func laterSubscriber() throws {
        let room = try SimulatedRoom(nodes: 2)
        let clients = try room.clients(4)
        clients[1].subscribe(to: clients[0])
        room.run(3000)
        let subscribed = room.network.now
        clients[3].subscribe(to: clients[0])
        room.run(1000)
        let first = try #require(try clients[3].video().arrivals.first)
        #expect(first.tag.isKeyframe && first.at - subscribed < .milliseconds(300))
    }

    @Test("a flush sends what has changed, in the order in which publishers were demanded, and nothing else")
    func changes() throws {
        let room = try SimulatedRoom(nodes: 2)
        let clients = try room.clients(8)
        room.run(1000)
        let router = room.servers[1].router
        let receiver = try #require(router.relays.all.first?.receiver)
        let tracks = try [0, 2, 4, 6].map { index in
            let track = router.feeds.tracks(of: clients[index].key).first { $0.kind == .audio }
            return try #require(track?.source as? IncomingTrack)
        }
        func sources() throws -> [UInt32] { try tracks.map { try #require($0.encodings.first).ssrc } }
        #expect(try sources() == [0, 0, 0, 0])
        for track in tracks { track.feedTrack.feeds.first?.isWatched = true }
        // The second publisher has not changed, and the last one changes twice.
        for index in [3, 2, 3, 0] { tracks[index].demandChanged() }
        receiver.flush(now: room.network.now)
        let first = try sources()
        #expect(first[0] > 0 && first[0] < first[2] && first[2] < first[3] && first[1] == 0)
        receiver.flush(now: room.network.now)
        #expect(try sources() == first)
        // A client that is no longer demanded has nothing to send.
        tracks[1].demandChanged()
        receiver.stopPulling(clients[2].key, now: room.network.now)
        receiver.flush(now: room.network.now)
        #expect(try tracks[1].encodings.first?.ssrc == 0 && sources() == first)
    }

    @Test("a loss on a relay is repaired by the publisher's node", arguments: 1...3 as ClosedRange<UInt64>)
    func losses(seed: UInt64) throws {
        let room = try SimulatedRoom(seed: seed, nodes: 2)
        loseDatagrams(of: room, seed: seed)
        let clients = try room.clients(2)
        clients[1].subscribe(to: clients[0])
        room.run(12_000)
        room.network.filter = nil
        room.run(300)
        finish(clients[0], in: room)
        let (slot, camera) = (try clients[1].video(), try #require(clients[0].camera))
        // Packets that are repaired arrive later than their timestamps say.
        #expect(slot.faults(clock: .milliseconds(600)) == [], "seed \(seed)")
        #expect(slot.frames.count > 250 && slot.frames.allSatisfy(\.isComplete), "seed \(seed)")
        #expect(room.servers[1].router.counters.nacksSent > 10, "seed \(seed)")
        #expect(room.router.counters.packetsRetransmitted > 10, "seed \(seed)")
        #expect(room.servers[1].router.counters.packetsRecovered > 10, "seed \(seed)")
        #expect(camera.retransmissionsRequested == 0 && camera.keyframesMade < 7, "seed \(seed)")
    }

    @Test("every frame arrives although all links lose five percent each way", arguments: 1...3 as ClosedRange<UInt64>)
    func lossesEverywhere(seed: UInt64) throws {
        let room = try SimulatedRoom(seed: seed, nodes: 2)
        let clients = try room.clients(2)
        room.network.weather = NetworkConditions(losses: 50, duplicates: 10, delay: 5...40)
        for (client, other) in [(clients[0], clients[1]), (clients[1], clients[0])] { client.subscribe(to: other) }
        room.run(8000)
        room.network.weather = NetworkConditions()
        room.run(1000)
        for client in clients {
            let all = try client.video().frames
            let frames = all.drop { !$0.isKeyframe || !$0.isComplete }.dropLast()
            #expect(frames.count > 150, "seed \(seed)")
            // A later keyframe makes a frame obsolete.
            for (index, frame) in zip(frames.indices, frames) where !frame.isComplete {
                let isOvertaken = frames[index...].dropFirst().prefix(15).contains(where: \.isKeyframe)
                #expect(isOvertaken, "seed \(seed): frame \(frame.frame) at \(client.number)")
            }
            #expect(try client.video().unreadable == 0)
        }
    }

    @Test("a loss on the way to a subscriber is repaired from its own node's history")
    func history() throws {
        let room = try SimulatedRoom(nodes: 2)
        let clients = try room.clients(2)
        clients[1].subscribe(to: clients[0])
        room.run(1000)
        var random = SeededGenerator(seed: 7)
        let subscriber = try #require(clients[1].receive).address
        room.network.filter = { _, _, to in to != subscriber || Int.random(in: 0..<100, using: &random) >= 5 }
        room.run(5000)
        room.network.filter = nil
        room.run(300)
        finish(clients[0], in: room)
        #expect(try clients[1].video().frames.allSatisfy(\.isComplete))
        #expect(room.servers[1].router.counters.packetsRetransmitted > 5)
        #expect(room.router.counters.nacksReceived == 0 && room.router.counters.packetsRetransmitted == 0)
    }

    @Test("a stream continues however many packets its publisher has sent without subscribers")
    func longPause() throws {
        let room = try SimulatedRoom(nodes: 2)
        let clients = try room.clients(2)
        let camera = try #require(clients[0].camera)
        for _ in 0..<3 {
            clients[1].subscribe(to: clients[0])
            room.run(1000)
            let count = try clients[1].video().arrivals.count
            #expect(count > 20)
            clients[1].unsubscribe(from: clients[0])
            // Longer than the half of all sequence numbers that SRTP can follow.
            for _ in 0..<3 {
                room.run(700)
                camera.sequence &+= 20_000
            }
            try clients[1].video().forgetArrivals()
        }
    }

    @Test("a relay that is interrupted for some seconds resumes")
    func interruption() throws {
        let room = try SimulatedRoom(nodes: 2)
        let clients = try room.clients(2)
        clients[1].subscribe(to: clients[0])
        room.run(1000)
        let far = room.servers[1]
        #expect(far.relayChanges == [.connected(room.relay(to: 0), true)])
        interfere(with: room) { true }
        room.run(3000)
        #expect(far.relayChanges.last == .connected(room.relay(to: 0), false))
        let relayed = room.router.counters.packetsRelayed
        room.run(1000)
        #expect(room.router.counters.packetsRelayed == relayed)
        room.network.filter = nil
        try clients[1].video().forgetArrivals()
        room.run(1000)
        #expect(far.relayChanges.last == .connected(room.relay(to: 0), true) && far.relayChanges.count == 3)
        let slot = try clients[1].video()
        #expect(slot.arrivals.count > 20 && slot.arrivals.first?.tag.isKeyframe == true && slot.faults() == [])
    }

    @Test("a relay that is interrupted for longer begins again, and streams return")
    func newAttempt() throws {
        let room = try SimulatedRoom(nodes: 2)
        let clients = try room.clients(2)
        clients[1].subscribe(to: clients[0])
        clients[0].subscribe(to: clients[1])
        room.run(1000)
        interfere(with: room) { true }
        room.run(8000)
        for server in room.servers {
            let hasTracks = !server.router.feeds.tracks(of: clients[0].key).isEmpty
            #expect(hasTracks == (server === clients[0].server))
        }
        room.network.filter = nil
        room.run(4000)
        for client in clients {
            try client.video().forgetArrivals()
            try client.audio().forgetArrivals()
        }
        room.run(1000)
        for client in clients {
            #expect(try client.video().arrivals.count > 20 && client.audio().arrivals.count > 40)
        }
    }

    @Test("late credentials of earlier attempts, and late events about a relay to an earlier life, change nothing")
    func lateLetters() throws {
        let room = try SimulatedRoom(nodes: 2)
        var letters: [(to: Int, attempt: UInt32, credentials: ICECredentials)] = []
        for (index, server) in room.servers.enumerated() {
            let pass = server.pass
            server.pass = { id, attempt, credentials in
                letters.append((1 - index, attempt, credentials))
                pass(id, attempt, credentials)
            }
        }
        let clients = try room.clients(2)
        clients[1].subscribe(to: clients[0])
        interfere(with: room) { true }
        room.run(20_000)
        room.network.filter = nil
        room.run(6000)
        let newest = try #require(letters.map(\.attempt).max())
        #expect(newest > 2)
        func state() -> [Int] { room.servers.map(\.relayChanges.count) + [letters.count] }
        let before = state()
        for letter in letters where letter.attempt < newest {
            let relay = room.relay(to: 1 - letter.to)
            room.servers[letter.to].router.receiveRelayCredentials(
                relay, attempt: letter.attempt, letter.credentials, now: room.network.now)
            let earlier = RelayID(node: relay.node, life: relay.life - 1, index: relay.index)
            room.servers[letter.to].router.receiveRelayCredentials(
                earlier, attempt: newest + 1, letter.credentials, now: room.network.now)
            room.servers[letter.to].router.closeRelay(earlier, now: room.network.now)
        }
        try clients[1].video().forgetArrivals()
        room.run(1000)
        #expect(state() == before)
        #expect(try clients[1].video().arrivals.count > 20)
    }

    @Test("a publisher that connects again is received again, and one that leaves is forgotten")
    func reconnection() throws {
        let room = try SimulatedRoom(nodes: 2)
        let clients = try room.clients(2)
        clients[1].subscribe(to: clients[0])
        room.run(1000)
        try clients[0].publish()
        try room.connect()
        room.run(500)
        try clients[1].video().forgetArrivals()
        room.run(1000)
        #expect(try clients[1].video().arrivals.count > 30 && clients[1].video().faults() == [])
        room.leave(clients[0])
        room.run(100)
        let router = room.servers[1].router
        #expect(router.feeds.tracks(of: clients[0].key).isEmpty && router.egress.fanouts.isEmpty)
    }

    @Test("a subscriber that cannot decode the codec gets another one")
    func codecs() throws {
        let room = try SimulatedRoom(nodes: 2)
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

    @Test("what arrived over a relay is not sent over another one")
    func oneHop() throws {
        let room = try SimulatedRoom(nodes: 3)
        let clients = try room.clients(3)
        let key = clients[0].key
        clients[1].subscribe(to: clients[0])
        let third = room.servers[2].router
        third.stopPulling(key, over: room.relay(to: 0), now: room.network.now)
        third.pull(key, over: room.relay(to: 1), now: room.network.now)
        clients[2].subscribe(to: clients[0])
        room.run(2000)
        #expect(try clients[1].video().arrivals.count > 30)
        #expect(try clients[2].video().arrivals.isEmpty && room.servers[1].router.counters.packetsRelayed == 0)
    }

    @Test("a node with another certificate is not accepted")
    func strangers() throws {
        let room = try SimulatedRoom(nodes: 2)
        let now = room.network.now
        let fingerprint = try #require(Fingerprint(.sha256, [UInt8](repeating: 7, count: 32)))
        let path = Path(socket: 0, remote: room.server.address)
        let far = room.servers[1].router
        far.closeRelay(room.relay(to: 0), now: now)
        far.openRelay(
            room.relay(to: 0), to: RelayPeer(fingerprint: fingerprint, paths: [path], isController: false), now: now)
        let clients = try room.clients(2)
        clients[1].subscribe(to: clients[0])
        room.run(12_000)
        #expect(room.servers[1].relayChanges.isEmpty && room.router.counters.packetsRelayed == 0)
    }

    @Test("a client's check with a forged source address does not take over the path of a relay")
    func forgedChecks() throws {
        let room = try SimulatedRoom(nodes: 2)
        let (near, far) = (room.server.address, room.servers[1].address)
        var check: [UInt8]?
        room.network.filter = { bytes, from, to in
            // Binding requests of the client on the first node.
            if to == near, from != far, bytes.starts(with: [0, 1]) { check = bytes }
            return true
        }
        let clients = try room.clients(2)
        clients[1].subscribe(to: clients[0])
        room.run(1000)
        var forged = try #require(check)
        let path = Path(socket: 0, remote: far)
        forged.withUnsafeMutableBytes { room.router.receive($0, on: path, now: room.network.now) }
        #expect(!room.router.knows(path))
        try clients[1].video().forgetArrivals()
        room.run(1000)
        #expect(try clients[1].video().arrivals.count > 20)
    }

    @Test("redundant audio is unwrapped once, where its subscribers are")
    func redundantAudio() throws {
        let room = try SimulatedRoom(nodes: 2)
        let (publisher, watcher) = (room.client(), room.client())
        try publisher.publish(
            audio: Codec(.red, payloadType: 63, fmtp: "111/111"), video: nil,
            others: [.audio: [Codec(.opus, payloadType: 111)]])
        publisher.microphone?.isRedundant = true
        try watcher.watch(slots: 1)
        try room.connect()
        loseDatagrams(of: room, seed: 3)
        watcher.subscribe(to: publisher, video: false)
        room.run(5000)
        finish(publisher, in: room)
        let slot = try watcher.audio()
        // A copy repairs each single loss, and a packet that is copied and received is sent once.
        #expect(slot.arrivals.count > 220 && slot.duplicates == 0 && slot.unreadable == 0)
        #expect(room.servers[1].router.counters.packetsRecovered > 5)
    }
}
