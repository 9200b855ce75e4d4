import RTC
import TestSupport
import Testing

@testable import SFU

/// A session in which several people publish their cameras in three layers, and others watch all of them.
final class SimulatedGallery {
    let room: SimulatedRoom
    private(set) var publishers: [SimulatedClient] = []
    private(set) var watchers: [SimulatedClient] = []

    /// Publisher number p labels the packets of its layers 10 * p (the largest) to 10 * p + 2.
    init(
        seed: UInt64 = 1, publishers count: Int = 3, watchers watching: Int = 2,
        weather: NetworkConditions = NetworkConditions(), longestFlush: Int? = nil
    ) throws {
        room = try SimulatedRoom(seed: seed, weather: weather, longestFlush: longestFlush)
        for _ in 0..<watching {
            let watcher = room.client()
            try watcher.watch(slots: count)
            watchers.append(watcher)
        }
        for _ in 0..<count {
            let publisher = room.client()
            try publisher.publish(video: nil)
            publishers.append(publisher)
        }
        try room.connect()
        for (index, publisher) in publishers.enumerated() {
            try publisher.addGalleryLayers(label: UInt32(10 * (index + 1)))
        }
        for watcher in watchers {
            for (slot, publisher) in publishers.enumerated() { watcher.subscribe(to: publisher, slot: slot) }
        }
    }

    /// Puts a watcher behind a slow link, or, with nil, ends that.
    func squeeze(
        _ watcher: Int, to bitsPerSecond: Int64?, queue: MediaInterval = .milliseconds(300), burst: Int = 0
    ) throws {
        let address = try #require(watchers[watcher].receive).address
        room.network.links[address] = bitsPerSecond.map {
            SimulatedLink(bitsPerSecond: $0, longestQueue: queue, burst: burst)
        }
    }

    func link(_ watcher: Int) throws -> SimulatedLink? {
        room.network.links[try #require(watchers[watcher].receive).address]
    }

    func forgetLongestWait(of watcher: Int) throws {
        room.network.links[try #require(watchers[watcher].receive).address]?.longestWait = .zero
    }

    /// The layers (0 for the largest) of a watcher's videos in the last milliseconds; nil for a video that stands still.
    func layers(of watcher: Int, last milliseconds: Int64) throws -> [UInt32?] {
        try publishers.indices.map { slot in
            let video = try watchers[watcher].video(slot)
            return video.arrivals.last {
                !$0.isRetransmission && room.network.now - $0.at < .milliseconds(milliseconds)
            }
            .map { $0.tag.label % 10 }
        }
    }

    /// The number of audio packets that a watcher received within 200 ms of the network's own delay.
    func timelyAudio(of watcher: Int) throws -> Int {
        try publishers.indices.reduce(0) { count, slot in
            let arrivals = try watchers[watcher].audio(slot).arrivals
            return count + arrivals.count { $0.at - $0.tag.captured < .milliseconds(220) }
        }
    }

    func receivedBytes(_ watcher: Int) -> Int { watchers[watcher].receive?.receivedBytes.values.reduce(0, +) ?? 0 }
}

extension SimulatedClient {
    /// Publishes a camera in three layers of about 780, 300 and 90 kbit/s, and makes its microphone send 50 packets a second
    /// with 60 kbit/s in all.
    func addGalleryLayers(label: UInt32) throws {
        microphone?.audioBytes = 90
        let layers = try addLayers([(640, 360), (320, 180), (160, 90)], label: label)
        let contents: [(ClosedRange<Int>, ClosedRange<Int>)] = [
            (5...6, 100...1000), (2...3, 100...800), (1...1, 100...600),
        ]
        for (layer, content) in zip(layers, contents) { (layer.packetsInPicture, layer.videoBytes) = content }
    }
}
