import RTC
import TestSupport
import Testing

@testable import SFU

@Suite struct ForwardingTests {
    @Test func twoClientsReceiveEachOther() throws {
        let room = try SimulatedRoom()
        let clients = try room.clients(2)
        clients[0].subscribe(to: clients[1])
        clients[1].subscribe(to: clients[0])
        room.run(3000)
        for (me, other) in [(clients[0], clients[1]), (clients[1], clients[0])] {
            for slot in [try me.audio(), try me.video()] {
                #expect(slot.labels == [other.number])
                #expect(slot.faults() == [])
                #expect(slot.unreadable == 0 && slot.duplicates == 0)
            }
            #expect(try me.audio().arrivals.count > 140)
            #expect(try me.video().frames.count > 80)
            #expect(try me.video().frames.allSatisfy { $0.isComplete })
            #expect(me.receive?.strayPackets == 0 && me.send?.strayPackets == 0)
        }
    }

    @Test func threeClientsReceiveEachOfTheOthersInASeparateTransceiver() throws {
        let room = try SimulatedRoom(seed: 3)
        let clients = try room.clients(3)
        for me in clients {
            for (slot, other) in clients.filter({ $0 !== me }).enumerated() { me.subscribe(to: other, slot: slot) }
        }
        room.run(2000)
        for me in clients {
            for (slot, other) in clients.filter({ $0 !== me }).enumerated() {
                for slot in [try me.audio(slot), try me.video(slot)] {
                    #expect(slot.labels == [other.number] && slot.faults() == [] && slot.arrivals.count > 50)
                }
            }
        }
    }

    @Test(arguments: 1...5 as ClosedRange<UInt64>) func theNextStreamInATransceiverFollowsWithoutAGap(seed: UInt64)
        throws
    {
        let room = try SimulatedRoom(seed: seed)
        let clients = try room.clients(4)
        var expected: [UInt32] = []
        for round in 0..<12 {
            let other = clients[1 + round % 3]
            clients[0].subscribe(to: other)
            // Sometimes nothing is subscribed for a while.
            if round % 4 == 3 {
                clients[0].unsubscribe(from: other)
                room.run(1500)
                clients[0].subscribe(to: other)
            }
            expected.append(other.number)
            room.run(400)
        }
        for slot in [try clients[0].audio(), try clients[0].video()] {
            #expect(slot.labels == expected)
            #expect(slot.faults() == [])
        }
        let frames = try clients[0].video().frames
        // The previous video may end in the middle of a frame.
        for (frame, next) in zip(frames, frames.dropFirst()) where !next.isKeyframe { #expect(frame.isComplete) }
    }

    @Test func aLateSubscriberGetsAKeyframeAndTheOthersNoticeNothing() throws {
        let room = try SimulatedRoom()
        let clients = try room.clients(3)
        clients[1].subscribe(to: clients[0])
        room.run(3000)
        let asked = try #require(clients[0].camera).keyframesAsked
        let joined = room.network.now
        clients[2].subscribe(to: clients[0])
        room.run(1000)
        #expect(clients[0].camera?.keyframesAsked == asked + 1)
        let first = try #require(try clients[2].video().inOrder.first)
        #expect(first.tag.isKeyframe && first.at - joined < .milliseconds(150))
        #expect(try clients[2].video().faults() == [])
        #expect(try clients[1].video().faults() == [])
    }

    @Test func whenTheBestEncodingStopsTheNextTakesOverUntilItReturns() throws {
        let room = try SimulatedRoom()
        let (publisher, watcher) = (room.client(), room.client())
        try publisher.publish(video: nil)
        try watcher.watch()
        try room.connect()
        let send = try #require(publisher.send)
        let codec = Codec(.vp8, payloadType: 96, rtxPayloadType: 97)
        let layers = ["h", "l"].enumerated().map { index, rid in
            let layer = SimulatedSource(
                mid: "v", kind: .video, label: UInt32(10 + index), codec: codec, random: &room.random
            )
            layer.rid = rid
            send.add(layer)
            return layer
        }
        var section = send.section(layers[0], send.offered[0].extensions)
        section.rids = ["h", "l"]
        send.offered.append(section)
        try send.negotiate()
        room.router.publish(
            publisher.stream, session: "s", client: publisher.key, mids: Mids(audio: "a", video: "v"), audio: true,
            video: true
        )
        watcher.subscribe(to: publisher)
        room.run(2000)
        #expect(try watcher.video().labels == [10])
        layers[0].isOn = false
        room.run(3000)
        #expect(try watcher.video().labels == [10, 11])
        layers[0].isOn = true
        room.run(2000)
        #expect(try watcher.video().labels == [10, 11, 10] && watcher.video().faults() == [])
        #expect(room.router.publisher(publisher.key)?.encodingCount == 3)
    }

    @Test func headerExtensionsUseTheIDsOfEachClient() throws {
        let room = try SimulatedRoom(seed: 9)
        let clients = try room.clients(2)
        clients[0].subscribe(to: clients[1])
        clients[1].microphone?.level = 77
        room.run(500)
        let receive = try #require(clients[0].receive)
        #expect(receive.extensionID(.audioLevel) != clients[1].send?.extensionID(.audioLevel))
        let sound = [receive.extensionID(.audioLevel): [0x80 | 77] as [UInt8]]
        #expect(try clients[0].audio().arrivals.allSatisfy { $0.extensions == sound })
        let picture = [receive.extensionID(.absCaptureTime): [0, 0, 0, 3] as [UInt8]]
        #expect(try clients[0].video().arrivals.allSatisfy { $0.extensions == picture })
        #expect(try clients[0].audio().arrivals.allSatisfy { $0.payloadType == 109 })
        #expect(try clients[0].video().arrivals.allSatisfy { $0.payloadType == 120 })
    }

    @Test func aSubscriberThatCannotDecodeTheVideoIsNotifiedOnceAndAgainWhenItResumes() throws {
        let room = try SimulatedRoom()
        let (publisher, watcher) = (room.client(), room.client())
        try publisher.publish(video: Codec(.vp9(profile: 0), payloadType: 98, rtxPayloadType: 99))
        try watcher.watch()
        try room.connect()
        watcher.subscribe(to: publisher)
        room.run(3000)
        let paused = RouterEvent.paused(publisher, for: watcher, true, .codec)
        #expect(room.server.events.filter { !$0.isSpeaking } == [paused])
        #expect(try watcher.video().arrivals.isEmpty && watcher.audio().arrivals.count > 100)
        try publisher.publish()
        try room.connect()
        room.run(2000)
        let resumed = RouterEvent.paused(publisher, for: watcher, false, .codec)
        #expect(room.server.events.filter { !$0.isSpeaking } == [paused, resumed])
        #expect(try watcher.video().arrivals.count > 50 && watcher.video().faults() == [])
    }

    @Test func redundantAudioIsUnwrappedUnlessItWasNegotiated() throws {
        let room = try SimulatedRoom()
        let (publisher, watcher) = (room.client(), room.client())
        let red = Codec(.red, payloadType: 63, fmtp: "111/111")
        try publisher.publish(audio: red, video: nil, others: [.audio: [Codec(.opus, payloadType: 111)]])
        publisher.microphone?.isRedundant = true
        try watcher.watch()
        try room.connect()
        watcher.subscribe(to: publisher)
        room.run(1000)
        let slot = try watcher.audio()
        #expect(slot.arrivals.count > 40 && slot.faults() == [] && slot.labels == [publisher.number])
        #expect(slot.unreadable == 0 && slot.arrivals.allSatisfy { $0.payloadType == 109 })
    }

    @Test func audioAndVideoOfAPublisherStayInSync() throws {
        let room = try SimulatedRoom(weather: NetworkConditions(delay: 5...25))
        let clients = try room.clients(3)
        clients[0].subscribe(to: clients[1])
        room.run(2500)
        clients[0].subscribe(to: clients[2])
        room.run(2500)
        // Compare each packet's capture time according to the sender reports with the actual capture time.
        func offset(_ slot: SimulatedSlot, _ rate: Int64) throws -> Int64 {
            let last = try #require(slot.inOrder.last)
            let report = try #require(slot.reports.last)
            let elapsed = Int64(Int32(bitPattern: last.timestamp &- report.rtpTimestamp)) * 1_000_000_000 / rate
            let wallClock = report.ntp + MediaInterval(nanoseconds: elapsed - last.tag.captured.nanoseconds)
            return (wallClock - NTPTime(0xe000_0000_0000_0000)).milliseconds
        }
        let sound = try offset(clients[0].audio(), 48_000)
        let picture = try offset(clients[0].video(), 90_000)
        #expect(abs(sound - picture) <= 5, "\(sound) ms and \(picture) ms")
        // Times are on the server's clock, minus the network delay.
        #expect((0...40).contains(sound), "\(sound) ms")
        #expect(try clients[0].audio().reports.count >= 4)
    }

    @Test func arrivalsAreReportedToThePublisher() throws {
        let room = try SimulatedRoom(weather: NetworkConditions(losses: 20, delay: 5...30))
        let clients = try room.clients(1)
        room.run(5000)
        let send = try #require(clients[0].send)
        #expect(send.acknowledged.isSubset(of: send.transportSent))
        #expect(send.acknowledged.count > send.transportSent.count * 9 / 10)
        #expect(send.acknowledged.count < send.transportSent.count)
        #expect(send.receptions.count == 2 && send.receptions.values.contains { $0.lost > 0 })
    }

    @Test func theClientThatIsLouderForAWhileIsTheActiveSpeaker() throws {
        let room = try SimulatedRoom()
        let clients = try room.clients(2)
        clients[0].microphone?.level = 20
        clients[1].microphone?.level = 100
        room.run(4000)
        func speaking(_ client: SimulatedClient?) -> RouterEvent { .speaking(session: "s", stream: client?.stream) }
        #expect(room.server.events == [speaking(clients[0])])
        // A short noise, such as a cough, must not change the speaker.
        clients[1].microphone?.level = 0
        room.run(40)
        clients[1].microphone?.level = 100
        room.run(2000)
        #expect(room.server.events == [speaking(clients[0])])
        clients[0].microphone?.level = 100
        clients[1].microphone?.level = 10
        room.run(4000)
        #expect(room.server.events == [speaking(clients[0]), speaking(clients[1])])
        room.router.unpublish(clients[1].stream)
        room.run(1000)
        #expect(room.server.events == [speaking(clients[0]), speaking(clients[1]), speaking(nil)])
        room.router.unpublish(clients[0].stream)
        room.run(1000)
        #expect(room.router.speakers.sessions.isEmpty)
    }
}

extension RouterEvent {
    var isSpeaking: Bool { if case .speaking = self { true } else { false } }
}
