import RTC
import TestSupport
import Testing

@testable import MediaFiles
@testable import Peers
@testable import Robots

/// Returns a frame with a VP8 header, filled with one byte.
func vp8Frame(isKeyframe: Bool, size: Int, filler: UInt8, width: UInt16 = 320, height: UInt16 = 240) -> [UInt8] {
    var frame: [UInt8] = isKeyframe ? [0x10, 0, 0, 0x9d, 0x01, 0x2a] : [0x11, 0, 0]
    if isKeyframe {
        frame.append(littleEndian: width)
        frame.append(littleEndian: height)
    }
    return frame + [UInt8](repeating: filler, count: max(0, size - frame.count))
}

/// Packetizes frames. Numbers start at one, and frames are 3000 units apart.
func vp8Packets(_ frames: [[UInt8]], from first: Int64 = 0x1_0000, timestamp: UInt32 = 77) -> [PacketOrder.Packet] {
    var packetizer = VP8Packetizer(pictureID: 0x7ffe)
    var packets: [PacketOrder.Packet] = []
    for (index, frame) in frames.enumerated() {
        frame.withUnsafeBytes { frame in
            packetizer.cut(frame) { payload, marker in
                packets.append(
                    PacketOrder.Packet(
                        number: first + Int64(packets.count), timestamp: timestamp &+ UInt32(index) &* 3_000,
                        marker: marker, payload: Array(payload)))
            }
        }
    }
    return packets
}

@Suite("VP8 in packets")
struct MediaVP8Tests {
    @Test("is split into payloads of about equal size, each with the picture ID")
    func cutting() throws {
        for size in [1, 100, 1_176, 1_177, 2_352, 2_353, 50_000] {
            let frame = vp8Frame(isKeyframe: true, size: size, filler: 3).prefix(size)
            let packets = vp8Packets([Array(frame), Array(frame), Array(frame)])
            let perFrame = packets.count / 3
            #expect(perFrame == (size + 1_175) / 1_176)
            #expect(packets.allSatisfy { $0.payload.count <= VP8Packetizer.maxPayload })
            let sizes = packets.map(\.payload.count)
            #expect((sizes.max() ?? 0) - (sizes.min() ?? 0) <= 1, "\(size) bytes give \(sizes)")
            for (index, packet) in packets.enumerated() {
                let descriptor = try #require(packet.payload.withUnsafeBytes { VP8Descriptor($0) })
                #expect(descriptor.pictureID == [0x7ffe, 0x7fff, 0][index / perFrame])
                #expect(descriptor.isFrameStart == (index % perFrame == 0))
                #expect(packet.marker == (index % perFrame == perFrame - 1))
            }
        }
        #expect(vp8Packets([[]]).isEmpty)
    }

    private func assemble(_ packets: [PacketOrder.Packet]) -> (frames: [VP8Assembler.Frame], needsKeyframe: Bool) {
        var assembler = VP8Assembler()
        let frames = packets.compactMap { packet in
            packet.payload.withUnsafeBytes {
                assembler.take($0, timestamp: packet.timestamp, marker: packet.marker)
            }
        }
        return (frames, assembler.needsKeyframe)
    }

    @Test("is reassembled unchanged")
    func roundTrip() {
        let frames = (0..<20).map { vp8Frame(isKeyframe: $0 % 5 == 0, size: 10 + $0 * 700, filler: UInt8($0)) }
        let (assembled, needsKeyframe) = assemble(vp8Packets(frames))
        #expect(assembled.map(\.bytes) == frames)
        #expect(assembled.map(\.isKeyframe) == (0..<20).map { $0 % 5 == 0 })
        #expect(!needsKeyframe)
    }

    @Test("starts at a keyframe")
    func start() {
        let frames = [false, false, true, false].map { vp8Frame(isKeyframe: $0, size: 3_000, filler: 1) }
        let packets = vp8Packets(frames)
        #expect(assemble(packets).frames.map(\.bytes) == Array(frames[2...]))
        // The output does not start in the middle of a frame either.
        let late = assemble(Array(packets[7...]))
        #expect(late.frames.isEmpty && late.needsKeyframe)
    }

    @Test("frames that are incomplete, invalid or endless are dropped until the next keyframe")
    func broken() {
        let frames = [true, false, false, true, false].map { vp8Frame(isKeyframe: $0, size: 3_000, filler: 1) }
        let packets = vp8Packets(frames)
        let withoutEnd = assemble(packets.enumerated().filter { $0.offset != 5 }.map(\.element))
        #expect(withoutEnd.frames.map(\.isKeyframe) == [true, true, false])
        var strange = packets
        strange[4].payload = [0x80]
        #expect(assemble(strange).frames.map(\.isKeyframe) == [true, true, false])
        // A frame that is a keyframe according to its first bit, but has no start code.
        #expect(assemble(vp8Packets([[0x10, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10]])).frames.isEmpty)
        var endless = VP8Assembler()
        let part = [0x90, 0x80, 0x80, 1] + [UInt8](repeating: 0, count: 1_200)
        let more = [0x80, 0x80, 0x80, 1] + [UInt8](repeating: 0, count: 1_200)
        _ = part.withUnsafeBytes { endless.take($0, timestamp: 1, marker: false) }
        #expect(!endless.needsKeyframe)
        for _ in 0..<VP8Assembler.maxFrame / 1_200 {
            _ = more.withUnsafeBytes { endless.take($0, timestamp: 1, marker: false) }
        }
        #expect(endless.needsKeyframe)
    }

    @Test("ignores padding")
    func padding() {
        let frames = [true, false].map { vp8Frame(isKeyframe: $0, size: 100, filler: 1) }
        var packets = vp8Packets(frames)
        packets.insert(PacketOrder.Packet(number: 5, timestamp: 9, marker: false, payload: []), at: 1)
        #expect(assemble(packets).frames.map(\.bytes) == frames)
    }

    @Test("frames show whether they are keyframes, and the picture size")
    func header() throws {
        let key = vp8Frame(isKeyframe: true, size: 20, filler: 0, width: 640, height: 0x4000 | 480)
        let header = try #require(key.withUnsafeBytes { VP8FrameHeader($0) })
        #expect(header.isKeyframe && header.width == 640 && header.height == 480)
        for count in 0..<10 { #expect(key.prefix(count).withUnsafeBytes { VP8FrameHeader($0) } == nil) }
        #expect([0x11, 0, 0].withUnsafeBytes { VP8FrameHeader($0) }?.isKeyframe == false)
    }
}

@Suite("Packets in order")
struct MediaPacketOrderTests {
    private func packet(_ number: Int64) -> PacketOrder.Packet {
        PacketOrder.Packet(number: number, timestamp: 0, marker: false, payload: [])
    }

    private func steps(_ order: inout PacketOrder, at now: MediaTime) -> [Int64?] {
        var steps: [Int64?] = []
        while let step = order.next(now: now) {
            if case .packet(let packet) = step { steps.append(packet.number) } else { steps.append(nil) }
        }
        return steps
    }

    @Test("are reordered and returned once each", arguments: [1, 2, 3, 4] as [UInt64])
    func mixed(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        var order = PacketOrder(reorderDelay: .seconds(1))
        let now = MediaTime(nanoseconds: 0)
        var out: [Int64?] = []
        for block in 0..<50 as Range<Int64> {
            var numbers = (0..<20).map { block * 20 + $0 }
            // The order starts with the first packet that arrives.
            let rest = block == 0 ? 1 : 0
            numbers[rest...].shuffle(using: &random)
            for number in numbers + numbers.prefix(3) {
                order.insert(packet(number), at: now)
                out += steps(&order, at: now)
            }
        }
        #expect(out == (0..<1_000).map { Int64($0) }, "seed \(seed)")
    }

    @Test("are waited for, and given up together after the delay")
    func reorderDelay() {
        var order = PacketOrder(reorderDelay: .milliseconds(100))
        func time(_ milliseconds: Int64) -> MediaTime { MediaTime(nanoseconds: milliseconds * 1_000_000) }
        order.insert(packet(1), at: time(0))
        #expect(steps(&order, at: time(0)) == [1])
        order.insert(packet(4), at: time(10))
        #expect(steps(&order, at: time(10)) == [])
        order.insert(packet(6), at: time(20))
        #expect(steps(&order, at: time(109)) == [])
        #expect(steps(&order, at: time(110)) == [nil, 4])
        order.insert(packet(5), at: time(120))
        #expect(steps(&order, at: time(120)) == [5, 6])
        // Late packets are dropped.
        order.insert(packet(2), at: time(130))
        #expect(steps(&order, at: time(500)) == [])
    }

    @Test("after a gap at the end are returned once the gap is given up")
    func end() {
        var order = PacketOrder(reorderDelay: .seconds(1))
        let now = MediaTime(nanoseconds: 0)
        for number in [1, 3, 4] as [Int64] { order.insert(packet(number), at: now) }
        #expect(steps(&order, at: now) == [1])
        order.giveUp()
        #expect(steps(&order, at: now) == [nil, 3, 4])
    }

    @Test("that jump far ahead or behind restart the order", arguments: [1 << 40, -5_000, Int64.max, Int64.min + 1])
    func jumps(_ far: Int64) {
        var order = PacketOrder(reorderDelay: .seconds(1))
        let now = MediaTime(nanoseconds: 0)
        for number in [1, 2, 9, far] { order.insert(packet(number), at: now) }
        #expect(steps(&order, at: now) == [nil, far])
    }
}
