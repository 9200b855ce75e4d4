import RTC
import TestSupport
import Testing

@testable import SFU

@Suite("Numbered packets to subscribers")
struct DownlinkTests {
    @Test("every packet to a subscriber has the next transport-wide number, whatever its stream")
    func numbers() throws {
        let room = try SimulatedRoom()
        let clients = try room.clients(3)
        for (slot, other) in [1, 2].enumerated() { clients[0].subscribe(to: clients[other], slot: slot) }
        clients[1].subscribe(to: clients[0])
        room.run(3000)
        for client in clients.prefix(2) {
            let numbers = try #require(client.receive).transportNumbers
            #expect(numbers.count > 200)
            #expect(numbers == (0..<numbers.count).map { UInt16(truncatingIfNeeded: $0) })
        }
        let control = try #require(room.router.subscriber(clients[0].key)?.downlink).control
        #expect(control.hasFeedback && control.estimate == nil && control.queueDelay < .milliseconds(5))
        #expect((10...200).contains(control.roundTrip.milliseconds))
        #expect(room.router.estimate(of: clients[0].key) == nil, "nothing limits it")
        #expect(room.router.estimate(of: Key(high: 9, low: 9)) == nil, "nobody has this key")
    }

    @Test("packets that a publisher repeats to probe its own path are not forwarded, and take no numbers")
    func repeated() throws {
        let room = try SimulatedRoom()
        let clients = try room.clients(2)
        clients[0].subscribe(to: clients[1])
        room.run(1000)
        let (send, camera) = (try #require(clients[1].send), try #require(clients[1].camera))
        let recovered = room.router.counters.packetsRecovered
        for _ in 0..<100 {
            for back in 1...3 as ClosedRange<UInt16> {
                if let packet = camera.again(camera.sequence &- back) { send.send(packet, of: camera) }
            }
            room.run(10)
        }
        #expect(camera.retransmissionsRequested >= 300)
        let numbers = try #require(clients[0].receive).transportNumbers
        let missing = Int(numbers.last ?? 0) + 1 - numbers.count
        #expect(missing == 0 && numbers == numbers.sorted())
        #expect(try clients[0].video().faults() == [])
        #expect(room.router.counters.packetsRecovered - recovered < 20, "they were not missing")
        let control = try #require(room.router.subscriber(clients[0].key)?.downlink).control
        #expect(control.lossRatio == 0 && control.inherentLossRatio == 0)
    }

    @Test("without transport-wide feedback, packets carry their time and the receiver's own estimate counts")
    func remb() throws {
        let room = try SimulatedRoom()
        let (_, watcher) = try estimatingWatcher(in: room)
        let receive = try #require(watcher.receive)
        let slot = try watcher.video()
        #expect(slot.faults() == [] && slot.arrivals.count > 60)
        let downlink = try #require(room.router.subscriber(watcher.key)?.downlink)
        let track = try #require(room.router.subscriber(watcher.key)?.track("v0"))
        #expect(track.transportNumberID == 0 && track.sendTimeID != 0)
        receive.sendControl { RTCP.writeREMB(sender: 1, bitrate: 50_000, sources: [slot.ssrc], to: &$0) }
        receive.isMute = true
        room.run(500)
        #expect(downlink.control.estimate == .kilobits(50) && track.pause == .slow)
        #expect(room.router.estimate(of: watcher.key) == 50_000)
        let count = slot.arrivals.count
        receive.sendControl { RTCP.writeREMB(sender: 1, bitrate: 3_000_000, sources: [slot.ssrc], to: &$0) }
        room.run(4000)
        #expect(track.pause == nil && slot.arrivals.count > count + 60)
    }

    /// Returns a publisher, and a client that has received its video for two seconds and would estimate the bitrate itself.
    private func estimatingWatcher(
        in room: SimulatedRoom
    ) throws -> (publisher: SimulatedClient, watcher: SimulatedClient) {
        let (publisher, watcher) = (room.client(), room.client())
        try publisher.publish()
        var video = Codec(.vp8, payloadType: 120, rtxPayloadType: 121)
        var audio = Codec(.opus, payloadType: 109)
        (video.transportCC, audio.transportCC) = (false, false)
        try watcher.watch(audio: audio, video: video)
        try room.connect()
        watcher.subscribe(to: publisher)
        room.run(2000)
        return (publisher, watcher)
    }

    /// A keyframe of 40 packets has about 24 kB, which take 350 ms at 550 kbit/s.
    @Test("a keyframe is spread over time also for a receiver that estimates the bitrate itself")
    func rembPacing() throws {
        let room = try SimulatedRoom()
        let (publisher, watcher) = try estimatingWatcher(in: room)
        let (slot, camera) = (try watcher.video(), try #require(publisher.camera))
        let receive = try #require(watcher.receive)
        receive.sendControl { RTCP.writeREMB(sender: 1, bitrate: 500_000, sources: [slot.ssrc], to: &$0) }
        room.run(1000)
        let before = slot.arrivals.count
        camera.packetsInKeyframe = 40
        camera.askForKeyframe()
        room.run(1500)
        let keyframe = slot.arrivals[before...].filter(\.tag.isKeyframe)
        let first = try #require(keyframe.first), last = try #require(keyframe.last)
        #expect(Set(keyframe.map(\.tag.index)).count == 40)
        #expect((200...600).contains((last.at - first.at).milliseconds))
        #expect(slot.faults(clock: .seconds(1)) == [])
    }

    @Test("a receiver's own estimate is forgotten when it reports and states none for five seconds")
    func rembEnds() throws {
        let room = try SimulatedRoom()
        let (_, watcher) = try estimatingWatcher(in: room)
        let receive = try #require(watcher.receive)
        let slot = try watcher.video()
        let track = try #require(room.router.subscriber(watcher.key)?.track("v0"))
        receive.sendControl { RTCP.writeREMB(sender: 1, bitrate: 50_000, sources: [slot.ssrc], to: &$0) }
        room.run(4500)
        #expect(room.router.estimate(of: watcher.key) == 50_000 && track.pause == .slow)
        let count = slot.arrivals.count
        room.run(4000)
        #expect(room.router.estimate(of: watcher.key) == nil)
        #expect(track.pause == nil && slot.arrivals.count > count + 60)
    }

    @Test("a receiver's own estimate stays while no reports arrive")
    func rembStays() throws {
        var control = CongestionControl()
        func second(_ count: Int64) -> MediaTime { MediaTime(nanoseconds: count * 1_000_000_000) }
        control.receive(remb: .kilobits(50), now: second(1))
        control.handleTimeout(now: second(60))
        #expect(control.estimate == .kilobits(50))
        control.receiveReport(now: second(60))
        #expect(control.estimate == nil)
    }

    @Test("audio without numbers is not deducted from an estimate that does not contain it")
    func unnumberedAudio() throws {
        for numbersAudio in [true, false] {
            let room = try SimulatedRoom()
            let (publisher, watcher) = (room.client(), room.client())
            try publisher.publish()
            try watcher.watch(slots: 1, numbersAudio: numbersAudio)
            try room.connect()
            watcher.subscribe(to: publisher)
            room.run(3000)
            let peer = try #require(room.router.subscriber(watcher.key))
            let (audio, video) = (try #require(peer.track("a0")), try #require(peer.track("v0")))
            #expect((audio.transportNumberID != 0) == numbersAudio && video.transportNumberID != 0)
            let downlink = try #require(peer.downlink)
            #expect(audio.packets > 100 && (downlink.audio > .zero) == numbersAudio)
            #expect(downlink.media > .kilobits(100), "the video counts")
        }
    }

    @Test("a subscriber whose feedback stops is not flooded")
    func silence() throws {
        let room = try SimulatedRoom()
        let clients = try room.clients(2)
        clients[0].subscribe(to: clients[1])
        room.run(3000)
        try #require(clients[0].receive).reportsArrivals = false
        room.run(4000)
        let control = try #require(room.router.subscriber(clients[0].key)?.downlink).control
        #expect(try #require(control.estimate) < .kilobits(150))
    }

    @Test("a subscriber cannot make the server handle more than 4096 packet statuses in 100 ms")
    func statuses() {
        let downlink = Downlink()
        func handled(from milliseconds: Int64) -> Int {
            (0..<1000).count { index in
                downlink.mayHandle(2048, now: MediaTime(nanoseconds: (milliseconds + Int64(index) / 20) * 1_000_000))
            }
        }
        #expect(handled(from: 0) == 2)
        #expect(handled(from: 100) == 2)
    }

    @Test("a raise waits longer only after raises that were too early")
    func raiseDelay() {
        let downlink = Downlink()
        func fall(at seconds: Int64, after raise: Int64) {
            downlink.raisedAt = MediaTime(nanoseconds: raise * 1_000_000_000)
            downlink.lowered(to: .zero, now: MediaTime(nanoseconds: seconds * 1_000_000_000))
        }
        fall(at: 3, after: 2)
        fall(at: 6, after: 5)
        #expect(downlink.raiseDelay == Downlink.longestRaiseDelay)
        fall(at: 70, after: 10)
        #expect(downlink.raiseDelay == Downlink.shortestRaiseDelay)
    }

    @Test("videos that had to be paused again soon are resumed less and less often, until the path carries more")
    func resumeDelay() {
        func time(_ seconds: Double) -> MediaTime { MediaTime(nanoseconds: Int64(seconds * 1e9)) }
        let downlink = Downlink()
        for fall in [1.0, 2, 3, 4] {
            downlink.resumed(now: time(fall - 0.5))
            downlink.lowered(to: .kilobits(200), now: time(fall))
            downlink.lowered(to: .kilobits(200), now: time(fall))
        }
        #expect(downlink.resumeDelay == .seconds(8), "a resume fails once")
        func mayGrow(_ kilobits: Int64, at seconds: Double, hasVideo: Bool = true) -> Bool {
            downlink.growth(of: .kilobits(kilobits), hasVideo: hasVideo, now: time(seconds)).limit != .zero
        }
        #expect(!mayGrow(200, at: 11) && mayGrow(200, at: 12.1))
        #expect(mayGrow(401, at: 5), "the path has changed")
        #expect(mayGrow(200, at: 5, hasVideo: false), "otherwise there would be no picture at all")
        #expect(downlink.growth(of: .kilobits(200), now: time(5)).resumesOne, "the floor carries one")
        downlink.chosen = .kilobits(200)
        downlink.resumed(now: time(20))
        #expect(!mayGrow(300, at: 20.9) && mayGrow(300, at: 21), "one after the other")
        downlink.resumed(now: time(22))
        #expect(mayGrow(401, at: 22.1), "unless there is room for twice as much")
        downlink.lowered(to: .kilobits(200), now: time(40))
        #expect(downlink.resumeDelay == Downlink.shortestResumeDelay)
    }
}
