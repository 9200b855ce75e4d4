import RTC
import TestSupport
import Testing

@testable import SFU

/// A publisher that sends its camera in several simulcast layers, and its subscribers.
final class SimulatedLayers {
    let room: SimulatedRoom
    let publisher: SimulatedClient
    let watchers: [SimulatedClient]
    /// The layers, in the order of the description.
    let layers: [SimulatedSource]

    /// The packets of a layer are labeled with 10 plus its index.
    init(
        seed: UInt64 = 1, weather: NetworkConditions = NetworkConditions(), watchers count: Int = 1,
        sizes: [(UInt16, UInt16)?] = [(1280, 720), (640, 360), (320, 180)], rids: [String] = ["f", "h", "q", "x"],
        loops: Int = 1, nodes: Int = 1
    ) throws {
        room = try SimulatedRoom(seed: seed, weather: weather, loops: loops, nodes: nodes)
        publisher = room.client()
        watchers = (0..<count).map { [room] _ in room.client() }
        try publisher.publish(video: nil)
        for watcher in watchers { try watcher.watch() }
        try room.connect()
        layers = try publisher.addLayers(sizes, rids: rids, label: 10)
    }

    /// The router's state of the camera.
    func track() throws -> IncomingTrack { try #require(room.router.publisher(publisher.key)?.track("v")) }

    func slot(_ index: Int = 0) throws -> SimulatedSlot { try watchers[index].video() }

    func prefer(_ index: Int = 0, _ width: Int? = nil, _ height: Int? = nil, frameRate: Int? = nil) {
        watchers[index].prefer(VideoPreference(width: width, height: height, frameRate: frameRate), of: publisher)
    }

    /// The announcements of needed layers to the publisher, in order.
    var wanted: [[String]] { publisher.wanted.map(\.rids) }
}

extension SimulatedClient {
    /// Adds a camera in several simulcast layers to the connection that sends, and publishes it. The packets of the first
    /// layer are labeled with `label`, those of the second with the next number, and so on.
    @discardableResult
    func addLayers(
        _ sizes: [(UInt16, UInt16)?], rids: [String] = ["f", "h", "q", "x"], label: UInt32
    ) throws -> [SimulatedSource] {
        let send = try #require(send)
        let codec = Codec(.vp8, payloadType: 96, rtxPayloadType: 97)
        let layers = sizes.enumerated().map { index, size in
            let layer = SimulatedSource(
                mid: "v", kind: .video, label: label + UInt32(index), codec: codec, random: &room.random
            )
            layer.rid = rids[index]
            layer.size = size.map { PictureSize(width: $0, height: $1) }
            send.add(layer)
            return layer
        }
        var section = send.section(layers[0], send.offered[0].extensions)
        section.rids = layers.compactMap(\.rid)
        send.offered.append(section)
        try send.negotiate()
        room.publish(self, Mids(audio: "a", video: "v"))
        return layers
    }

    /// What was reported to the client about the need for its video, in order.
    var wanted: [LayersWanted] { room.server.wanted.filter { $0.stream == stream && $0.client == key } }
}

extension RouterEvent {
    /// The start or the end of a pause of a video without layers.
    static func paused(
        _ publisher: SimulatedClient, for watcher: SimulatedClient, _ isPaused: Bool, _ reason: SubscriptionReason
    ) -> RouterEvent {
        .subscriptionChanged(
            SubscriptionChange(
                stream: publisher.stream, session: "s", client: watcher.key, isPaused: isPaused, reason: reason,
                isLimited: reason == .slow ? isPaused : nil))
    }
}

extension SimulatedSlot {
    /// The longest freeze of the video in milliseconds.
    var longestGap: Int64 {
        let times = inOrder.filter { !$0.isRetransmission }.map(\.at)
        return zip(times, times.dropFirst()).map { ($1 - $0).milliseconds }.max() ?? 0
    }

    /// The pictures that refer to a picture that was not received.
    var orphans: [String] {
        let seen = Set(arrivals.map { [$0.tag.label, $0.tag.frame] })
        return arrivals.filter { arrival in
            arrival.temporalLayer == 2 && !arrival.isLayerSync
                && !seen.contains([arrival.tag.label, arrival.tag.frame &- 1])
        }.map { "\($0.tag.label)/\($0.tag.frame)" }
    }
}
