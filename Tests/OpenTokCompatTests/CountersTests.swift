import Confab
import Foundation
import Testing

@testable import OpenTokCompat

@Suite("Counters as OpenTok tells them")
struct CountersTests {
    private var layers: [Statistic] {
        var (large, small) = (
            Statistic(.sent, .video, mid: "1", rid: "f"), Statistic(.sent, .video, mid: "1", rid: "q")
        )
        (large.packets, large.bytes, large.packetsLost) = (100, 100_000, 3)
        (small.packets, small.bytes, small.packetsLost) = (50, 10_000, 1)
        small.jitter = .milliseconds(5)
        return [large, small]
    }

    @Test("layers are added up, and what is not sent is not reported")
    func sums() throws {
        let sum = try #require(layers.sum(.video))
        #expect((sum.packets, sum.bytes, sum.lost) == (150, 110_000, 4))
        #expect(layers.sum(.audio) == nil)
        let shown = OTPublisherKitVideoNetworkStats(sum, since: 1)
        #expect((shown.videoPacketsSent, shown.videoBytesSent, shown.videoPacketsLost) == (150, 110_000, 4))
    }

    @Test("counters that a hostile sender made too large do not trap")
    func overflow() throws {
        var large = Statistic(.received, .audio)
        (large.packets, large.bytes, large.packetsLost) = (.max, .max, -1)
        let sum = try #require([large, large].sum(.audio))
        #expect(OTPublisherKitAudioNetworkStats(sum, since: 0).audioPacketsSent == Int64.max)
        #expect(OTSubscriberKitAudioNetworkStats(sum).audioPacketsLost == 0)
    }

    @Test("the report has the names of WebRTC's statistics")
    func report() {
        #expect(
            [layers[1]].json == """
                [{"bytesSent":10000,"framesSent":0,"jitter":0.005,"kind":"video","mid":"1","packetsLost":1,\
                "packetsSent":50,"rid":"q","type":"outbound-rtp"}]
                """)
    }
}
