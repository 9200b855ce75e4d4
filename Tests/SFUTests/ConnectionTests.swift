import RTC
import TestSupport
import Testing

@testable import SFU

@Suite struct ConnectionTests {
    @Test func aReconnectingPublisherContinuesInTheSameTransceiver() throws {
        let room = try SimulatedRoom()
        let clients = try room.clients(2)
        clients[0].subscribe(to: clients[1])
        room.run(1000)
        try clients[1].publish()
        try room.connect()
        room.run(1000)
        let newest = try #require(clients[1].camera).frame
        for slot in [try clients[0].audio(), try clients[0].video()] {
            #expect(slot.faults() == [] && slot.labels == [2])
        }
        #expect(try #require(try clients[0].video().inOrder.last).tag.frame > newest - 3)
    }

    @Test func transceiversCanBeAddedWhileMediaFlows() throws {
        let room = try SimulatedRoom()
        let clients = try room.clients(3, slots: 1)
        clients[0].subscribe(to: clients[1])
        clients[0].subscribe(to: clients[2], slot: 1)
        room.run(500)
        let receive = try #require(clients[0].receive)
        let known = receive.slots.map(\.ssrc)
        var media = receive.offered
        for index in media.indices { media[index].mid = String(media[index].mid.first ?? "x") + "1" }
        receive.offered += media
        try receive.negotiate()
        room.run(500)
        #expect(receive.slots.map(\.ssrc).starts(with: known) && receive.slots.count == 4)
        for slot in receive.slots { #expect(slot.faults() == [] && slot.arrivals.count > 15, "\(slot.mid)") }
        #expect(try clients[0].audio(0).labels == [2] && clients[0].audio(1).labels == [3])
    }

    @Test func aPublisherCanAddItsCameraLater() throws {
        let room = try SimulatedRoom()
        let (publisher, watcher) = (room.client(), room.client())
        try publisher.publish(video: nil)
        try watcher.watch()
        try room.connect()
        watcher.subscribe(to: publisher)
        room.run(500)
        let send = try #require(publisher.send)
        let camera = SimulatedSource(
            mid: "w", kind: .video, label: 1, codec: Codec(.vp8, payloadType: 100, rtxPayloadType: 101),
            random: &room.random
        )
        send.offered.append(send.section(camera, send.offered[0].extensions))
        send.add(camera)
        try send.negotiate()
        room.router.publish(
            publisher.stream, session: "s", client: publisher.key, mids: Mids(audio: "a", video: "w"), audio: true,
            video: true
        )
        room.run(1000)
        #expect(try watcher.audio().faults() == [] && watcher.video().faults() == [])
        #expect(try watcher.audio().arrivals.count > 70 && watcher.video().frames.count > 25)
    }

    @Test func anICERestartLosesNothing() throws {
        let room = try SimulatedRoom()
        let clients = try room.clients(2)
        clients[0].subscribe(to: clients[1])
        room.run(500)
        for _ in 0..<3 {
            try clients[0].receive?.negotiate(restarts: true)
            try clients[1].send?.negotiate(restarts: true)
            room.run(1000)
        }
        room.run(40_000)
        for slot in [try clients[0].audio(), try clients[0].video()] {
            #expect(slot.faults() == [] && slot.arrivals.count > 2000)
        }
        #expect(room.router.peers.byUfrag.count <= 8)
    }

    @Test func aClientWithANewAddressIsFollowed() throws {
        let room = try SimulatedRoom()
        let clients = try room.clients(2)
        clients[0].subscribe(to: clients[1])
        room.run(500)
        for (index, connection) in [clients[0].receive, clients[1].send].enumerated() {
            connection?.host.addresses = [TransportAddress(v4: 0xc0a9_0000 + UInt32(index), port: 7000)]
        }
        room.run(10_000)
        let slots = [try clients[0].audio(), try clients[0].video()]
        for slot in slots { slot.forgetArrivals() }
        room.run(2000)
        for slot in slots { #expect(slot.faults() == [] && slot.arrivals.count > 60) }
    }

    @Test func aCheckFromAForgedAddressDoesNotDisconnectTheVictim() throws {
        let room = try SimulatedRoom()
        let clients = try room.clients(3)
        clients[0].subscribe(to: clients[1])
        room.run(1000)
        let victim = try #require(clients[1].send)
        let attacker = try #require(clients[2].send)
        // Capture the attacker's checks, to send them from the victim's address.
        var checks: [[UInt8]] = []
        room.network.filter = { bytes, from, _ in
            if from == attacker.address, bytes.first.map({ $0 < 4 }) ?? false { checks.append(bytes) }
            return true
        }
        room.run(8000)
        room.network.filter = nil
        try #require(!checks.isEmpty)
        let slots = [try clients[0].audio(), try clients[0].video()]
        for slot in slots { slot.forgetArrivals() }
        for _ in 0..<100 {
            for check in checks { room.network.inject(check, from: victim.address, to: SimulatedServer.address) }
            room.run(20)
        }
        for slot in slots { #expect(slot.faults() == [] && slot.arrivals.count > 60) }
    }

    @Test func manyAddressesOfAClientDoNotDisplaceTheOneInUse() throws {
        let room = try SimulatedRoom()
        let clients = try room.clients(2)
        clients[0].subscribe(to: clients[1])
        room.run(1000)
        let send = try #require(clients[1].send)
        var check: [UInt8] = []
        room.network.filter = { bytes, from, _ in
            if from == send.address, bytes.first.map({ $0 < 4 }) ?? false { check = bytes }
            return true
        }
        room.run(8000)
        room.network.filter = nil
        for port in 0..<40 as Range<UInt16> {
            room.network.inject(check, from: TransportAddress(v4: 0x0909_0909, port: port), to: SimulatedServer.address)
        }
        room.run(100)
        #expect(room.router.peers.byPath.count <= 2 * Peer.maxPaths + 8)
        send.transport.close(sink: send.host)
    }

    @Test func congestionOfATCPConnectionPausesAndResumesItsVideo() throws {
        let room = try SimulatedRoom()
        let clients = try room.clients(2)
        let address = TransportAddress(v4: 0xc0a9_0009, port: 9)
        room.server.sink.streams[address] = 70_000
        let receive = try #require(clients[0].receive)
        receive.host.addresses = [address]
        clients[0].subscribe(to: clients[1])
        room.run(8000)
        let (audio, video) = (try clients[0].audio(), try clients[0].video())
        for slot in [audio, video] { slot.forgetArrivals() }
        room.run(1000)
        #expect(audio.arrivals.count > 40 && video.arrivals.count > 40)
        room.server.sink.queued[address] = .milliseconds(499)
        room.run(1000)
        #expect(room.server.events.allSatisfy { $0.isSpeaking })
        room.server.sink.queued[address] = .milliseconds(501)
        room.run(40)
        let (audioCount, videoCount) = (audio.arrivals.count, video.arrivals.count)
        room.server.sink.queued[address] = .milliseconds(300)
        room.run(2000)
        #expect(audio.arrivals.count > audioCount + 90 && video.arrivals.count == videoCount)
        func event(_ paused: Bool) -> RouterEvent {
            .paused(clients[1], for: clients[0], paused, .slow)
        }
        #expect(room.server.events.filter { !$0.isSpeaking } == [event(true)])
        room.server.sink.queued[address] = .milliseconds(200)
        room.run(2000)
        #expect(room.server.events.filter { !$0.isSpeaking } == [event(true), event(false)])
        #expect(video.arrivals.count > videoCount + 60 && video.faults() == [] && audio.faults() == [])
    }

    @Test func aClosedTCPConnectionIsNotSentTo() throws {
        let room = try SimulatedRoom()
        let clients = try room.clients(2)
        let receive = try #require(clients[0].receive)
        let old = receive.address
        let address = TransportAddress(v4: 0xc0a9_0009, port: 9)
        room.server.sink.streams[address] = 70_000
        receive.host.addresses = [address]
        clients[0].subscribe(to: clients[1])
        room.run(8000)
        let path = Path(socket: 70_000, isTCP: true, remote: address)
        #expect(room.router.knows(path))
        room.router.pathClosed(path)
        room.run(30)
        #expect(!room.router.knows(path))
        let sent = room.server.sink.sentBytes
        receive.host.addresses = [old]
        room.run(60)
        #expect(room.server.sink.sentBytes[address] == sent[address])
        room.run(60)
        // Media must continue at once over the remaining path.
        #expect((room.server.sink.sentBytes[old] ?? 0) > (sent[old] ?? 0))
    }

    @Test func aWrongCertificateFailsAndIsReportedOnce() throws {
        let room = try SimulatedRoom()
        let clients = try room.clients(2)
        clients[0].subscribe(to: clients[1])
        let third = room.client()
        try third.watch()
        let receive = try #require(third.receive)
        let wrong = try #require(Fingerprint(.sha256, [UInt8](repeating: 7, count: 32)))
        // Offer a new connection whose certificate does not match its description.
        var offer = receive.offer(fingerprint: wrong)
        offer.origin.sessionID = 99
        let text = try room.router.offer(third.key, .receive, sdp: offer.text, now: room.network.now)
        let (remote, _) = try RTC.accept(try SessionDescription(parsing: text), to: offer)
        let theirs = try #require(ICECredentials(ufrag: remote.ufrag, password: remote.pwd))
        receive.transport.setRemote(theirs, fingerprint: remote.fingerprint)
        room.run(3000)
        #expect(room.server.events.filter { !$0.isSpeaking } == [.failed(client: third.key, .receive, .fingerprint)])
        // With the matching certificate, a new connection succeeds.
        try third.watch()
        try room.connect()
        third.subscribe(to: clients[1])
        room.run(500)
        #expect(try third.audio().arrivals.count > 15)
    }

    @Test func aRejectedDescriptionChangesNothing() throws {
        let room = try SimulatedRoom()
        let clients = try room.clients(2)
        clients[0].subscribe(to: clients[1])
        room.run(500)
        let receive = try #require(clients[0].receive)
        let wrong = try #require(Fingerprint(.sha256, [UInt8](repeating: 7, count: 32)))
        var swapped = receive.offer()
        for index in swapped.sections.indices { swapped.sections[index].mid = "v0" }
        var other = receive.offer()
        (other.sections[0].mid, other.sections[1].mid) = (other.sections[1].mid, other.sections[0].mid)
        let refused = [receive.offer(fingerprint: wrong).text, swapped.text, other.text, "v=0", ""]
        for text in refused + [receive.offer(credentials: ICECredentials(using: &room.random), fingerprint: wrong).text]
        {
            #expect(throws: SDPError.self) {
                try room.router.offer(clients[0].key, .receive, sdp: text, now: room.network.now)
            }
        }
        room.run(500)
        #expect(try clients[0].audio().faults() == [] && clients[0].audio().arrivals.count > 45)
        #expect(room.router.peers.byUfrag.count == 4)
    }

    @Test func removedTransceiversDoNotAccumulate() throws {
        let room = try SimulatedRoom()
        let clients = try room.clients(2)
        for client in clients {
            for connection in [client.send, client.receive] {
                let connection = try #require(connection)
                for round in 0..<50 {
                    for index in connection.offered.indices { connection.offered[index].mid = "\(round).\(index)" }
                    try connection.negotiate()
                }
            }
            let publisher = try #require(room.router.publisher(client.key))
            let subscriber = try #require(room.router.subscriber(client.key))
            #expect(publisher.tracks.count == 2 && publisher.sources.count <= Publisher.maxSources)
            #expect(subscriber.tracks.count == 4 && subscriber.tracksBySSRC.count == 4)
        }
        room.run(500)
    }
}
