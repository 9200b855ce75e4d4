import Testing

@testable import LiveComposing

@Suite("Mixed audio")
struct AudioMixerTests {
    private static func packet(_ value: Float, _ count: Int = 960) -> [Float] {
        [Float](repeating: value, count: count)
    }

    private static func mixer() -> AudioMixer { AudioMixer(start: .seconds(5), delay: .seconds(2)) }

    @Test("is the sum of all streams at their times, and silent elsewhere")
    func sums() {
        var mixer = Self.mixer()
        mixer.place(Self.packet(0.25), of: 1, at: .seconds(5))
        mixer.place(Self.packet(0.125), of: 2, at: .milliseconds(5_010))
        let first = mixer.mixFrame()
        #expect(first.count == 1_920)
        #expect(first[0] == 0.25 && first[479] == 0.25 && first[480] == 0.375 && first[959] == 0.375)
        #expect(first[960] == 0.125 && first[1_439] == 0.125 && first[1_440] == 0)
        #expect(mixer.mixFrame().allSatisfy { $0 == 0 })
        #expect(mixer.position == 3_840)
    }

    @Test("has no gap between packets whose times are rounded, and a gap where packets are missing")
    func gaps() {
        var mixer = Self.mixer()
        for packet in 0..<50 where packet != 20 {
            // Up to 4 ms off, as times in milliseconds that were corrected.
            let jitter = packet % 5 - 2
            mixer.place(Self.packet(0.5), of: 1, at: .milliseconds(5_000 + packet * 20 + jitter * 2))
        }
        let samples = (0..<25).flatMap { _ in mixer.mixFrame() }
        let silent = samples.indices.filter { samples[$0] == 0 }
        let gap = 20 * 960
        #expect(silent.allSatisfy { (gap - 300...gap + 1_260).contains($0) || $0 >= 48_000 - 300 || $0 < 300 })
        #expect((600...1_300).contains(silent.count { (10_000...40_000).contains($0) }))
    }

    @Test("one lost packet is a gap of its duration, and the next packet is at its time")
    func loss() {
        var mixer = Self.mixer()
        for packet in 0..<25 where packet != 20 {
            mixer.place(
                Self.packet(packet == 21 ? 0.25 : 0.5), of: 1, at: .seconds(5) + .milliseconds(packet * 20))
        }
        let samples = (0..<13).flatMap { _ in mixer.mixFrame() }
        #expect(samples[19 * 960..<20 * 960].allSatisfy { $0 == 0.5 })
        #expect(samples[20 * 960..<21 * 960].allSatisfy { $0 == 0 })
        #expect(samples[21 * 960..<22 * 960].allSatisfy { $0 == 0.25 })
        #expect(samples[22 * 960..<25 * 960].allSatisfy { $0 == 0.5 })
    }

    @Test("follows times that drift by half a percent at most, without gaps")
    func drift() {
        var mixer = Self.mixer()
        var samples: [Float] = []
        for packet in 0..<1_000 {
            // 100 ppm, 2 µs for each packet.
            mixer.place(Self.packet(0.5), of: 1, at: .seconds(5) + .microseconds(packet * 20_002))
            if packet % 2 == 1 { samples += mixer.mixFrame() }
        }
        #expect(samples.allSatisfy { abs($0 - 0.5) < 0.001 })
        // The last packet ends where its time says, not where the count of samples says.
        var rest = mixer.mixFrame().prefix { $0 != 0 }
        rest.removeAll { $0 == 0 }
        #expect((90...102).contains(rest.count))
    }

    @Test("discards what is late or too far in the future, and never traps on times")
    func times() {
        var mixer = Self.mixer()
        _ = mixer.mixFrame()
        for time in [Duration.zero, .seconds(5), .seconds(900), CompositorMessage.maxTime] {
            mixer.place(Self.packet(1), of: 1, at: time)
        }
        mixer.place([], of: 2, at: .seconds(6))
        mixer.place(Self.packet(1, 10_000_000), of: 2, at: .seconds(6))
        for _ in 0..<400 { #expect(mixer.mixFrame().allSatisfy { $0 == 0 }) }
        // Half of this packet is late.
        mixer.place(Self.packet(0.5), of: 3, at: .seconds(5) + .milliseconds(40 * 401 - 10))
        #expect(mixer.mixFrame().count { $0 == 0.5 } == 480)
    }

    @Test("stays below -1 dBFS, equals the sum while it is quiet, and is never not a number")
    func limit() {
        #expect([Float(0), 0.1, -0.5, 0.7].allSatisfy { AudioMixer.limit($0) == $0 })
        var last: Float = 0.69
        for step in 0..<1_000 {
            let limited = AudioMixer.limit(0.7 + Float(step) * 0.05)
            #expect(
                limited > last && limited < AudioMixer.ceiling
                    && AudioMixer.limit(-0.7 - Float(step) * 0.05) == -limited)
            last = limited
        }
        #expect(AudioMixer.limit(.nan).isNaN == false && AudioMixer.limit(.infinity) == 0)
    }
}
