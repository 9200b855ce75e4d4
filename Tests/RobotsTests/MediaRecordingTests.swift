import RTC
import TestSupport
import Testing

@testable import MediaFiles
@testable import Peers
@testable import Robots

@Suite("A recording")
struct MediaRecordingTests {
    private func time(_ milliseconds: Int64) -> MediaTime { MediaTime(nanoseconds: milliseconds * 1_000_000) }

    private func video(_ packets: [PacketOrder.Packet]) throws -> IVFFile {
        var (order, recording) = (FrameOrder(.video), VideoRecording())
        var bytes: [UInt8] = []
        for (index, packet) in packets.enumerated() {
            for frame in order.take(packet, at: time(Int64(index) * 10)) {
                recording.take(frame.bytes, at: frame.time, into: &bytes)
            }
        }
        for frame in order.finish(at: time(100_000)) { recording.take(frame.bytes, at: frame.time, into: &bytes) }
        return try ivf(bytes)
    }

    private static let frames = (0..<40).map { number in
        vp8Frame(isKeyframe: number % 10 == 0, size: 2_500, filler: UInt8(number))
    }

    @Test("of video has the right size, and each frame once with its time")
    func picture() throws {
        // The timestamps wrap around during this recording.
        let file = try video(vp8Packets(Self.frames, timestamp: UInt32.max - 9_000))
        #expect(file.header.width == 320 && file.header.height == 240 && file.header.codec == "VP80")
        #expect(file.frames.map(\.time) == (0..<40).map { $0 * 3_000 })
        #expect(file.frames.map(\.range.count) == Self.frames.map(\.count))
    }

    @Test("of video accepts packets in any order", arguments: [1, 2, 3] as [UInt64])
    func reordered(seed: UInt64) throws {
        var random = SeededGenerator(seed: seed)
        var packets = vp8Packets(Self.frames)
        for start in stride(from: 1, to: packets.count - 8, by: 8) {
            packets[start..<start + 8].shuffle(using: &random)
        }
        #expect(try video(packets).frames.count == 40, "seed \(seed)")
    }

    @Test("of video resumes at the next keyframe after a loss, with the right times")
    func loss() throws {
        var packets = vp8Packets(Self.frames)
        // Each frame has three packets. One packet of frame 14 is lost.
        packets.remove(at: 14 * 3 + 1)
        let file = try video(packets)
        let numbers: [UInt64] = Array(0..<14) + Array(20..<40)
        #expect(file.frames.map(\.time) == numbers.map { $0 * 3_000 })
    }

    @Test("of video is a valid file after each packet")
    func killed() throws {
        var (order, recording) = (FrameOrder(.video), VideoRecording())
        var bytes: [UInt8] = []
        for packet in vp8Packets(Self.frames) {
            for frame in order.take(packet, at: time(0)) { recording.take(frame.bytes, at: frame.time, into: &bytes) }
            if !bytes.isEmpty { #expect(try !ivf(bytes).isTruncated) }
        }
    }

    @Test("of video whose timestamps jump advances by one frame")
    func wildTimestamps() throws {
        var packets = vp8Packets(Array(Self.frames.prefix(4)))
        for index in 6..<packets.count { packets[index].timestamp &+= 0x7000_0000 }
        #expect(try video(packets).frames.map(\.time) == [0, 3_000, 6_000, 9_000])
    }

    @Test("of video can be of any length, however the sender's clock runs")
    func endless() {
        var order = FrameOrder(.video)
        let step: UInt32 = 90_000 * 3_600
        var last = Duration.zero
        let small = vp8Frame(isKeyframe: true, size: 100, filler: 1)
        for (index, packet) in vp8Packets(Array(repeating: small, count: 30_000)).enumerated() {
            var packet = packet
            packet.timestamp = UInt32(truncatingIfNeeded: index) &* step
            for frame in order.take(packet, at: time(0)) { last = frame.time }
        }
        #expect(last == .seconds(29_999 * 3_600))
    }

    private func packet(_ number: Int64, at timestamp: UInt32, _ payload: [UInt8] = [0x78, 1, 2]) -> PacketOrder.Packet
    {
        PacketOrder.Packet(number: number, timestamp: timestamp, marker: false, payload: payload)
    }

    private func audio(_ packets: [PacketOrder.Packet], ends: Bool = true) throws -> OpusFile {
        var (order, recording) = (FrameOrder(.audio), AudioRecording(serial: 5))
        var bytes: [UInt8] = []
        for (index, packet) in packets.enumerated() {
            for frame in order.take(packet, at: time(Int64(index) * 20)) {
                recording.take(frame.bytes, at: frame.time, into: &bytes)
            }
        }
        if ends {
            for frame in order.finish(at: time(100_000)) { recording.take(frame.bytes, at: frame.time, into: &bytes) }
            recording.finish(into: &bytes)
        }
        return try opus(bytes)
    }

    @Test("of audio has each packet once, and one page per second")
    func sound() throws {
        let packets = (0..<200).map { (number: UInt32) in packet(Int64(number), at: 0xffff_ec00 &+ number &* 960) }
        let file = try audio(packets)
        #expect(file.packets.count == 200 && !file.isDamaged)
        #expect(file.samples == 200 * 960)
        // If the program is killed, less than a second is lost.
        #expect(try audio(packets, ends: false).packets.count == 150)
    }

    @Test("of audio fills gaps, so that it stays in sync")
    func gaps() throws {
        let packets = [0, 1, 4, 5].map { packet(Int64($0), at: UInt32($0) * 960) }
        let file = try audio(packets)
        #expect(file.packets.map(\.range.count) == [3, 3, 1, 1, 3, 3])
        #expect(file.samples == 6 * 960)
        // Very long gaps are not filled.
        let far = [packet(0, at: 0), packet(1, at: 0x4000_0000), packet(2, at: 0)]
        #expect(try audio(far).packets.count == 3)
    }

    @Test("of audio skips invalid packets, and without packets has no bytes")
    func noOpus() throws {
        #expect(try audio([packet(0, at: 0), packet(1, at: 960, []), packet(2, at: 1_920, [3])]).packets.count == 1)
        var recording = AudioRecording(serial: 1)
        var bytes: [UInt8] = []
        recording.finish(into: &bytes)
        #expect(bytes.isEmpty)
    }
}
