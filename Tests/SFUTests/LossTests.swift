import RTC
import TestSupport
import Testing

@testable import SFU

@Suite struct LossTests {
    @Test(
        "every frame arrives despite five percent loss each way", arguments: [(1, 1), (2, 1), (3, 1), (4, 3), (5, 3)])
    func losses(seed: UInt64, loops: Int) throws {
        let room = try SimulatedRoom(seed: seed, loops: loops)
        let clients = try room.clients(3)
        room.network.weather = NetworkConditions(losses: 50, duplicates: 10, delay: 5...40)
        for client in clients {
            for (slot, other) in clients.filter({ $0 !== client }).enumerated() {
                client.subscribe(to: other, slot: slot)
            }
        }
        room.run(8000)
        room.network.weather = NetworkConditions()
        room.run(1000)
        for client in clients {
            for index in 0..<2 {
                let slot = try client.video(index)
                let all = slot.frames
                // Skip frames before the first complete keyframe: the subscriber does not know of losses before its
                // first packet.
                let frames = all.drop { !$0.isKeyframe || !$0.isComplete }.dropLast()
                #expect(frames.count > 200 && all.count - frames.count < 100)
                // Check only frames that a decoder still needs. A later keyframe makes a frame obsolete.
                for (index, frame) in zip(frames.indices, frames) where !frame.isComplete {
                    let isOvertaken = frames[index...].dropFirst().prefix(10).contains(where: \.isKeyframe)
                    #expect(isOvertaken, "frame \(frame.frame) of \(frame.label) at \(client.number)")
                }
                #expect(slot.unreadable == 0)
            }
            #expect(try #require(client.receive).nacksSent > 0)
            #expect(try #require(client.camera).keyframesMade < 7, "retransmissions are cheaper than keyframes")
        }
        func total(_ counter: KeyPath<RouterCounters, UInt64>) -> UInt64 {
            room.servers.reduce(0) { $0 + $1.router.counters[keyPath: counter] }
        }
        // About 50 of 1,000 packets were lost. Packets that arrive twice do not count.
        #expect(total(\.nacksSent) > 100 && total(\.packetsRecovered) > 30)
        #expect(total(\.nacksReceived) > 100 && total(\.packetsRetransmitted) > 100)
    }

    @Test func aStormOfNACKsGetsAtMostTheOriginalBytesPlusABurst() throws {
        let room = try SimulatedRoom()
        let clients = try room.clients(3)
        for client in clients[1...] { client.subscribe(to: clients[0]) }
        room.run(1000)
        let attacker = try #require(clients[1].receive)
        let slot = try clients[1].video()
        let repair = try #require(slot.repairSSRC)
        for _ in 0..<1000 {
            let newest = UInt16(truncatingIfNeeded: slot.inOrder.last?.number ?? 0)
            for packet in 0..<5 {
                attacker.sendControl { writer in
                    let first = newest &- UInt16(packet) &* 340 &- 339
                    RTCP.writeNACK(sender: 1, media: slot.ssrc, lost: (0..<340).map { first &+ $0 }, to: &writer)
                }
            }
            room.run(10)
        }
        let counters = room.router.counters
        #expect(counters.nacksReceived > 1_000_000 && counters.packetsRetransmitted > 100)
        let (fresh, again) = (attacker.receivedBytes[slot.ssrc] ?? 0, attacker.receivedBytes[repair] ?? 0)
        #expect(again <= fresh + RetransmissionBudget.burst, "\(again) bytes retransmitted, \(fresh) sent originally")
        #expect(try clients[2].video().faults() == [] && clients[2].audio().faults() == [])
        #expect(try clients[1].video().faults() == [])
        #expect(try #require(clients[0].camera).retransmissionsRequested == 0)
    }

    @Test func aFloodOfKeyframeRequestsGetsOneKeyframeASecond() throws {
        let room = try SimulatedRoom()
        let clients = try room.clients(3)
        for client in clients[1...] { client.subscribe(to: clients[0]) }
        room.run(1000)
        let camera = try #require(clients[0].camera)
        let asked = camera.keyframesAsked
        let slot = try clients[1].video()
        for _ in 0..<1000 {
            for _ in 0..<5 {
                clients[1].receive?.sendControl { writer in
                    for _ in 0..<10 { RTCP.writePLI(sender: 1, media: slot.ssrc, to: &writer) }
                    let entries = (0..<20).map { RTCP.FullIntraRequest.Entry(ssrc: slot.ssrc, sequenceNumber: $0) }
                    RTCP.writeFIR(sender: 1, entries: entries, to: &writer)
                }
            }
            room.run(10)
        }
        #expect((5...11).contains(camera.keyframesAsked - asked), "\(camera.keyframesAsked - asked) in 10 s")
        #expect(try clients[2].video().faults() == [])
    }

    @Test func aGapThatIsTooLargeToRequestGetsAKeyframe() throws {
        let room = try SimulatedRoom()
        let clients = try room.clients(2)
        clients[1].subscribe(to: clients[0])
        room.run(3000)
        let camera = try #require(clients[0].camera)
        let (asked, requested) = (camera.keyframesAsked, room.router.counters.keyframesRequested)
        camera.sequence &+= 1500
        room.run(60)
        #expect(room.router.counters.nacksSent == 0)
        #expect(room.router.counters.keyframesRequested == requested + 1 && camera.keyframesAsked == asked + 1)
    }

    @Test func noSubscriberStartsWithARetransmittedOldKeyframe() throws {
        let room = try SimulatedRoom()
        let clients = try room.clients(3)
        clients[1].subscribe(to: clients[0])
        room.run(2000)
        let (send, camera) = (try #require(clients[0].send), try #require(clients[0].camera))
        let first = try #require(try clients[1].video().inOrder.first)
        // Send unrequested retransmissions, as browsers do to probe the bandwidth.
        let number =
            camera.sequence
            &- UInt16(truncatingIfNeeded: try #require(clients[1].video().inOrder.last).number - first.number)
        clients[2].subscribe(to: clients[0])
        for offset in 0..<20 as Range<UInt16> {
            if let packet = camera.again(number &- 10 &+ offset) { send.send(packet, of: camera) }
        }
        room.run(1000)
        let begun = try #require(try clients[2].video().inOrder.first)
        #expect(begun.tag.isKeyframe && begun.tag.frame > first.tag.frame)
        #expect(try clients[2].video().faults() == [] && clients[1].video().faults() == [])
    }

    @Test func keyframeRequestsToASilentPublisherAreLimited() throws {
        let room = try SimulatedRoom()
        let clients = try room.clients(2)
        clients[0].subscribe(to: clients[1])
        room.run(1000)
        let before = room.router.counters.keyframesRequested
        // After this, only packets from the middle of frames arrive.
        let camera = try #require(clients[1].camera)
        camera.isOn = false
        clients[0].unsubscribe(from: clients[1])
        clients[0].subscribe(to: clients[1])
        for _ in 0..<500 {
            camera.sequence &+= 1
            let packet = OutgoingPacket(
                payloadType: 96, sequence: camera.sequence, timestamp: 1, ssrc: camera.ssrc,
                payload: [0x80, 0xe0, 0x80, 1, 0, 0, 1, 1, 1, 1]
            )
            clients[1].send?.send(packet, of: camera)
            room.run(10)
        }
        let asked = room.router.counters.keyframesRequested - before
        #expect((10...18).contains(asked), "\(asked) in 5 s")
    }

    @Test("a packet is retransmitted again after 20 ms, however long the subscriber has been there")
    func retransmissionTimes() {
        var times = RetransmissionTimes()
        for milliseconds in [0, 19, 20, 21, 65_500, 65_530, 65_560, 131_000, 10_000_000] as [Int64] {
            let now = MediaTime(nanoseconds: milliseconds * 1_000_000)
            #expect(times.take(7, now: now) == ![19, 21].contains(milliseconds), "\(milliseconds) ms")
            #expect(times.take(8, now: now + .milliseconds(5)) == ![19, 21].contains(milliseconds))
        }
    }

    @Test("extension ids of the one-byte and the two-byte form are mapped")
    func extensionMap() {
        var map = ExtensionMap()
        for (theirs, ours) in [(1, 14), (15, 3), (16, 4), (255, 5)] as [(UInt8, UInt8)] { map.map(theirs, to: ours) }
        #expect([0, 1, 2, 15, 16, 17, 255].map { map[$0] } == [0, 14, 0, 3, 4, 0, 5])
        map.map(16, to: 0)
        map.map(1, to: 0)
        #expect(map[16] == 0 && map[1] == 0)
    }
}
