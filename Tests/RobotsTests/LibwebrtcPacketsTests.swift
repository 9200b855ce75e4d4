import Peers
import RTC
import Testing

@testable import Robots

@Suite("Packets like libwebrtc's") struct LibwebrtcPacketsTests {
    private typealias Packet = LibwebrtcPackets.Packet

    /// Takes all packets of a time, in steps of a random or fixed length.
    private func packets(seed: UInt64, seconds: Int64, step: MediaInterval = .milliseconds(1)) -> [Packet] {
        var packets = LibwebrtcPackets(seed: seed, from: MediaTime(nanoseconds: 0))
        var taken: [Packet] = []
        var now = MediaTime(nanoseconds: 0)
        while now < MediaTime(nanoseconds: 0) + .seconds(seconds) {
            now = now + step
            while let packet = packets.next(by: now) { taken.append(packet) }
        }
        return taken
    }

    /// Returns the payloads of each frame without the descriptors of VP8.
    private func frames(_ packets: [Packet]) -> [[Packet]] {
        var frames: [[Packet]] = []
        for packet in packets where packet.kind == .video {
            if packet.isStart { frames.append([]) }
            frames[frames.count - 1].append(packet)
        }
        return frames.filter { $0.last?.isEnd == true }
    }

    private func bytes(_ frame: [Packet]) -> Int {
        frame.reduce(0) { $0 + $1.length - SyntheticPicture.layeredDescriptorLength }
    }

    @Test("follow from the seed alone, however late they are taken")
    func repeatable() {
        let some = packets(seed: 7, seconds: 3)
        #expect(some == packets(seed: 7, seconds: 3, step: .milliseconds(100)))
        #expect(some != packets(seed: 8, seconds: 3))
    }

    /// The output of `loop print 100`, with the packets of the same time in one line.
    private static let loop = """
        audio 0 86
        video 0 1165 1165 1165 1165 1165 1165 1165 1166 1166 1166
        audio 20000000 72
        video 20000000 1166 1166 1166
        video 38461538 901 901 902
        audio 40000000 78
        audio 60000000 65
        video 76923076 1062 1062 1063 1063
        audio 80000000 75
        audio 100000000 73
        """

    @Test("have the sizes and times of those that the loop in C sends")
    func sameAsLoop() {
        var lines: [(start: String, sizes: String)] = []
        for packet in packets(seed: 1, seconds: 1) where packet.at <= MediaTime(nanoseconds: 100_000_000) {
            let start = "\(packet.kind) \(packet.at.nanoseconds)"
            if lines.last?.start == start {
                lines[lines.count - 1].sizes += " \(packet.length)"
            } else {
                lines.append((start, "\(packet.length)"))
            }
        }
        #expect(lines.map { "\($0.start) \($0.sizes)" }.joined(separator: "\n") == Self.loop)
    }

    @Test(
        "split a frame into equal parts, of which the last are one byte longer",
        arguments: [
            (1, [1]), (1164, [1164]), (1165, [582, 583]), (3276, [1092, 1092, 1092]), (4096, [1024, 1024, 1024, 1024]),
            (4098, [1024, 1024, 1025, 1025]), (4099, [1024, 1025, 1025, 1025]), (0, []),
        ])
    func split(bytes: Int, parts: [Int]) {
        #expect(LibwebrtcPackets.split(bytes) == parts)
    }

    @Test("have about the rate of the uniform packets", arguments: 1...8 as ClosedRange<UInt64>)
    func rate(seed: UInt64) {
        let some = packets(seed: seed, seconds: 60)
        let audio = some.filter { $0.kind == .audio }
        let video = some.filter { $0.kind == .video }
        #expect(abs(audio.count - 60 * 50) <= 1)
        #expect((102...107).contains(Double(video.count) / 60), "\(Double(video.count) / 60) a second")
        #expect(audio.allSatisfy { LibwebrtcPackets.audioBytes.contains($0.length) })
        #expect(Set(audio.map(\.length)).count > 50)
        #expect(video.allSatisfy { $0.length <= 1170 })
    }

    @Test("give temporal layer 0 about 60 % of the bits, and begin with a keyframe of ten packets or more")
    func layers() {
        let all = frames(packets(seed: 3, seconds: 60))
        #expect(all[0].count >= 10 && all[0].allSatisfy { $0.isKeyframe && $0.layer == 0 })
        let frames = all.dropFirst()
        #expect(frames.allSatisfy { !$0[0].isKeyframe })
        #expect(zip(frames, frames.dropFirst()).allSatisfy { $0[0].layer != $1[0].layer })
        let base = frames.filter { $0[0].layer == 0 }.map(bytes).reduce(0, +)
        let share = Double(base) / Double(frames.map(bytes).reduce(0, +))
        #expect((0.57...0.63).contains(share), "\(share)")
    }

    @Test("leave a frame at once if it fits into a burst")
    func frame() {
        for frame in frames(packets(seed: 4, seconds: 20)).dropFirst(4) {
            #expect(frame.allSatisfy { $0.at == $0.encodedAt })
        }
    }

    @Test("spread a keyframe over several bursts, each after the one before has drained")
    func keyframe() {
        let all = packets(seed: 5, seconds: 1)
        let keyframe = frames(all)[0]
        let burst = LibwebrtcPackets.Pacer.bytesPerSecond * 40 / 1000
        let first = keyframe.filter { $0.at == $0.encodedAt }
        // The last packet of a burst may exceed it.
        let sent = first.reduce(0) { $0 + $1.length }
        #expect(sent >= burst && sent - first[0].length < burst)
        #expect(keyframe.count > first.count)
        // Audio comes every 20 ms, is not paced, and makes the pacer send the video that fits by then.
        #expect(keyframe[first.count].at == MediaTime(nanoseconds: 20_000_000))
        #expect(all.filter { $0.kind == .audio }.allSatisfy { $0.at == $0.encodedAt })
        #expect(zip(all, all.dropFirst()).allSatisfy { $0.at <= $1.at })
    }

    @Test("include another keyframe on request, at most one in 300 ms")
    func requests() {
        var packets = LibwebrtcPackets(seed: 6, from: MediaTime(nanoseconds: 0))
        var keyframes: [MediaTime] = []
        var waiting = 0
        for millisecond in 0..<3000 as Range<Int64> {
            packets.requestKeyframe()
            while let packet = packets.next(by: MediaTime(nanoseconds: millisecond * 1_000_000)) {
                if packet.isKeyframe && packet.isStart { keyframes.append(packet.encodedAt) }
                waiting = max(waiting, Int((packet.at - packet.encodedAt).nanoseconds / 1_000_000))
            }
        }
        #expect((9...10).contains(keyframes.count))
        #expect(zip(keyframes, keyframes.dropFirst()).allSatisfy { $1 - $0 >= .milliseconds(300) })
        #expect(waiting < 200, "the longest wait was \(waiting) ms")
    }

    @Test("continue after a pause with everything that is to come")
    func pause() {
        var (one, other) = (LibwebrtcPackets(seed: 9, from: MediaTime(nanoseconds: 0)), [Packet]())
        while let packet = one.next(by: MediaTime(nanoseconds: 5_000_000)) { other.append(packet) }
        let late = MediaTime(nanoseconds: 9_000_000_000)
        one.skip(to: late)
        #expect(one.nextDue == late)
        let first = one.next(by: late)
        let second = one.next(by: late + .milliseconds(100))
        #expect(first?.at == late)
        #expect(second.map { $0.at >= late } == true)
        #expect(other.count > 9)
    }
}
