import RTC
import SFU
import TestSupport
import Testing

/// The scripts that `TraceTests` records. They use only the public interface of `Router`.
enum TraceScenario: CaseIterable {
    case losses, simulcast, squeezed, flushes, voices, codecs, paths, capacity, mixture

    func record(keepsPackets: Bool) throws -> (lines: [String], packets: [String]) {
        let room = try RecordedRoom(
            seed: seed, interval: .milliseconds(self == .losses || self == .simulcast ? 500 : 1000),
            keepsPackets: keepsPackets, adjust: adjust)
        switch self {
        case .losses: try losses(room)
        case .simulcast: try simulcast(room)
        case .squeezed: try squeezed(room)
        case .flushes: try flushes(room)
        case .voices: try voices(room)
        case .codecs: try codecs(room)
        case .paths: try paths(room)
        case .capacity: try capacity(room)
        case .mixture: try mixture(room)
        }
        return (room.finish(), room.recorder.packets)
    }

    private var seed: UInt64 { 100 + UInt64(Self.allCases.firstIndex(of: self) ?? 0) }

    private func adjust(_ settings: inout RouterSettings) {
        switch self {
        case .flushes: settings.longestFlush = 10
        case .voices: settings.loudestStreams = 2
        case .capacity: (settings.sessionBitrate, settings.totalBitrate) = (1_500_000, 2_500_000)
        default: break
        }
    }
}

// MARK: Losses

extension TraceScenario {
    /// Audio and VP8 with temporal layers for three subscribers, and losses on both sides.
    private func losses(_ room: RecordedRoom) throws {
        let (publisher, watchers) = try call(room, watchers: 3)
        let (camera, microphone) = (try #require(publisher.camera), try #require(publisher.microphone))
        camera.temporalPattern = SimulatedSource.threeLayers
        // The numbers wrap after about a second.
        (camera.sequence, microphone.sequence) = (65_480, 65_500)
        for watcher in watchers { watcher.subscribe(to: publisher) }
        room.run(1500)
        room.note("losses")
        room.lose(30, from: publisher.send)
        for (watcher, losses) in zip(watchers, [0, 20, 100]) { room.lose(losses, to: watcher.receive) }
        room.run(3000)
        room.note("different delays")
        room.network.weather = NetworkConditions(duplicates: 20, delay: 5...25)
        room.run(2000)
        room.network.weather = NetworkConditions()
        for watcher in watchers { room.lose(0, to: watcher.receive) }
        try complain(room, watchers)
        room.note("a lower frame rate")
        watchers[1].prefer(VideoPreference(frameRate: 8), of: publisher)
        room.run(1500)
        watchers[1].prefer(VideoPreference(), of: publisher)
        room.run(1000)
        room.note("an outage")
        room.lose(1000, from: publisher.send)
        room.run(400)
        room.lose(200, from: publisher.send)
        room.run(4000)
        room.lose(0, from: publisher.send)
        room.run(3000)
    }

    /// Requests of keyframes, and of packets that are stored, were never sent, or are too old.
    private func complain(_ room: RecordedRoom, _ watchers: [SimulatedClient]) throws {
        let videos = try watchers.map { try $0.video() }
        room.note("PLI")
        watchers[0].receive?.sendControl { RTCP.writePLI(sender: 1, media: videos[0].ssrc, to: &$0) }
        room.run(300)
        room.note("FIR")
        watchers[1].receive?.sendControl {
            RTCP.writeFIR(sender: 1, entries: [.init(ssrc: videos[1].ssrc, sequenceNumber: 1)], to: &$0)
        }
        room.run(700)
        let last = UInt16(truncatingIfNeeded: try #require(videos[2].inOrder.last).number)
        for (name, first) in [("recent", last &- 20), ("future", last &+ 2000), ("old", last &- 1000)] {
            room.note("NACK of \(name) packets")
            watchers[2].receive?.sendControl {
                RTCP.writeNACK(sender: 1, media: videos[2].ssrc, lost: (0..<10).map { first &+ $0 }, to: &$0)
            }
            room.run(200)
        }
    }

    /// Creates a publisher of audio and video, and connects it and its subscribers.
    func call(_ room: RecordedRoom, watchers: Int) throws -> (SimulatedClient, [SimulatedClient]) {
        let publisher = room.client()
        try publisher.publish()
        publisher.camera?.size = PictureSize(width: 640, height: 360)
        let watchers = (0..<watchers).map { _ in room.client() }
        for watcher in watchers { try watcher.watch(slots: 1) }
        try room.room.connect()
        return (publisher, watchers)
    }
}

// MARK: Simulcast

extension TraceScenario {
    /// Layers that are selected by size, switched, silent, and lost.
    private func simulcast(_ room: RecordedRoom) throws {
        let publisher = room.client()
        try publisher.publish(video: nil)
        let watchers = (0..<3).map { _ in room.client() }
        for watcher in watchers { try watcher.watch(slots: 1) }
        try room.room.connect()
        let layers = try publisher.addLayers([(1280, 720), (640, 360), (320, 180)], label: 10)
        layers[1].temporalPattern = SimulatedSource.threeLayers
        layers[2].frameInterval = .milliseconds(66)
        func prefer(_ index: Int, _ width: Int?, _ frameRate: Int? = nil) {
            room.note("watcher \(index) prefers \(width ?? 0) \(frameRate ?? 0)")
            watchers[index].prefer(VideoPreference(width: width, frameRate: frameRate), of: publisher)
        }
        for (index, width) in [1280, 640, 320].enumerated() { prefer(index, width) }
        room.run(2000)
        for (index, width, frameRate) in [(0, 320, nil), (1, 1280, nil), (0, 640, 10), (2, nil, 12), (0, 640, nil)] {
            prefer(index, width, frameRate)
            room.run(600)
        }
        for (index, layer) in layers.enumerated().reversed() {
            room.note("layer \(index) is silent")
            layer.isOn = false
            room.run(1500)
        }
        for layer in layers { layer.isOn = true }
        room.note("all layers, with losses")
        room.lose(30, from: publisher.send)
        for watcher in watchers { room.lose(30, to: watcher.receive) }
        for width in [320, 1280, 640] {
            prefer(0, width)
            room.run(700)
        }
        room.note("unsubscribed")
        for watcher in watchers { watcher.unsubscribe(from: publisher) }
        room.run(2500)
        prefer(2, 640)
        room.run(1000)
        try restart(room, publisher)
    }

    /// The publisher makes a new connection, with two layers in another order.
    private func restart(_ room: RecordedRoom, _ publisher: SimulatedClient) throws {
        room.note("a new connection")
        try publisher.publish(video: nil)
        try room.room.connect()
        try publisher.addLayers([(320, 180), (640, 360)], rids: ["l", "m"], label: 20)
        room.run(2000)
    }
}
