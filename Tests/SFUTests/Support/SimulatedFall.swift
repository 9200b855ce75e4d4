import RTC
import TestSupport
import Testing

@testable import SFU

/// What a subscriber hears and sees when its link suddenly becomes slow, and when that ends. The subscriber shows the last
/// of several cameras large and the others small, each published in three simulcast layers.
struct SimulatedFall {
    /// The share of the audio that the jitter buffers concealed while the link was slow.
    private(set) var concealed = 0.0
    /// The longest queue in the first two seconds, and after that.
    private(set) var (longestQueue, laterQueue) = (Int64(0), Int64(0))
    /// The queue two seconds after the link became slow.
    private(set) var queueAfterTwoSeconds: Int64 = 0
    /// How long it took until a smaller layer of the large video arrived; nil if none did.
    private(set) var smallerLayer: Int64?
    /// The longest time without a packet of the large video.
    private(set) var longestFreeze: Int64 = 0
    /// How long it took after the relief until all videos had their best layers again; nil if longer than 20 s.
    private(set) var bestLayers: Int64?

    private static let bad: Int64 = 60_000

    /// Measures one run. All times are in milliseconds.
    init(seed: UInt64, publishers: Int, queue: Int64, burst: Int = 0, bitsPerSecond: Int64 = 500_000) throws {
        let gallery = try SimulatedGallery(seed: seed, publishers: publishers, watchers: 1)
        let large = publishers - 1
        for (slot, publisher) in gallery.publishers.enumerated() {
            let (width, height) = slot == large ? (640, 360) : (320, 180)
            gallery.watchers[0].prefer(VideoPreference(width: width, height: height), of: publisher, slot: slot)
        }
        // The fall happens at another time of the frames and the reports for each seed.
        gallery.room.run(10_000 + Int64(seed % 10) * 13)
        let best = try gallery.layers(of: 0, last: 500)
        try #require(best[large] == 0)
        try gallery.squeeze(0, to: bitsPerSecond, queue: .milliseconds(queue), burst: burst)
        try fall(gallery, large)
        try gallery.squeeze(0, to: nil)
        bestLayers = try Self.first(until: 20_000, step: 100, gallery) { try gallery.layers(of: 0, last: 300) == best }
    }

    private mutating func fall(_ gallery: SimulatedGallery, _ large: Int) throws {
        let start = gallery.room.network.now
        for time in stride(from: Int64(10), through: Self.bad, by: 10) {
            gallery.room.run(10)
            let waiting = try gallery.link(0)?.waiting(at: gallery.room.network.now).milliseconds ?? 0
            if time == 2000 { queueAfterTwoSeconds = waiting }
            if time <= 2000 { longestQueue = max(longestQueue, waiting) } else { laterQueue = max(laterQueue, waiting) }
        }
        let pictures = try gallery.watchers[0].video(large).arrivals.filter { $0.at >= start }
        smallerLayer = pictures.first { $0.tag.label % 10 != 0 }.map { ($0.at - start).milliseconds }
        var last = start
        for picture in pictures {
            longestFreeze = max(longestFreeze, (picture.at - last).milliseconds)
            last = max(last, picture.at)
        }
        longestFreeze = max(longestFreeze, (gallery.room.network.now - last).milliseconds)
        var total = 0.0
        for slot in 0...large {
            let packets = try gallery.watchers[0].audio(slot).inOrder
            var playout = SimulatedPlayout()
            playout.play(packets.prefix { $0.at < start })
            let before = playout.concealed
            playout.play(packets.drop { $0.at < start })
            total += playout.concealed - before
        }
        concealed = total / Double(Self.bad * Int64(large + 1))
    }

    private static func first(
        until end: Int64, step: Int64, _ gallery: SimulatedGallery, _ isReached: () throws -> Bool
    ) throws -> Int64? {
        for time in stride(from: step, through: end, by: Int(step)) {
            gallery.room.run(step)
            if try isReached() { return time }
        }
        return nil
    }
}

extension SimulatedFall: CustomStringConvertible {
    var description: String {
        let share = Double(Int64(concealed * 10_000)) / 100
        let (layer, best) = (smallerLayer.map { "\($0)" } ?? "-", bestLayers.map { "\($0)" } ?? "-")
        return
            "concealed \(share) %, queue at most \(longestQueue) ms, after 2 s \(queueAfterTwoSeconds), later at most \(laterQueue), "
            + "smaller layer after \(layer), longest freeze \(longestFreeze), best layers after \(best)"
    }
}
