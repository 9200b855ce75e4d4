import RTC
import SFU
import TestSupport
import Testing

// MARK: Congestion

extension TraceScenario {
    /// A subscriber behind a link that gets slower and recovers, one that estimates the bitrate itself, and one that
    /// numbers only video, as Firefox does.
    func squeezed(_ room: RecordedRoom) throws {
        let publishers = [room.client(), room.client()]
        for publisher in publishers { try publisher.publish(video: nil) }
        let watchers = (0..<3).map { _ in room.client() }
        try watchers[0].watch()
        var video = Codec(.vp8, payloadType: 120, rtxPayloadType: 121)
        var audio = Codec(.opus, payloadType: 109)
        (video.transportCC, audio.transportCC) = (false, false)
        try watchers[1].watch(audio: audio, video: video)
        try watchers[2].watch(numbersAudio: false)
        try room.room.connect()
        for (slot, publisher) in publishers.enumerated() {
            try publisher.addGalleryLayers(label: UInt32(10 * slot + 10))
            publisher.send?.sources[1].temporalPattern = SimulatedSource.threeLayers
            for watcher in watchers { watcher.subscribe(to: publisher, slot: slot) }
        }
        watchers[0].prefer(VideoPreference(width: 640, priority: 1), of: publishers[1], slot: 1)
        run(room, 5)
        for (bitsPerSecond, seconds) in [(900_000, 4), (500_000, 5), (150_000, 4)] as [(Int64, Int)] {
            room.note("squeezed to \(bitsPerSecond)")
            try room.squeeze(watchers[0], to: bitsPerSecond, queue: .milliseconds(500))
            run(room, seconds)
            askForKeyframes(room, publishers, packets: 40)
            run(room, 2)
        }
        room.note("relieved")
        try room.squeeze(watchers[0], to: nil)
        run(room, 8)
        try estimate(room, watchers[1], publishers)
    }

    private func run(_ room: RecordedRoom, _ seconds: Int) {
        for second in 1...seconds {
            room.run(1000)
            if second == seconds || second % 2 == 0 { room.noteEstimates() }
        }
    }

    private func askForKeyframes(_ room: RecordedRoom, _ publishers: [SimulatedClient], packets: Int) {
        room.note("keyframes of \(packets) packets")
        for source in publishers.flatMap({ $0.send?.sources ?? [] }) where source.kind == .video {
            source.packetsInKeyframe = packets
            source.askForKeyframe()
        }
    }

    /// The receiver states the bitrate itself, and then states none for longer than the router remembers it.
    private func estimate(
        _ room: RecordedRoom, _ watcher: SimulatedClient, _ publishers: [SimulatedClient]
    ) throws {
        let ssrc = try watcher.video().ssrc
        for bitrate in [600_000, 50_000, 3_000_000, 400_000] as [UInt64] {
            room.note("REMB of \(bitrate)")
            watcher.receive?.sendControl { RTCP.writeREMB(sender: 1, bitrate: bitrate, sources: [ssrc], to: &$0) }
            room.run(500)
            askForKeyframes(room, publishers, packets: 20)
            run(room, 2)
        }
        run(room, 4)
    }

    /// The bandwidth limits of the sessions and of the server.
    func capacity(_ room: RecordedRoom) throws {
        let publishers = [room.client(in: "s"), room.client(in: "t")]
        for publisher in publishers { try publisher.publish(video: nil) }
        let watchers = (0..<2).map { _ in room.client() }
        for watcher in watchers { try watcher.watch() }
        try room.room.connect()
        for (slot, publisher) in publishers.enumerated() {
            try publisher.addGalleryLayers(label: UInt32(10 * slot + 10))
        }
        for (publisher, watcher) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
            room.note("\(watcher) subscribes to \(publisher)")
            watchers[watcher].subscribe(to: publishers[publisher], slot: publisher)
            room.run(2500)
        }
        room.note("unsubscribed")
        for watcher in watchers { watcher.unsubscribe(from: publishers[0]) }
        room.run(4000)
    }
}

// MARK: Flushes

extension TraceScenario {
    /// Keyframes for many subscribers in flushes of a few packets, while subscribers come and go.
    func flushes(_ room: RecordedRoom) throws {
        var (publisher, watchers) = try call(room, watchers: 10)
        for watcher in watchers { watcher.subscribe(to: publisher) }
        room.run(1000)
        for round in 0..<60 {
            let watcher = watchers[Int.random(in: watchers.indices, using: &room.random)]
            switch Int.random(in: 0..<12, using: &room.random) {
            case 0..<4: watcher.subscribe(to: publisher)
            case 4..<7: watcher.unsubscribe(from: publisher)
            case 7: watcher.prefer(VideoPreference(frameRate: 8), of: publisher)
            case 8: watcher.subscribe(to: publisher, audio: false)
            case 9: askForKeyframes(room, [publisher], packets: 30)
            case 10: room.lose([0, 50][round % 2], to: watcher.receive)
            default: try replace(&watchers, room, publisher)
            }
            room.run(Int64.random(in: 1...30, using: &room.random))
        }
        room.note("the publisher renegotiates in the middle of a keyframe")
        for watcher in watchers { watcher.subscribe(to: publisher) }
        room.run(500)
        askForKeyframes(room, [publisher], packets: 40)
        room.run(46)
        try publisher.send?.negotiate()
        room.run(500)
        room.note("the publisher leaves in the middle of a keyframe")
        askForKeyframes(room, [publisher], packets: 40)
        room.run(46)
        room.router.leave(publisher.key)
        room.run(500)
    }

    /// One subscriber leaves, and another one joins.
    private func replace(
        _ watchers: inout [SimulatedClient], _ room: RecordedRoom, _ publisher: SimulatedClient
    ) throws {
        let index = Int.random(in: watchers.indices, using: &room.random)
        room.note("\(watchers[index].number) is replaced")
        room.router.leave(watchers[index].key)
        watchers[index].receive?.vanish()
        watchers[index] = room.client()
        try watchers[index].watch(slots: 1)
        watchers[index].subscribe(to: publisher)
    }
}

// MARK: Audio

extension TraceScenario {
    /// Redundant audio for subscribers with and without it, with losses, and more speakers than are forwarded.
    func voices(_ room: RecordedRoom) throws {
        let (opus, red) = (Codec(.opus, payloadType: 111), Codec(.red, payloadType: 63, fmtp: "111/111"))
        let watchers = [room.client(), room.client()]
        try watchers[0].watch(slots: 4)
        try watchers[1].watch(slots: 4, audio: opus, others: [red])
        var speakers: [SimulatedClient] = []
        // The loudness of two speakers is never the same, because the choice between them would be arbitrary.
        for (index, level) in [30, 45, 60, 75].enumerated() {
            let speaker = room.client()
            speakers.append(speaker)
            try speaker.publish(audio: index < 3 ? red : opus, video: nil, others: index < 3 ? [.audio: [opus]] : [:])
            let microphone = try #require(speaker.microphone)
            (microphone.isRedundant, microphone.distance) = (index < 3, index == 1 ? 2 : 1)
            microphone.level = UInt8(level)
            try room.room.connect()
            for watcher in watchers { watcher.subscribe(to: speaker, slot: index) }
            room.run(700)
        }
        for (index, level) in [(3, 20), (0, 100), (1, 25), (3, 90), (0, 15)] {
            room.note("speaker \(index) has level \(level)")
            speakers[index].microphone?.level = UInt8(level)
            room.run(1100)
        }
        room.note("losses")
        for speaker in speakers { room.lose(100, from: speaker.send) }
        room.run(3000)
        for speaker in speakers { room.lose(0, from: speaker.send) }
        room.note("different delays")
        room.network.weather = NetworkConditions(delay: 10...60)
        room.run(2000)
        room.network.weather = NetworkConditions()
        muteAndMove(room, speakers, watchers[0])
    }

    private func muteAndMove(_ room: RecordedRoom, _ speakers: [SimulatedClient], _ watcher: SimulatedClient) {
        room.note("muted")
        room.router.update(speakers[0].stream, audio: false, video: false)
        room.run(2500)
        room.router.update(speakers[0].stream, audio: true, video: false)
        room.run(1500)
        room.note("unpublished")
        room.router.unpublish(speakers[1].stream)
        room.run(1500)
        room.note("published in another session")
        room.router.publish(
            speakers[1].stream, session: "t", client: speakers[1].key, mids: Mids(audio: "a"), audio: true,
            video: false)
        watcher.subscribe(to: speakers[1], slot: 1)
        room.run(2000)
    }
}

// MARK: Codecs

extension TraceScenario {
    /// A publisher that changes between H.264 and VP8, and subscribers that decode one or both.
    func codecs(_ room: RecordedRoom) throws {
        let vp8 = Codec(.vp8, payloadType: 96, rtxPayloadType: 97)
        let h264 = Codec(
            .h264(profileLevelID: 0x42e01f, packetizationMode: 1), payloadType: 102, rtxPayloadType: 103,
            fmtp: "profile-level-id=42e01f;packetization-mode=1")
        var other = h264
        (other.payloadType, other.rtxPayloadType) = (125, 126)
        let (publisher, both, old, new) = (room.client(), room.client(), room.client(), room.client())
        try publisher.publish(video: h264, others: [.video: [vp8]])
        try both.watch(slots: 1, otherVideos: [other])
        try old.watch(slots: 1)
        try new.watch(slots: 1, video: other)
        try room.room.connect()
        let camera = try #require(publisher.camera)
        for watcher in [both, old, new] { room.lose(20, to: watcher.receive) }
        both.subscribe(to: publisher)
        room.run(1000)
        room.note("one who decodes only VP8")
        old.subscribe(to: publisher)
        room.run(1500)
        for (codec, watcher) in [(vp8, new), (h264, new), (vp8, old)] {
            room.note("codec \(codec.payloadType)")
            camera.codec = codec
            camera.askForKeyframe()
            room.run(1500)
            room.note("\(watcher.number) comes or goes")
            watcher === old ? old.unsubscribe(from: publisher) : new.subscribe(to: publisher)
            room.run(3500)
        }
        room.note("only VP8 is offered")
        let send = try #require(publisher.send)
        let index = try #require(send.offered.firstIndex { $0.kind == .video })
        send.offered[index].codecs = [vp8]
        try send.negotiate()
        room.run(1500)
    }
}
