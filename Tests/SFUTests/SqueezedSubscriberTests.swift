import RTC
import TestSupport
import Testing

@testable import SFU

/// A subscriber whose link cannot carry everything, in simulated time.
@Suite("A squeezed subscriber")
struct SqueezedSubscriberTests {
    @Test("gets smaller layers within 3 s, keeps its audio, and gets the largest again within 10 s of relief")
    func squeezed() throws {
        let gallery = try SimulatedGallery()
        let room = gallery.room
        room.run(10_000)
        #expect(try gallery.layers(of: 0, last: 500) == [0, 0, 0])
        #expect(room.router.counters.paddingBytes == 0, "a good line needs no probes")
        let (before, otherBefore) = (gallery.receivedBytes(0), gallery.receivedBytes(1))
        #expect(before > 2_000_000)
        try gallery.squeeze(0, to: 700_000)
        room.run(3000)
        print("after 3 s", try gallery.layers(of: 0, last: 1000))
        #expect(try gallery.layers(of: 0, last: 1000).allSatisfy { $0 != 0 })
        let heard = try (0..<3).map { try gallery.watchers[0].audio($0).arrivals.count }
        let settled = gallery.receivedBytes(0)
        var moving = 0
        for _ in 0..<57 {
            room.run(1000)
            let layers = try gallery.layers(of: 0, last: 1000)
            if layers.contains(where: { $0 != nil }) { moving += 1 }
            print(layers, try gallery.link(0)?.longestWait.milliseconds ?? 0, room.router.counters.paddingBytes)
            room.network.links[try #require(gallery.watchers[0].receive).address]?.longestWait = .zero
        }
        #expect(moving == 57)
        let rate = (gallery.receivedBytes(0) - settled) * 8 / 57
        print("received \(rate) bit/s on 700 kbit/s; lost \(try gallery.link(0)?.lost ?? 0)")
        #expect(rate > 350_000)
        for slot in 0..<3 {
            let count = try gallery.watchers[0].audio(slot).arrivals.count - heard[slot]
            #expect(count > 57 * 50 * 99 / 100, "\(count) of \(57 * 50) packets of audio")
        }
        try gallery.squeeze(0, to: nil)
        var seconds = 0
        while try gallery.layers(of: 0, last: 300) != [0, 0, 0], seconds < 100 {
            room.run(100)
            seconds += 1
        }
        print("back after \(seconds) tenths of a second")
        #expect(seconds <= 100)
        let other = gallery.receivedBytes(1) - otherBefore
        print("the other: \(other * 8 / 60 / 1000) kbit/s, before \(otherBefore * 8 / 10 / 1000)")
        for event in room.server.events {
            if case .subscriptionChanged(let change) = event { print(change) }
        }
    }
}
