import RTC
import TestSupport
import Testing

@testable import SFU

/// What makes the router request keyframes, and where a subscriber's pictures begin.
@Suite("Keyframe requests")
struct KeyframeRequestTests {
    private func stream(of publisher: SimulatedClient, _ layer: SimulatedSource) throws -> IncomingTrack {
        try #require(publisher.room.router.publisher(publisher.key)?.track(layer.mid))
    }

    @Test("a subscriber that cannot decode the video causes no keyframe requests and needs no layer")
    func refused() throws {
        let room = try SimulatedRoom()
        let (publisher, watcher) = (room.client(), room.client())
        try publisher.publish(video: Codec(.vp9(profile: 0), payloadType: 98, rtxPayloadType: 99))
        try watcher.watch()
        try room.connect()
        let camera = try #require(publisher.camera)
        // The rates that are measured each second differ, as those of real cameras do.
        camera.frameInterval = .milliseconds(37)
        watcher.subscribe(to: publisher)
        room.run(2000)
        let before = camera.keyframesAsked
        room.run(10_000)
        #expect(camera.keyframesAsked - before <= 2, "\(camera.keyframesAsked - before)")
        let track = try stream(of: publisher, camera)
        #expect(track.feedTrack.feeds.map(\.isWatched) == [false] && track.feedTrack.demand.wanted == 0)
    }

    @Test("a congested subscriber causes no keyframe requests until it resumes")
    func congested() throws {
        let room = try SimulatedRoom()
        let clients = try room.clients(2)
        let receive = try #require(clients[0].receive)
        room.server.sink.streams[receive.address] = 70_000
        try receive.negotiate(restarts: true)
        room.run(6000)
        clients[0].subscribe(to: clients[1])
        room.run(1000)
        let camera = try #require(clients[1].camera)
        camera.frameInterval = .milliseconds(37)
        #expect(try clients[0].video().arrivals.count > 20)
        room.server.sink.queued[receive.address] = .seconds(1)
        room.run(500)
        let (asked, arrived) = (camera.keyframesAsked, try clients[0].video().arrivals.count)
        room.run(10_000)
        #expect(camera.keyframesAsked - asked <= 2, "\(camera.keyframesAsked - asked)")
        #expect(try stream(of: clients[1], camera).feedTrack.feeds.map(\.isWatched) == [false])
        room.server.sink.queued[receive.address] = .zero
        room.run(1000)
        #expect(try clients[0].video().arrivals.count > arrived + 20 && clients[0].video().faults() == [])
    }

    @Test("a subscriber without a connection causes no keyframe requests until it connects")
    func unconnected() throws {
        let room = try SimulatedRoom()
        let (publisher, watcher) = (room.client(), room.client())
        try publisher.publish()
        try room.connect()
        let camera = try #require(publisher.camera)
        camera.frameInterval = .milliseconds(37)
        try watcher.watch()
        let receive = try #require(watcher.receive)
        let address = receive.address
        room.network.filter = { _, from, _ in from != address }
        watcher.subscribe(to: publisher)
        room.run(10_000)
        #expect(camera.keyframesAsked <= 2, "\(camera.keyframesAsked)")
        room.network.filter = nil
        try receive.negotiate(restarts: true)
        try room.connect()
        room.run(1000)
        #expect(try watcher.video().arrivals.count > 20 && watcher.video().faults() == [])
    }

    @Test("a refused subscriber resumes when the publisher changes to a codec that it decodes")
    func changed() throws {
        let room = try SimulatedRoom()
        let (publisher, watcher) = (room.client(), room.client())
        let vp8 = Codec(.vp8, payloadType: 96, rtxPayloadType: 97)
        let vp9 = Codec(.vp9(profile: 0), payloadType: 98, rtxPayloadType: 99)
        try publisher.publish(video: vp9, others: [.video: [vp8]])
        try watcher.watch()
        try room.connect()
        watcher.subscribe(to: publisher)
        room.run(3000)
        #expect(try watcher.video().arrivals.isEmpty)
        let camera = try #require(publisher.camera)
        camera.codec = vp8
        room.run(2000)
        #expect(try watcher.video().arrivals.count > 50 && watcher.video().faults() == [])
        let pauses = room.server.events.compactMap { event in
            if case .subscriptionChanged(let change) = event, change.reason == .codec { change.isPaused } else { nil }
        }
        #expect(pauses == [true, false])
    }

    @Test("the first keyframe of a new publisher reaches a subscriber who already waits")
    func first() throws {
        let room = try SimulatedRoom()
        let (publisher, watcher) = (room.client(), room.client())
        try watcher.watch()
        try room.connect()
        room.router.publish(
            publisher.stream, session: "s", client: publisher.key, mids: Mids(audio: "a", video: "v"), audio: true,
            video: true
        )
        watcher.subscribe(to: publisher)
        try publisher.publish()
        try room.connect()
        room.run(1500)
        let camera = try #require(publisher.camera)
        let slot = try watcher.video()
        #expect(slot.inOrder.first?.tag.frame == 1 && slot.faults() == [])
        #expect(camera.keyframesAsked == 0 && camera.keyframesMade == 1, "asked \(camera.keyframesAsked)")
    }

    @Test("a keyframe that is requested too soon after the last one comes later, not never")
    func deferred() throws {
        let room = try SimulatedRoom()
        let clients = try room.clients(2)
        clients[0].subscribe(to: clients[1])
        room.run(3000)
        let (receive, camera) = (try #require(clients[0].receive), try #require(clients[1].camera))
        receive.isMute = true
        let slot = try clients[0].video()
        func complain() { receive.sendControl { RTCP.writePLI(sender: 1, media: slot.ssrc, to: &$0) } }
        complain()
        room.run(600)
        let made = camera.keyframesMade
        complain()
        room.run(200)
        #expect(camera.keyframesMade == made, "a second keyframe within a second would hurt everybody")
        room.run(1000)
        #expect(camera.keyframesMade == made + 1)
        room.run(3000)
        #expect(camera.keyframesMade == made + 1)
    }

    @Test("packets without a layer's name make no layer, once the layers have names")
    func phantom() throws {
        let call = try SimulatedLayers(sizes: [(1280, 720), (640, 360), (320, 180)])
        call.watchers[0].subscribe(to: call.publisher)
        call.room.run(500)
        let send = try #require(call.publisher.send)
        let source = call.layers[0]
        for ssrc: UInt32 in [0, 4711] {
            for _ in 0..<20 {
                let packet = OutgoingPacket(
                    payloadType: 96, sequence: source.sequence, timestamp: 1, ssrc: ssrc, payload: [0x10, 0, 0, 0, 0])
                let nameless = SimulatedSource(
                    mid: "v", kind: .video, label: 99, codec: source.codec, random: &call.room.random)
                send.send(packet, of: nameless)
            }
            call.room.run(100)
            #expect(try call.track().encodings.count == 3, "SSRC \(ssrc)")
        }
        #expect(try call.track().encodings.allSatisfy { $0.feed.rid != nil })
    }

    @Test("a publisher's losses are repaired over a round trip of 600 ms")
    func far() throws {
        let room = try SimulatedRoom()
        // From the start: a path that suddenly takes longer looks like a full queue to the subscriber's congestion control.
        room.network.weather = NetworkConditions(delay: 300...300)
        let clients = try room.clients(2)
        clients[0].subscribe(to: clients[1])
        room.run(5000)
        let (send, camera) = (try #require(clients[1].send), try #require(clients[1].camera))
        // Only the publisher's line loses packets.
        try #require(clients[0].receive).isMute = true
        var random = SeededGenerator(seed: 1)
        let address = send.address
        room.network.filter = { datagram, from, _ in
            from != address || datagram.count < 100 || Int.random(in: 0..<1000, using: &random) >= 20
        }
        room.run(12_000)
        #expect(room.router.counters.packetsRecovered > 10)
        #expect(camera.keyframesAsked <= 2, "\(camera.keyframesAsked)")
        // Nearly every request gets its own retransmission once the round trip is known.
        let before = room.router.counters
        room.run(10_000)
        let nacks = room.router.counters.nacksSent - before.nacksSent
        let recovered = room.router.counters.packetsRecovered - before.packetsRecovered
        #expect(recovered > 5 && nacks < recovered * 2, "\(nacks) requests for \(recovered) packets")
    }
}
