import RTC
import Testing

@testable import SFU

@Suite("The loudest of a large session")
struct LoudestAudioTests {
    private static func voices(_ loudness: [Double], forwarded: Set<Int>) -> [Voice] {
        loudness.enumerated().map { Voice(loudness: $1, isForwarded: forwarded.contains($0)) }
    }

    @Test(
        "a voice is forwarded if it is among the loudest, and takes another's place only if it is clearly louder",
        arguments: [
            // Not more than the limit: all.
            ([0, 0, 90], [], 3, [0, 1, 2]), ([], [], 3, []),
            ([10, 90, 50, 70], [], 2, [1, 3]),
            // Within the margin, those who are forwarded stay.
            ([70, 75, 40], [0], 1, [0]), ([70, 77, 40], [0], 1, [1]),
            ([60, 65.9, 90, 30], [0, 2], 2, [0, 2]), ([60, 66.1, 90, 30], [0, 2], 2, [1, 2]),
            // Nobody talks: nothing changes.
            ([0, 0, 0, 0], [1, 3], 2, [1, 3]), ([5, 2, 1, 0], [1, 3], 2, [1, 3]),
            // More are forwarded than may be, because some have just joined.
            ([10, 20, 30, 40], [0, 1, 2, 3], 2, [2, 3]),
            ([50, 50, 50], [], 2, [0, 1]), ([50, 50], [0, 1], 0, []),
        ] as [([Double], Set<Int>, Int, Set<Int>)])
    func choice(_ loudness: [Double], _ forwarded: Set<Int>, _ limit: Int, _ expected: Set<Int>) {
        let chosen = LoudestAudio.choose(Self.voices(loudness, forwarded: forwarded), limit: limit)
        #expect(Set(chosen.indices.filter { chosen[$0] }) == expected)
    }

    @Test("a voice rises within 60 ms, falls slowly, and fades without packets")
    func envelope() {
        var (voice, now) = (Voice(), MediaTime(nanoseconds: 1_000_000_000))
        for _ in 0..<3 {
            voice.record(27, now: now)
            now = now + .milliseconds(20)
        }
        #expect(voice.loudness > 85)
        // A pause of half a second between two words.
        for _ in 0..<25 {
            voice.record(127, now: now)
            now = now + .milliseconds(20)
        }
        #expect(voice.loudness > 50)
        let quiet = voice.loudness
        voice.fade(now: now)
        #expect(voice.loudness == quiet, "packets have just arrived")
        now = now + .seconds(1)
        for _ in 0..<30 { voice.fade(now: now) }
        #expect(voice.loudness < 3)
    }

    @Test("more publishers than the limit: subscribers hear the loudest, without gaps in the sequence numbers")
    func room() throws {
        let room = try SimulatedRoom { $0.loudestStreams = 2 }
        let publishers = (0..<4).map { _ in room.client() }
        for (index, client) in publishers.enumerated() {
            try client.publish(video: nil)
            client.microphone?.level = [30, 40, 100, 110][index]
        }
        let watcher = room.client()
        try watcher.watch(slots: 4)
        try room.connect()
        for (slot, client) in publishers.enumerated() { watcher.subscribe(to: client, slot: slot) }
        room.run(1000)
        func heard(_ milliseconds: Int64) throws -> [Bool] {
            let before = try (0..<4).map { try watcher.audio($0).arrivals.count }
            room.run(milliseconds)
            return try (0..<4).map { try watcher.audio($0).arrivals.count > before[$0] }
        }
        #expect(try heard(500) == [true, true, false, false])
        // Another person begins to talk, and is heard within a tenth of a second.
        publishers[3].microphone?.level = 20
        room.run(120)
        #expect(try heard(60)[3])
        #expect(try heard(1000) == [true, false, false, true])
        publishers[3].microphone?.level = 110
        publishers[1].microphone?.level = 20
        room.run(500)
        #expect(try heard(500) == [true, true, false, false])
        // One who mutes makes room for the next, who is quiet but the loudest of the others.
        room.router.update(publishers[0].stream, audio: false, video: false)
        room.run(4000)
        #expect(try heard(500) == [false, true, true, false])
        // Without one more, nobody is left out.
        room.router.unpublish(publishers[1].stream)
        room.run(200)
        #expect(try heard(500) == [false, false, true, true])
        for slot in 0..<4 {
            let audio = try watcher.audio(slot)
            #expect(audio.faults() == [] && audio.labels == [publishers[slot].number])
        }
        #expect(watcher.receive?.strayPackets == 0)
    }

    @Test("publishers without audio levels count as soft voices, and other sessions are not affected")
    func unknown() throws {
        let room = try SimulatedRoom { $0.loudestStreams = 1 }
        let publishers = (0..<2).map { _ in room.client() }
        for client in publishers { try client.publish(video: nil) }
        let watcher = room.client()
        try watcher.watch(slots: 2)
        try room.connect()
        for (slot, client) in publishers.enumerated() { watcher.subscribe(to: client, slot: slot) }
        // The first sends no levels; the second is silent at first.
        try #require(room.router.publisher(publishers[0].key)?.track("a")).audioLevelID = 0
        publishers[1].microphone?.level = 127
        room.run(1500)
        try watcher.audio(0).forgetArrivals()
        try watcher.audio(1).forgetArrivals()
        room.run(500)
        #expect(try watcher.audio(0).arrivals.count > 20 && watcher.audio(1).arrivals.isEmpty)
        publishers[1].microphone?.level = 10
        room.run(1000)
        #expect(try watcher.audio(1).arrivals.count > 20)
        room.router.unpublish(publishers[1].stream)
        room.router.publish(
            publishers[1].stream, session: "other", client: publishers[1].key, mids: Mids(audio: "a"), audio: true,
            video: false)
        watcher.subscribe(to: publishers[1], slot: 1)
        try watcher.audio(0).forgetArrivals()
        try watcher.audio(1).forgetArrivals()
        room.run(1000)
        #expect(try watcher.audio(0).arrivals.count > 20 && watcher.audio(1).arrivals.count > 20)
    }
}
