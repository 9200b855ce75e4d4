import RTC
import TestSupport
import Testing

@testable import SFU

@Suite("Streams that are recorded")
struct RecordingTests {
    private let ring = RecordingRing()

    private static let request = RecordingRequest(audio: true, video: true, maxHeight: 1080, formats: [.vp8])

    private func record(_ client: SimulatedClient, in room: SimulatedRoom, _ request: RecordingRequest = request) {
        room.router.record(client.stream, as: 7, request, into: ring)
    }

    @Test("packets, reports and the end arrive in order, although nobody watches")
    func basics() throws {
        let room = try SimulatedRoom()
        let client = try room.clients(1)[0]
        room.run(1_000)
        #expect(room.router.counters.packetsRecorded == 0)
        record(client, in: room)
        room.run(5_000)
        room.unpublish(client)
        room.run(100)
        var items = RecordedItems()
        items.read(RecordingRingReader(ring))
        #expect(items.messages.first == .tracks(audio: true, video: true))
        #expect(items.messages.last == .ended)
        #expect(items.formats.contains(.source(.vp8, isNew: true)) && items.formats.contains(.source(nil, isNew: true)))
        #expect(items.messages.contains { if case .report(isVideo: true, _, _, _) = $0 { true } else { false } })
        #expect(items.audio.count > 240 && items.video.count > 250)
        let numbers = items.video.map(\.number)
        #expect(numbers == Array((numbers.first ?? 0)..<(numbers.first ?? 0) + Int64(numbers.count)))
        #expect(VP8Descriptor(try #require(items.video.first).payload)?.isKeyframeStart == true)
        #expect(room.router.counters.recordingPacketsDropped == 0)
    }

    @Test("only the publisher's event loop sends packets, and each loop sends its end")
    func loops() throws {
        let room = try SimulatedRoom(loops: 2)
        let clients = try room.clients(2)
        let rings = [RecordingRing(), RecordingRing()]
        for (server, ring) in zip(room.servers, rings) {
            server.router.record(clients[1].stream, as: 7, Self.request, into: ring)
        }
        room.run(2_000)
        for server in room.servers { server.router.stopRecording(clients[1].stream, 7) }
        room.run(100)
        var items = [RecordedItems(), RecordedItems()]
        for index in 0...1 { items[index].read(RecordingRingReader(rings[index])) }
        #expect(items[0].messages == [.ended] && items[0].video.isEmpty)
        #expect(items[1].messages.last == .ended && items[1].video.count > 80)
    }

    @Test("nothing is recorded while muted, and what follows starts with a keyframe and the same timestamps")
    func mute() throws {
        let room = try SimulatedRoom()
        let client = try room.clients(1)[0]
        record(client, in: room)
        room.run(2_000)
        let muted = room.server.network.now + .milliseconds(5)
        room.router.advance(to: muted)
        room.update(client, audio: false, video: false)
        room.run(200)
        let reader = RecordingRingReader(ring)
        var before = RecordedItems()
        before.read(reader)
        #expect(
            before.messages.suffix(2) == [
                .forwarded(isVideo: false, false, at: muted), .forwarded(isVideo: true, false, at: muted),
            ])
        room.run(2_000)
        let unmuted = room.server.network.now + .milliseconds(5)
        room.router.advance(to: unmuted)
        room.update(client, audio: true, video: true)
        room.run(1_000)
        var after = RecordedItems()
        after.read(reader)
        #expect(
            after.messages.prefix(2) == [
                .forwarded(isVideo: false, true, at: unmuted), .forwarded(isVideo: true, true, at: unmuted),
            ])
        #expect(after.formats.count == 2)
        #expect(after.formats.allSatisfy { $0 == .source(nil, isNew: false) || $0 == .source(.vp8, isNew: false) })
        #expect(VP8Descriptor(try #require(after.video.first).payload)?.isKeyframeStart == true)
        #expect(after.audio.count > 40)
    }

    @Test("the largest layer within the height is recorded, and the publisher is asked to send it")
    func layers() throws {
        let camera = try SimulatedLayers(watchers: 1)
        let ring = ring
        camera.room.router.record(
            camera.publisher.stream, as: 7,
            RecordingRequest(audio: true, video: true, maxHeight: 400, formats: [.vp8]), into: ring)
        camera.room.run(6_000)
        #expect(camera.wanted.last == ["h"])
        let reader = RecordingRingReader(ring)
        var items = RecordedItems()
        items.read(reader)
        camera.room.run(1_000)
        items = RecordedItems()
        items.read(reader)
        #expect(items.video.count > 30)
        camera.room.router.stopRecording(camera.publisher.stream, 7)
        camera.room.run(4_000)
        #expect(camera.wanted.last == [])
    }

    @Test("a stream that is not published has ended, and one that is recorded in a codec without support sends nothing")
    func unsupported() throws {
        let room = try SimulatedRoom()
        let client = try room.clients(1)[0]
        room.router.record(Key(high: 9, low: 9), as: 8, Self.request, into: ring)
        let request = RecordingRequest(audio: false, video: true, maxHeight: 1080, formats: [.h264])
        record(client, in: room, request)
        room.run(1_000)
        let reader = RecordingRingReader(ring)
        var messages: [RecordingMessage] = []
        while let item = reader.next() {
            guard case .message(let id, let message) = item else {
                Issue.record("a packet")
                continue
            }
            messages.append(message)
            #expect(id == (message == .ended ? 8 : 7))
        }
        #expect(messages.contains(.ended) && messages.contains(.tracks(audio: false, video: true)))
    }

    @Test("a stream of which nothing is recorded is announced, so that it does not seem to be missing")
    func nothingRecorded() throws {
        let room = try SimulatedRoom()
        let client = room.client()
        try client.publish(video: nil)
        try room.connect()
        record(client, in: room, RecordingRequest(audio: false, video: true, maxHeight: 1080, formats: [.vp8]))
        room.run(1_000)
        var items = RecordedItems()
        items.read(RecordingRingReader(ring))
        #expect(items.messages == [.tracks(audio: false, video: false)] && items.audio.isEmpty)
    }

    @Test("a publisher that connects again continues in the same recording as another source")
    func reconnect() throws {
        let room = try SimulatedRoom()
        let client = try room.clients(1)[0]
        record(client, in: room)
        room.run(2_000)
        try client.publish()
        try room.connect()
        room.run(2_000)
        var items = RecordedItems()
        items.read(RecordingRingReader(ring))
        #expect(items.formats.count(where: { $0 == .source(.vp8, isNew: true) }) == 2)
        #expect(!items.messages.contains(.ended))
    }

    @Test("packets are dropped and counted if the recorder does not read, and clients get all of theirs")
    func full() throws {
        let small = PipeRing(capacity: 1 << 16)
        let writer = PipeRingWriter(small)
        let bytes: [UInt8] = [0x80, 96] + [UInt8](repeating: 0, count: 998)
        var written = 0
        try bytes.withUnsafeBytes { bytes in
            let packet = try #require(RTPPacket(bytes))
            let feed = FeedPacket(bytes: bytes, packet: packet, sequence: 1, codec: 0, startsKeyframe: false)
            while writer.write(feed, track: 1, feed: 0, arrivedAt: MediaTime(nanoseconds: 0)) { written += 1 }
        }
        #expect((40...60).contains(written))
        // Reports are dropped too, but not other messages.
        let report = RecordingMessage.report(
            isVideo: true, ntp: NTPTime(0), timestamp: 0, arrivedAt: MediaTime(nanoseconds: 0))
        // They use the space that is too small for a packet, but not the space for other messages.
        for _ in 0..<1_000 { writer.writeIfRoom(.recorded(1, report)) }
        writer.write(.recorded(1, .ended))
        #expect(writer.commit())
        let reader = PipeRingReader(small)
        var messages: [RecordingMessage] = []
        while let item = reader.next() {
            if case .message(.recorded(_, let message)) = item { messages.append(message) }
        }
        reader.release()
        #expect(messages.last == .ended && messages.count < 100)
    }
}
