import RTC
import Testing

@testable import SFU

@Suite("A video that the subscriber has pinned")
struct PinnedVideoTests {
    /// 1.4 Mbit/s carry one of the three videos in its largest layer, but only if the others leave room for it.
    @Test("becomes sharp on a slow line, and gives its place to the next one that is pinned")
    func pinned() throws {
        let gallery = try SimulatedGallery()
        let room = gallery.room
        room.run(5000)
        try gallery.squeeze(0, to: 1_400_000)
        room.run(15_000)
        let sharp = gallery.publishers.indices.filter { slot in
            (try? gallery.layers(of: 0, last: 1000)[slot]) == 0
        }
        #expect(sharp == [], "the line does not carry a sharp video beside the middle layers of the others")
        for slot in [2, 0] {
            for index in gallery.publishers.indices {
                let preference = VideoPreference(priority: index == slot ? 1 : 0)
                gallery.watchers[0].prefer(preference, of: gallery.publishers[index], slot: index)
            }
            room.run(15_000)
            let layers = try gallery.layers(of: 0, last: 1000)
            print("slot \(slot) is pinned: \(layers)")
            for index in gallery.publishers.indices {
                #expect((layers[index] == 0) == (index == slot) && layers[index] != nil)
            }
        }
        for change in room.server.events {
            guard case .subscriptionChanged(let change) = change else { continue }
            #expect(change.reason != .size, "a priority is not a size")
        }
    }
}
