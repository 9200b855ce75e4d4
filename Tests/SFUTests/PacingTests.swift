import RTC
import TestSupport
import Testing

@testable import SFU

@Suite("Bursts of video on a limited path")
struct PacingTests {
    /// Returns one publisher with large keyframes and one watcher, whose link of 500 kbit/s has been known for 15 s.
    private func gallery(seed: UInt64) throws -> SimulatedGallery {
        let gallery = try SimulatedGallery(seed: seed, publishers: 1, watchers: 1)
        for source in gallery.publishers[0].send?.sources ?? [] { source.packetsInKeyframe = 40 }
        gallery.room.run(5000)
        try gallery.squeeze(0, to: 500_000, queue: .seconds(1))
        gallery.room.run(15_000)
        return gallery
    }

    private func askForKeyframes(_ gallery: SimulatedGallery) {
        for source in gallery.publishers[0].send?.sources ?? [] where source.kind == .video { source.askForKeyframe() }
    }

    /// A keyframe of 40 packets has about 22 kB, which takes the link 350 ms.
    @Test("a keyframe fills no queue and delays no audio", arguments: 1...4 as ClosedRange<UInt64>, [40, 80])
    func keyframe(seed: UInt64, packets: Int) throws {
        let gallery = try gallery(seed: seed)
        for source in gallery.publishers[0].send?.sources ?? [] { source.packetsInKeyframe = packets }
        let (video, audio) = (try gallery.watchers[0].video(0), try gallery.watchers[0].audio(0))
        #expect(gallery.room.router.estimate(of: gallery.watchers[0].key) != nil)
        let (framesBefore, heardBefore) = (video.arrivals.count, audio.arrivals.count)
        var longest: Int64 = 0
        askForKeyframes(gallery)
        for _ in 0..<150 {
            gallery.room.run(10)
            longest = max(longest, try gallery.link(0)?.waiting(at: gallery.room.network.now).milliseconds ?? 0)
        }
        let keyframe = video.arrivals[framesBefore...].filter(\.tag.isKeyframe)
        let first = try #require(keyframe.first), last = try #require(keyframe.last)
        print(
            "seed \(seed), \(packets) packets: the queue had at most \(longest) ms, the keyframe took \((last.at - first.at).milliseconds) ms"
        )
        #expect(Set(keyframe.map(\.tag.index)).count == packets)
        #expect(longest < 150)
        let heard = audio.arrivals[heardBefore...]
        #expect(heard.count >= 69 && heard.allSatisfy { $0.at - $0.tag.captured < .milliseconds(220) })
        #expect(video.faults(clock: .seconds(1)).prefix(9) == [])
    }

    @Test("packets that waited keep their order, and none is left out or sent twice")
    func order() throws {
        let gallery = try gallery(seed: 5)
        let (video, router) = (try gallery.watchers[0].video(0), gallery.room.router)
        let (dropped, repaired) = (router.counters.packetsDropped, router.counters.nacksReceived)
        let first = video.arrivals.count
        for _ in 0..<20 {
            askForKeyframes(gallery)
            gallery.room.run(1000)
        }
        #expect(video.faults(clock: .seconds(1)).prefix(9) == [])
        let originals = video.arrivals[first...].filter { !$0.isRetransmission }.map(\.number)
        #expect(originals == originals.sorted())
        #expect(video.arrivals.filter(\.tag.isKeyframe).count >= 20 * 40)
        #expect(router.counters.nacksReceived == repaired)
        // Encryption refuses a packet that was sent before.
        #expect(router.counters.packetsDropped == dropped)
    }

    @Test("timestamps follow the clock, however often packets waited before the layer changed")
    func clock() throws {
        let gallery = try gallery(seed: 7)
        let (room, video) = (gallery.room, try gallery.watchers[0].video(0))
        let track = try track(gallery)
        var waits = 0
        for _ in 0..<10 {
            askForKeyframes(gallery)
            waitForWaiting(gallery, track)
            if track.waiting != nil { waits += 1 }
            // A keyframe waits when the other layer begins.
            gallery.watchers[0].prefer(VideoPreference(width: 160, height: 90), of: gallery.publishers[0], slot: 0)
            room.run(1500)
            gallery.watchers[0].prefer(VideoPreference(width: 640, height: 360), of: gallery.publishers[0], slot: 0)
            room.run(1500)
        }
        #expect(waits >= 8)
        try gallery.squeeze(0, to: nil)
        room.run(3000)
        let first = try #require(video.arrivals.first), last = try #require(video.arrivals.last)
        let played = Int64(last.timestamp &- first.timestamp) / 90
        #expect(abs(played - (last.at - first.at).milliseconds) < 100)
    }

    private func track(_ gallery: SimulatedGallery) throws -> OutgoingTrack {
        try #require(gallery.room.router.subscriber(gallery.watchers[0].key)?.track("v0"))
    }

    private func waitForWaiting(_ gallery: SimulatedGallery, _ track: OutgoingTrack) {
        for _ in 0..<10 where track.waiting == nil { gallery.room.run(10) }
    }

    @Test("a video that is paused forgets what waits")
    func paused() throws {
        let gallery = try gallery(seed: 6)
        let track = try track(gallery)
        // A few packets of an earlier frame may wait at this moment.
        for _ in 0..<100 where track.waiting != nil { gallery.room.run(10) }
        askForKeyframes(gallery)
        waitForWaiting(gallery, track)
        let waiting = try #require(track.waiting)
        #expect(track.downlink?.hasWaiting == true && waiting.last - waiting.next >= 10)
        track.allow(0, 0)
        #expect(track.waiting == nil)
        for _ in 0..<3 where track.downlink?.hasWaiting == true { gallery.room.run(10) }
        #expect(track.downlink?.hasWaiting == false)
    }

    @Test("a packet that waited for 800 ms is sent, whatever else is sent")
    func overdue() throws {
        let gallery = try gallery(seed: 8)
        let (track, video) = (try track(gallery), try gallery.watchers[0].video(0))
        let downlink = try #require(track.downlink)
        let before = video.arrivals.count
        askForKeyframes(gallery)
        waitForWaiting(gallery, track)
        #expect(track.waiting != nil)
        for _ in 0..<150 {
            // Takes all the room.
            for _ in 0..<10 {
                _ = downlink.control.sent(bytes: 1400, at: gallery.room.network.now)
                downlink.control.withdraw()
            }
            gallery.room.run(10)
        }
        let keyframe = video.arrivals[before...].filter(\.tag.isKeyframe)
        #expect(Set(keyframe.map(\.tag.index)).count == 40)
    }

    /// The keyframe's first packet must wait, so other packets have taken all the room before it.
    @Test("after a keyframe that waited, all wanted temporal layers are sent at once")
    func temporalLayers() throws {
        let gallery = try gallery(seed: 12)
        let (room, video, track) = (gallery.room, try gallery.watchers[0].video(0), try track(gallery))
        for source in gallery.publishers[0].send?.sources ?? [] where source.kind == .video {
            source.temporalPattern = SimulatedSource.threeLayers
        }
        gallery.watchers[0].prefer(VideoPreference(frameRate: 8), of: gallery.publishers[0])
        room.run(3000)
        #expect(track.temporalFilter.wanted == 0 && track.waiting == nil)
        let (before, downlink) = (video.arrivals.count, try #require(track.downlink))
        for _ in 0..<60 {
            _ = downlink.control.sent(bytes: 1400, at: room.network.now)
            downlink.control.withdraw()
        }
        askForKeyframes(gallery)
        for _ in 0..<10 where track.waiting == nil { room.run(10) }
        let isFirst = video.arrivals[before...].allSatisfy { !$0.tag.isKeyframe }
        #expect(track.waiting != nil && isFirst, "all of the keyframe waits")
        // As the allocation does when the path carries more.
        track.temporalFilter.wanted = FeedPacket.noLayer
        room.run(3000)
        let arrivals = video.arrivals[before...]
        let keyframe = try #require(arrivals.first(where: \.tag.isKeyframe)?.tag)
        let frames = Set(arrivals.filter { $0.tag.label == keyframe.label }.map(\.tag.frame))
        let missing = (keyframe.frame...keyframe.frame + 4).filter { !frames.contains($0) }
        #expect(missing == [], "counted from the keyframe \(keyframe.frame)")
        #expect(video.orphans == [])
    }

    @Test("the history remembers which packets came as retransmissions, with which no segment may begin")
    func retransmissions() throws {
        let history = PacketHistory()
        let bytes = [0x80, 96] + [UInt8](repeating: 0, count: 18)
        try bytes.withUnsafeBytes { memory in
            let packet = try #require(RTPPacket(memory))
            for sequence in 7...8 as ClosedRange<Int64> {
                history.store(
                    memory, packet, sequence: sequence, isRecovered: sequence == 8, now: .init(nanoseconds: 0))
            }
        }
        #expect(!history.isRecovered(7) && history.isRecovered(8))
    }

    @Test("a packet is late after 400 ms and overdue after 800 ms")
    func urgency() {
        let waits: [Int64] = [0, 400, 401, 800, 801]
        let urgencies = waits.map { WaitingPackets.urgency(after: .milliseconds($0)) }
        #expect(urgencies == [.usual, .usual, .late, .late, .overdue])
    }

    @Test("videos that wait are sent in the order of their arrival")
    func fairness() throws {
        let gallery = try SimulatedGallery(seed: 9, publishers: 3, watchers: 1)
        gallery.room.run(5000)
        try gallery.squeeze(0, to: 700_000, queue: .seconds(1))
        gallery.room.run(15_000)
        for publisher in gallery.publishers {
            for source in publisher.send?.sources ?? [] { source.packetsInKeyframe = 40 }
        }
        let peer = try #require(gallery.room.router.subscriber(gallery.watchers[0].key))
        let began = gallery.room.network.now
        var (waited, longest) = (0, MediaInterval.zero)
        for round in 0..<20 {
            for source in gallery.publishers[round % 3].send?.sources ?? [] where source.kind == .video {
                source.askForKeyframe()
            }
            for _ in 0..<50 {
                gallery.room.run(20)
                let now = gallery.room.network.now
                for track in peer.tracks {
                    guard let waiting = track.waiting, let history = track.feed?.history else { continue }
                    waited += 1
                    if history.packet(waiting.next, now: now) != nil {
                        longest = max(longest, now - history.storedAt(waiting.next))
                    }
                }
            }
        }
        print("\(waited) ticks with waiting videos, the longest wait was \(longest.milliseconds) ms")
        #expect(waited > 50 && longest <= .milliseconds(840))
        let videos = try gallery.publishers.indices.map { try gallery.watchers[0].video($0).arrivals }
        let arrivals = videos.joined().filter { !$0.isRetransmission && $0.at >= began }.sorted { $0.at < $1.at }
        var newest = began
        for arrival in arrivals {
            newest = max(newest, arrival.tag.captured)
            // The publishers' own links and one tick.
            #expect(newest - arrival.tag.captured < .milliseconds(60))
        }
    }

    @Test("if a tick cannot send for all subscribers, all get their turn")
    func turns() throws {
        let gallery = try SimulatedGallery(seed: 11, publishers: 1, watchers: 6, longestFlush: 12)
        for source in gallery.publishers[0].send?.sources ?? [] { source.packetsInKeyframe = 40 }
        gallery.room.run(5000)
        for watcher in gallery.watchers.indices { try gallery.squeeze(watcher, to: 500_000, queue: .seconds(1)) }
        gallery.room.run(15_000)
        let before = try gallery.watchers.map { try $0.video(0).arrivals.count }
        // The links would carry 15 packets a tick.
        askForKeyframes(gallery)
        gallery.room.run(300)
        let counts = try zip(gallery.watchers, before).map { watcher, count in
            try watcher.video(0).arrivals[count...].count(where: \.tag.isKeyframe)
        }
        let most = try #require(counts.max()), least = try #require(counts.min())
        #expect(most >= 20 && least * 2 > most, "\(counts)")
    }

    @Test("a publisher whose numbers jump while packets wait costs no more than the history is long")
    func jumps() {
        var waiting = WaitingPackets(next: 1000, last: 1040)
        waiting.extend(to: 1041)
        #expect(waiting == WaitingPackets(next: 1000, last: 1041))
        for jump in 1...100 as ClosedRange<Int64> {
            waiting.extend(to: 1041 + jump * 30_000)
            #expect(waiting.last - waiting.next < 512)
        }
        waiting.extend(to: 5)
        #expect(waiting.last == 1041 + 3_000_000)
    }

    @Test("nothing waits on a path without a limit, and what waits is sent when the limit ends")
    func unlimited() throws {
        let gallery = try SimulatedGallery(publishers: 1, watchers: 1)
        for source in gallery.publishers[0].send?.sources ?? [] { source.packetsInKeyframe = 40 }
        let track = try track(gallery)
        for _ in 0..<5 {
            askForKeyframes(gallery)
            for _ in 0..<50 {
                gallery.room.run(10)
                #expect(track.downlink?.hasWaiting == false && !track.isPaced)
            }
        }
        let limited = try self.gallery(seed: 10)
        let other = try self.track(limited)
        askForKeyframes(limited)
        waitForWaiting(limited, other)
        #expect(other.isPaced && other.waiting != nil)
        try limited.squeeze(0, to: nil)
        other.downlink?.control = CongestionControl()
        limited.room.run(120)
        #expect(!other.isPaced && other.waiting == nil)
    }
}
