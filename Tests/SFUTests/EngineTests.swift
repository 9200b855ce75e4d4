import Foundation
import TestSupport
import Testing

@testable import RTC
@testable import SFU

/// Calls between browsers and apps, with their own offers (`Tests/RTCTests/Offers`).
@Suite("Calls between engines")
struct EngineTests {
    private static let publishing = [
        "chromium156", "chromium156_simulcast", "firefox153", "safari17", "safari18", "safari18_simulcast",
        "ios_framework", "ios_framework_simulcast", "chrome_android", "android_h264_first", "firefox_h264",
    ]
    private static let watching = [
        "safari17_watching", "safari18_watching", "ios_framework_watching", "chrome_android_watching",
        "chrome_watching", "chromium_free_watching", "firefox_watching", "firefox_esr_watching",
    ]

    private static func offer(_ name: String) throws -> SessionDescription {
        let folder = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "../RTCTests/Offers")
        return try SessionDescription(
            parsing: Array(Data(contentsOf: folder.appending(path: "offer_\(name).sdp"))))
    }

    private static func codecs(_ name: String) throws -> [Codec] { try Codec.all(in: offer(name).sections[1]) }

    @Test("each engine sees and hears each other", arguments: publishing)
    func call(_ name: String) throws {
        let room = try SimulatedRoom()
        let publisher = room.client()
        try publisher.publish(as: Self.offer(name))
        let watchers = try Self.watching.map { name in
            let client = room.client()
            try client.watch(as: Self.offer(name))
            return (name, client)
        }
        try room.connect()
        for (_, client) in watchers {
            room.router.subscribe(
                publisher.stream, client: client.key, mids: Mids(audio: "0", video: "1"), audio: true, video: true)
        }
        room.run(2500)
        for (watcher, client) in watchers {
            let receive = try #require(client.receive)
            let (sound, picture) = (try receive.slot("0"), try receive.slot("1"))
            #expect(sound.arrivals.count > 50 && sound.faults() == [], "\(watcher)")
            #expect(picture.frames.count > 30 && picture.faults() == [], "\(watcher)")
            let vp8 = try #require(receive.answered[1].codecs.first { $0.kind == .vp8 })
            #expect(picture.arrivals.allSatisfy { $0.payloadType == vp8.payloadType }, "\(watcher)")
            // Redundant audio goes to those who have it and number Opus in the same way.
            let codecs = receive.answered[0].codecs
            let theirs = try #require(publisher.send?.answered[0].codecs.first)
            let expected =
                codecs.first {
                    $0.kind == theirs.kind && $0.redundantPayloadTypes == theirs.redundantPayloadTypes
                } ?? codecs.first { $0.kind == .opus }
            #expect(sound.arrivals.allSatisfy { $0.payloadType == expected?.payloadType }, "\(watcher)")
            let level = try #require(receive.answered[0].extensions[.audioLevel])
            #expect(sound.arrivals.allSatisfy { $0.extensions.keys.elementsEqual([level]) }, "\(watcher)")
            #expect(picture.arrivals.allSatisfy { $0.extensions.isEmpty }, "\(watcher)")
        }
        #expect(room.server.events.allSatisfy { if case .subscriptionChanged = $0 { false } else { true } })
    }

    @Test("H.264 that everyone has goes to every engine with H.264, under its number for the nearest profile")
    func commonH264() throws {
        let expected: [String: UInt8] = [
            "safari17_watching": 98, "safari18_watching": 98, "ios_framework_watching": 98,
            "chrome_android_watching": 127, "chrome_watching": 109, "firefox_watching": 126,
        ]
        for level: UInt32 in [0x42e01f, 0x42e034] {
            let theirs = Codec(.h264(profileLevelID: level, packetizationMode: 1), payloadType: 98)
            for watcher in Self.watching {
                let mapped = MappedCodec(theirs, among: try Self.codecs(watcher))
                #expect(mapped.payloadType == expected[watcher] ?? 255, "\(watcher)")
                #expect(mapped.isDecodable == (mapped.repairPayloadType != 255))
            }
        }
    }

    @Test(
        "other profiles of H.264 go only to engines that decode them",
        arguments: [
            // Constrained High, of iPhones: Chrome decodes it as High.
            (0x640c1f, 1, ["safari17": 96, "safari18": 96, "ios_framework": 96, "chrome": 119]),
            // Baseline, of Chromium.
            (0x42001f, 1, ["chrome": 103, "firefox": 105]),
            (0x4d001f, 1, ["chrome": 117]), (0x64001f, 1, ["chrome": 119]), (0xf4001f, 1, ["chrome": 41]),
            // Mode 1 includes the packets of mode 0, not the other way round.
            (
                0x42e01f, 0,
                [
                    "safari17": 102, "safari18": 102, "ios_framework": 96, "chrome_android": 127, "chrome": 115,
                    "firefox": 97,
                ]
            ),
        ] as [(UInt32, UInt8, [String: UInt8])])
    func otherH264(_ profile: UInt32, _ mode: UInt8, _ expected: [String: UInt8]) throws {
        let theirs = Codec(.h264(profileLevelID: profile, packetizationMode: mode), payloadType: 98)
        for watcher in Self.watching {
            let mapped = MappedCodec(theirs, among: try Self.codecs(watcher))
            let name = watcher.replacingOccurrences(of: "_watching", with: "")
            #expect(mapped.payloadType == expected[name] ?? 255, "\(watcher)")
        }
    }

    @Test("feedback begins with a report unless the publisher takes it without", arguments: [false, true])
    func reducedSize(isReduced: Bool) throws {
        let room = try SimulatedRoom()
        let (publisher, watcher) = (room.client(), room.client())
        var template = try Self.offer("safari18")
        for index in template.sections.indices { template.sections[index].hasReducedSizeRTCP = isReduced }
        try publisher.publish(as: template)
        try watcher.watch(as: Self.offer("firefox_watching"))
        try room.connect()
        room.router.subscribe(
            publisher.stream, client: watcher.key, mids: Mids(audio: "0", video: "1"), audio: true, video: true)
        room.network.weather = NetworkConditions(losses: 50)
        room.run(3000)
        let camera = try #require(publisher.camera)
        #expect(camera.retransmissionsRequested > 0)
        #expect(publisher.send?.strayPackets == 0 && publisher.send?.acknowledged.isEmpty == false)
        #expect((try #require(publisher.send).reducedCompounds > 0) == isReduced)
    }

    @Test("mode 0 does not decode mode 1")
    func modes() {
        let single = Codec.Kind.h264(profileLevelID: 0x42e01f, packetizationMode: 0)
        let several = Codec.Kind.h264(profileLevelID: 0x42e01f, packetizationMode: 1)
        #expect(several.decodes(single) && !single.decodes(several))
    }
}
