import RTC
import TestSupport
import Testing

@testable import SFU

/// What is reported to publishers of a video without layers: whether anybody watches it, and in which codec.
@Suite("Videos without layers")
struct UnwatchedVideoTests {
    private let vp8 = Codec(.vp8, payloadType: 96, rtxPayloadType: 97)
    private let vp9 = Codec(.vp9(profile: 0), payloadType: 98, rtxPayloadType: 99)
    private let high = Codec(.h264(profileLevelID: 0x640c1f, packetizationMode: 1), payloadType: 102)
    private let baseline = Codec(.h264(profileLevelID: 0x42e01f, packetizationMode: 1), payloadType: 104)

    // MARK: Whether anybody watches

    @Test("are not wanted two seconds after the last subscriber has left, and at once when one comes")
    func nobody() throws {
        let room = try SimulatedRoom()
        let (publisher, watcher) = (room.client(), room.client())
        try publisher.publish()
        try watcher.watch()
        try room.connect()
        let camera = try #require(publisher.camera)
        room.run(1500)
        #expect(publisher.wanted == [], "a subscriber may be on its way")
        room.run(1500)
        #expect(publisher.wanted.map(\.isVideoWanted) == [false] && publisher.wanted.map(\.rids) == [[]])
        for round in 1...3 {
            camera.isOn = false
            room.run(5000)
            #expect(publisher.wanted.last?.isVideoWanted == false)
            watcher.subscribe(to: publisher)
            let from = room.network.now
            let isReported = room.network.run(for: .seconds(1)) { publisher.wanted.last?.isVideoWanted == true }
            camera.askForKeyframe()
            camera.isOn = true
            let slot = try watcher.video()
            slot.forgetArrivals()
            let isSeen = room.network.run(for: .seconds(1)) { slot.frames.contains { $0.isKeyframe && $0.isComplete } }
            let time = (room.network.now - from).milliseconds
            #expect(isReported && isSeen && time < 200, "round \(round): \(time) ms")
            watcher.unsubscribe(from: publisher)
            room.run(2500)
        }
        #expect(publisher.wanted.count == 7)
    }

    @Test("that a person watches from the start need no message")
    func watched() throws {
        let room = try SimulatedRoom()
        let clients = try room.clients(2)
        clients[0].subscribe(to: clients[1])
        room.run(5000)
        #expect(clients[1].wanted == [])
    }

    @Test("are wanted in the next stream over the same transceivers, whatever was reported to the publisher before")
    func nextStream() throws {
        let room = try SimulatedRoom()
        let clients = try room.clients(2)
        room.run(3000)
        #expect(clients[1].wanted.map(\.isVideoWanted) == [false])
        room.router.unpublish(clients[1].stream)
        let next = Key(high: 3, low: 3)
        room.router.publish(
            next, session: "s", client: clients[1].key, mids: Mids(audio: "a", video: "v"), audio: true, video: true)
        room.router.subscribe(
            next, client: clients[0].key, mids: Mids(audio: "a0", video: "v0"), audio: true, video: true)
        room.run(100)
        #expect(room.server.wanted.filter { $0.stream == next }.map(\.isVideoWanted) == [true])
    }

    @Test("are wanted on the publisher's next connection if they were not wanted on the former one")
    func nextConnection() throws {
        let room = try SimulatedRoom()
        let (publisher, watcher) = (room.client(), room.client())
        try publisher.publish()
        try watcher.watch()
        try room.connect()
        room.run(3000)
        #expect(publisher.wanted.last?.isVideoWanted == false)
        try publisher.publish()
        watcher.subscribe(to: publisher)
        try room.connect()
        room.run(1000)
        #expect(publisher.wanted.last?.isVideoWanted == true)
    }

    @Test("that the publisher has turned off can begin at once again")
    func turnedOff() throws {
        let room = try SimulatedRoom()
        let clients = try room.clients(2)
        clients[0].subscribe(to: clients[1])
        room.run(500)
        room.router.update(clients[1].stream, audio: true, video: false)
        room.run(5000)
        room.router.update(clients[1].stream, audio: true, video: true)
        room.run(1000)
        #expect(clients[1].wanted == [])
    }

    @Test("that nobody can decode, in any codec, are not wanted")
    func undecodable() throws {
        let room = try SimulatedRoom()
        let (publisher, watcher) = (room.client(), room.client())
        try publisher.publish(video: vp9)
        try watcher.watch()
        try room.connect()
        watcher.subscribe(to: publisher)
        room.run(4000)
        #expect(publisher.wanted.map(\.isVideoWanted) == [false] && publisher.wanted.last?.payloadType == nil)
    }

    // MARK: Codecs

    @Test("are wanted in a codec that every subscriber decodes, until the publisher's own suits them again")
    func advice() throws {
        let room = try SimulatedRoom()
        let (publisher, able, unable) = (room.client(), room.client(), room.client())
        try publisher.publish(video: vp9, others: [.video: [vp8]])
        try able.watch(video: Codec(.vp9(profile: 0), payloadType: 120, rtxPayloadType: 121))
        try unable.watch()
        try room.connect()
        unable.subscribe(to: publisher)
        room.run(1000)
        #expect(
            publisher.wanted.last
                == LayersWanted(
                    stream: publisher.stream, session: "s", client: publisher.key, rids: [], isVideoWanted: true,
                    payloadType: 96))
        #expect(publisher.wanted.count == 1)
        try #require(publisher.camera).codec = vp8
        room.run(20_000)
        #expect(try unable.video().arrivals.count > 500 && unable.video().faults() == [])
        #expect(publisher.wanted.count == 1, "the advice lasts, or the publisher would return to its own codec")
        // Hiding the video for a moment changes nothing.
        unable.unsubscribe(from: publisher)
        room.run(1000)
        unable.subscribe(to: publisher)
        room.run(1000)
        #expect(publisher.wanted.count == 1)
        unable.unsubscribe(from: publisher)
        able.subscribe(to: publisher)
        room.run(4000)
        let news = publisher.wanted.dropFirst()
        #expect(news.map(\.payloadType) == [nil], "who is left decodes only the publisher's own codec")
        #expect(news.map(\.isVideoWanted) == [true])
    }

    @Test("in layers are wanted in another codec, too, in the layers that subscribers would get")
    func layered() throws {
        let call = try SimulatedLayers(watchers: 0)
        let watcher = call.room.client()
        let send = try #require(call.publisher.send)
        let index = try #require(send.offered.firstIndex { $0.mid == "v" })
        send.offered[index].codecs = [vp9, vp8]
        try send.negotiate()
        for layer in call.layers { layer.codec = vp9 }
        try watcher.watch()
        try call.room.connect()
        watcher.prefer(VideoPreference(width: 320, height: 180), of: call.publisher)
        call.room.run(1500)
        let wanted = try #require(call.publisher.wanted.last)
        #expect(wanted.payloadType == 96 && wanted.rids.contains("q") && wanted.isVideoWanted == nil, "\(wanted)")
        for layer in call.layers { (layer.codec, layer.isOn) = (vp8, wanted.rids.contains(layer.rid ?? "")) }
        call.room.run(2000)
        #expect(try watcher.video().arrivals.count > 30 && watcher.video().faults() == [])
    }

    /// Updates an advice. `decoders` says for each codec which of the subscribers decode it.
    private func update(
        _ advice: inout CodecAdvice, sent: Codec, _ decoders: [(Codec, Set<Int>)], at second: Int64 = 0
    ) -> UInt8? {
        advice.update(
            sent: sent.payloadType, of: decoders.map(\.0), now: MediaTime(nanoseconds: second * 1_000_000_000)
        ) { decoders[$0].1.count }
        return advice.payloadType
    }

    @Test("are wanted in a near relative of the publisher's codec if that suits as many")
    func relative() {
        var advice = CodecAdvice()
        #expect(update(&advice, sent: high, [(vp8, [1, 2]), (baseline, [1, 2]), (high, [1])]) == 104)
        advice = CodecAdvice()
        #expect(update(&advice, sent: high, [(vp8, [1, 2, 3]), (baseline, [1, 2]), (high, [1])]) == 96)
    }

    @Test("are wanted in the codec that most subscribers decode if none suits all")
    func most() {
        var advice = CodecAdvice()
        #expect(update(&advice, sent: vp9, [(vp8, [1, 2]), (baseline, [3]), (vp9, [3])]) == 96)
        #expect(update(&advice, sent: vp8, [(vp8, [1, 2]), (baseline, [3, 4, 5]), (vp9, [3])], at: 2) == 104)
        // One who decodes nothing that the others do does not take the video from them.
        advice = CodecAdvice()
        #expect(update(&advice, sent: vp8, [(vp8, [1, 2]), (baseline, [3]), (vp9, [])]) == nil)
    }

    @Test("are wanted in another codec until the publisher's own has suited as many for ten seconds")
    func ending() {
        var advice = CodecAdvice()
        let (bad, good): ([(Codec, Set<Int>)], [(Codec, Set<Int>)]) = (
            [(vp8, [1, 2]), (vp9, [1])], [(vp8, [1]), (vp9, [1])]
        )
        #expect(update(&advice, sent: vp9, bad) == 96)
        #expect(update(&advice, sent: vp8, good, at: 1) == 96 && advice.isEnding)
        #expect(update(&advice, sent: vp8, bad, at: 9) == 96 && !advice.isEnding)
        #expect(update(&advice, sent: vp8, good, at: 10) == 96)
        #expect(update(&advice, sent: vp8, good, at: 19) == 96)
        #expect(update(&advice, sent: vp8, good, at: 20) == nil)
        // The publisher takes a moment to return to its own codec.
        #expect(update(&advice, sent: vp8, [(vp8, []), (vp9, [1])], at: 21) == nil && advice.isEnding)
        #expect(update(&advice, sent: vp9, [(vp8, []), (vp9, [1])], at: 22) == nil && !advice.isEnding)
        // The publisher may offer other codecs at any time.
        #expect(update(&advice, sent: vp9, bad, at: 23) == 96)
        #expect(update(&advice, sent: vp8, [(vp8, [1, 2])], at: 24) == nil)
    }

    @Test("may be wanted in another codec than the publisher's new choice")
    func otherChoice() {
        var advice = CodecAdvice()
        #expect(update(&advice, sent: vp9, [(vp8, [1, 2]), (vp9, [1])]) == 96)
        #expect(update(&advice, sent: vp8, [(vp8, []), (vp9, [1])], at: 2) == nil)
        // It stays with VP8 although nobody asks for that any longer.
        #expect(update(&advice, sent: vp8, [(vp8, []), (vp9, [1])], at: 8) == 98 && !advice.isEnding)
    }

    @Test("are wanted in another codec at most every two seconds, whatever subscribers do")
    func flood() {
        var advice = CodecAdvice()
        var (changes, former) = (0, UInt8?.none)
        for tick in 0..<500 {
            let now = MediaTime(nanoseconds: Int64(tick) * 20_000_000)
            let codecs = [vp8, high]
            advice.update(sent: former ?? 102, of: codecs, now: now) { ($0 == 0) == (tick % 2 == 0) ? 1 : 0 }
            if advice.payloadType != former { changes += 1 }
            former = advice.payloadType
        }
        #expect((2...6).contains(changes), "\(changes) in 10 s")
    }
}
