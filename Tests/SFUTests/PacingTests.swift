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

    /// A keyframe has about 22 kB, which takes the link 350 ms.
    @Test("a keyframe fills no queue and delays no audio", arguments: 1...4 as ClosedRange<UInt64>)
    func keyframe(seed: UInt64) throws {
        let gallery = try gallery(seed: seed)
        let (video, audio) = (try gallery.watchers[0].video(0), try gallery.watchers[0].audio(0))
        #expect(gallery.room.router.estimate(of: gallery.watchers[0].key) != nil)
        let (framesBefore, heardBefore) = (video.arrivals.count, audio.arrivals.count)
        var longest: Int64 = 0
        askForKeyframes(gallery)
        for _ in 0..<70 {
            gallery.room.run(10)
            longest = max(longest, try gallery.link(0)?.waiting(at: gallery.room.network.now).milliseconds ?? 0)
        }
        let keyframe = video.arrivals[framesBefore...].filter(\.tag.isKeyframe)
        let first = try #require(keyframe.first), last = try #require(keyframe.last)
        print("seed \(seed): the queue had at most \(longest) ms, the keyframe took \((last.at - first.at).milliseconds) ms")
        #expect(Set(keyframe.map(\.tag.index)).count == 40)
        #expect(last.at - first.at > .milliseconds(150), "it was spread over time")
        #expect(longest < 200)
        let heard = audio.arrivals[heardBefore...]
        #expect(heard.count >= 33 && heard.allSatisfy { $0.at - $0.tag.captured < .milliseconds(220) })
        #expect(video.faults(clock: .seconds(1)).prefix(9) == [])
    }

    @Test("packets that waited keep their order, and none is left out or sent twice")
    func order() throws {
        let gallery = try gallery(seed: 5)
        let video = try gallery.watchers[0].video(0)
        let dropped = gallery.room.router.counters.packetsDropped
        for _ in 0..<20 {
            askForKeyframes(gallery)
            gallery.room.run(1000)
        }
        #expect(video.faults(clock: .seconds(1)).prefix(9) == [])
        #expect(video.arrivals.filter(\.tag.isKeyframe).count >= 20 * 40)
        // Encryption refuses a packet that was sent before.
        #expect(gallery.room.router.counters.packetsDropped == dropped)
    }

    @Test("timestamps follow the clock, however often packets waited before the layer changed")
    func clock() throws {
        let gallery = try gallery(seed: 7)
        let (room, video) = (gallery.room, try gallery.watchers[0].video(0))
        for _ in 0..<10 {
            askForKeyframes(gallery)
            room.run(100)
            // A keyframe waits when the other layer begins.
            gallery.watchers[0].prefer(VideoPreference(width: 160, height: 90), of: gallery.publishers[0], slot: 0)
            room.run(1500)
            gallery.watchers[0].prefer(VideoPreference(width: 640, height: 360), of: gallery.publishers[0], slot: 0)
            room.run(1500)
        }
        try gallery.squeeze(0, to: nil)
        room.run(3000)
        let first = try #require(video.arrivals.first), last = try #require(video.arrivals.last)
        let played = Int64(last.timestamp &- first.timestamp) / 90
        #expect(abs(played - (last.at - first.at).milliseconds) < 100)
    }

    @Test("a video that is paused forgets what waits, and one that waited for too long is sent")
    func ends() throws {
        let gallery = try gallery(seed: 6)
        let peer = try #require(gallery.room.router.clients[gallery.watchers[0].key]?.receive)
        let (track, downlink) = (try #require(peer.outgoing("v0")), try #require(peer.downlink))
        func waitForWaiting() {
            for _ in 0..<10 where track.waiting == nil { gallery.room.run(10) }
        }
        askForKeyframes(gallery)
        waitForWaiting()
        let waiting = try #require(track.waiting)
        #expect(downlink.hasWaiting && waiting.last - waiting.next >= 10)
        #expect(!waiting.isOverdue(now: waiting.since + .milliseconds(400)))
        #expect(waiting.isOverdue(now: waiting.since + .milliseconds(401)))
        track.allow(0, 0)
        #expect(track.waiting == nil)
        gallery.room.run(2000)
        #expect(!downlink.hasWaiting)
    }

    @Test("nothing waits on a path without a limit")
    func unlimited() throws {
        let gallery = try SimulatedGallery(publishers: 1, watchers: 1)
        for source in gallery.publishers[0].send?.sources ?? [] { source.packetsInKeyframe = 40 }
        let peer = try #require(gallery.room.router.clients[gallery.watchers[0].key]?.receive)
        for _ in 0..<5 {
            askForKeyframes(gallery)
            for _ in 0..<50 {
                gallery.room.run(10)
                #expect(peer.downlink?.hasWaiting == false)
            }
        }
    }
}
