import RTC
import TestSupport
import Testing

@testable import SFU

/// The recorder is on the first node, and reads a publisher of the second one.
@Suite("Recordings of publishers on other nodes")
struct RelayRecordingTests {
    private let ring = RecordingRing()

    private func record(
        _ client: SimulatedClient, in room: SimulatedRoom, as id: UInt32 = 7, audio: Bool = true, video: Bool = true
    ) {
        let request = RecordingRequest(audio: audio, video: video, maxHeight: 1080, formats: [.vp8])
        room.router.record(client.stream, as: id, request, into: ring)
    }

    /// The number of packets that the publisher's node sends over the relay while this time passes.
    private func relayed(in room: SimulatedRoom, during milliseconds: Int64) -> UInt64 {
        let before = room.servers[1].router.counters.packetsRelayed
        room.run(milliseconds)
        return room.servers[1].router.counters.packetsRelayed - before
    }

    @Test("audio, video, reports and the end arrive, although nobody watches")
    func basics() throws {
        let room = try SimulatedRoom(nodes: 2)
        let client = try room.clients(2)[1]
        room.run(1000)
        record(client, in: room)
        room.run(5000)
        room.unpublish(client)
        room.run(100)
        var items = RecordedItems()
        items.read(RecordingRingReader(ring))
        #expect(items.messages.first == .tracks(audio: true, video: true))
        #expect(items.messages.count(where: { $0 == .ended }) == 1 && items.messages.last == .ended)
        #expect(items.formats.contains(.source(.vp8, isNew: true)) && items.formats.contains(.source(nil, isNew: true)))
        #expect(items.audio.count > 230 && items.video.count > 200)
        for packets in [items.audio, items.video] {
            let numbers = packets.map(\.number)
            #expect(numbers == Array((numbers.first ?? 0)..<(numbers.first ?? 0) + Int64(numbers.count)))
        }
        #expect(VP8Descriptor(try #require(items.video.first).payload)?.isKeyframeStart == true)
    }

    @Test("a stream that is recorded before its tracks are known is recorded as soon as they are")
    func early() throws {
        let room = try SimulatedRoom(nodes: 2)
        _ = try room.clients(1)
        let client = room.client()
        room.publish(client, Mids(audio: "a", video: "v"))
        record(client, in: room)
        try client.publish()
        try room.connect()
        room.run(2000)
        var items = RecordedItems()
        items.read(RecordingRingReader(ring))
        #expect(items.messages.first == .tracks(audio: true, video: true) && !items.messages.contains(.ended))
        #expect(items.audio.count > 50 && items.video.count > 50)
    }

    @Test("media crosses only while it is recorded")
    func demand() throws {
        let room = try SimulatedRoom(nodes: 2)
        let client = try room.clients(2)[1]
        #expect(relayed(in: room, during: 1000) == 0)
        record(client, in: room)
        #expect(relayed(in: room, during: 2000) > 150)
        room.router.stopRecording(client.stream, 7)
        room.run(1000)
        #expect(relayed(in: room, during: 1000) == 0)
    }

    @Test("after a recording, the node of the session still hears the publisher")
    func speakers() throws {
        let room = try SimulatedRoom(nodes: 2)
        room.home = room.server
        let client = try room.clients(2)[1]
        room.run(1000)
        record(client, in: room)
        #expect(relayed(in: room, during: 2000) > 150)
        room.router.stopRecording(client.stream, 7)
        room.run(1000)
        #expect((190...210).contains(relayed(in: room, during: 4000)))
    }

    @Test("an archive and a broadcast of one stream cross once, and the one that is left continues")
    func several() throws {
        let room = try SimulatedRoom(nodes: 2)
        let client = try room.clients(2)[1]
        room.run(1000)
        for id in [7, 8] as [UInt32] { record(client, in: room, as: id, video: false) }
        room.run(1000)
        #expect((90...110).contains(relayed(in: room, during: 2000)))
        room.router.stopRecording(client.stream, 7)
        room.run(1000)
        let reader = RecordingRingReader(ring)
        var items = RecordedItems()
        items.read(reader, of: 8)
        room.run(1000)
        items = RecordedItems()
        items.read(reader, of: 8)
        #expect(!items.messages.contains(.ended) && (45...55).contains(items.audio.count))
    }

    @Test("the publisher sends the largest layer within the height, and none when the recording has stopped")
    func layers() throws {
        let camera = try SimulatedLayers(watchers: 1, nodes: 2)
        let router = camera.room.servers[1].router
        let request = RecordingRequest(audio: true, video: true, maxHeight: 400, formats: [.vp8])
        router.record(camera.publisher.stream, as: 7, request, into: ring)
        camera.room.run(6000)
        #expect(camera.wanted.last == ["h"])
        let reader = RecordingRingReader(ring)
        var items = RecordedItems()
        items.read(reader)
        camera.room.run(1000)
        items = RecordedItems()
        items.read(reader)
        #expect(items.video.count > 30)
        router.stopRecording(camera.publisher.stream, 7)
        camera.room.run(5000)
        #expect(camera.wanted.last == [])
    }

    @Test("a keyframe that the recorder requests comes from the publisher")
    func keyframes() throws {
        let room = try SimulatedRoom(nodes: 2)
        let client = try room.clients(2)[1]
        let camera = try #require(client.camera)
        room.run(1000)
        record(client, in: room)
        room.run(2000)
        let made = camera.keyframesMade
        room.router.requestKeyframe(of: client.stream, for: 7)
        room.run(200)
        #expect(camera.keyframesMade == made + 1)
    }

    @Test("nothing crosses while muted, and what follows starts with a keyframe")
    func mute() throws {
        let room = try SimulatedRoom(nodes: 2)
        let client = try room.clients(2)[1]
        record(client, in: room)
        room.run(3000)
        room.update(client, audio: false, video: false)
        room.run(1000)
        #expect(relayed(in: room, during: 1000) == 0)
        let reader = RecordingRingReader(ring)
        var before = RecordedItems()
        before.read(reader)
        room.update(client, audio: true, video: true)
        room.run(1500)
        var after = RecordedItems()
        after.read(reader)
        func isForwarded(_ message: RecordingMessage) -> Bool? {
            if case .forwarded(_, let isOn, _) = message { isOn } else { nil }
        }
        #expect(before.messages.compactMap(isForwarded) == [false, false])
        #expect(after.messages.compactMap(isForwarded) == [true, true] && !after.messages.contains(.ended))
        #expect(VP8Descriptor(try #require(after.video.first).payload)?.isKeyframeStart == true)
        #expect(after.audio.count > 40 && after.video.count > 40)
    }

    @Test("losses on the relay are repaired", arguments: 1...3 as ClosedRange<UInt64>)
    func losses(seed: UInt64) throws {
        let room = try SimulatedRoom(seed: seed, nodes: 2)
        let client = try room.clients(2)[1]
        record(client, in: room)
        room.run(2000)
        let reader = RecordingRingReader(ring)
        var items = RecordedItems()
        items.read(reader)
        let nodes = Set(room.servers.map(\.address))
        var random = SeededGenerator(seed: seed)
        room.network.filter = { _, from, to in
            !(nodes.contains(from) && nodes.contains(to) && Int.random(in: 0..<100, using: &random) < 5)
        }
        room.run(6000)
        room.network.filter = nil
        room.run(1000)
        items = RecordedItems()
        items.read(reader)
        let numbers = Set(items.video.map(\.number))
        let first = try #require(numbers.min())
        let last = try #require(numbers.max())
        // A keyframe makes what was lost before it obsolete.
        #expect(numbers.count > 250 && Int64(numbers.count) * 100 >= (last - first + 1) * 98, "seed \(seed)")
        #expect(room.servers[1].router.counters.packetsRetransmitted > 5, "seed \(seed)")
    }

    @Test("a recording continues as another source after the relay was away, and ends when the publisher has left")
    func outage() throws {
        let room = try SimulatedRoom(nodes: 2)
        let client = try room.clients(2)[1]
        record(client, in: room)
        room.run(2000)
        let nodes = Set(room.servers.map(\.address))
        room.network.filter = { _, from, to in !(nodes.contains(from) && nodes.contains(to)) }
        room.run(8000)
        let reader = RecordingRingReader(ring)
        var before = RecordedItems()
        before.read(reader)
        #expect(!before.messages.contains(.ended) && !before.video.isEmpty)
        room.network.filter = nil
        room.run(5000)
        var after = RecordedItems()
        after.read(reader)
        #expect(after.formats.contains(.source(.vp8, isNew: true)) && after.formats.contains(.source(nil, isNew: true)))
        #expect(after.audio.count > 40 && after.video.count > 40 && !after.messages.contains(.ended))
        // As when the node dies: its clients leave, and its relays close.
        room.router.leave(client.key)
        room.router.closeRelay(room.relay(to: 1), now: room.network.now)
        room.run(500)
        var end = RecordedItems()
        end.read(reader)
        #expect(end.messages.count(where: { $0 == .ended }) == 1 && end.messages.last == .ended)
    }

    @Test("a report that crosses later than the publisher has sent it is as accurate as the others")
    func reports() throws {
        let room = try SimulatedRoom(nodes: 2)
        let client = try room.clients(2)[1]
        room.run(1000)
        // Clients report once a second. Each of these recordings begins another time after that.
        for _ in 0..<4 {
            record(client, in: room)
            room.run(1500)
            room.router.stopRecording(client.stream, 7)
            room.run(1300)
        }
        var reports: [(isVideo: Bool, ntp: NTPTime, timestamp: UInt32, arrivedAt: MediaTime)] = []
        let reader = RecordingRingReader(ring)
        while let item = reader.next() {
            if case .message(_, .report(let isVideo, let ntp, let timestamp, let arrivedAt)) = item {
                reports.append((isVideo, ntp, timestamp, arrivedAt))
            }
        }
        for isVideo in [false, true] {
            let own = reports.filter { $0.isVideo == isVideo }
            let first = try #require(own.first)
            #expect(own.count >= 6)
            for report in own {
                let sent = report.ntp - first.ntp
                let late = (report.arrivedAt - first.arrivedAt) - sent
                #expect((-10...10).contains(late.milliseconds))
                let ticks = Int64(Int32(bitPattern: report.timestamp &- first.timestamp))
                let media = MediaInterval(nanoseconds: ticks * 1_000_000 / (isVideo ? 90 : 48))
                #expect((-2...2).contains((media - sent).milliseconds))
            }
        }
    }
}
