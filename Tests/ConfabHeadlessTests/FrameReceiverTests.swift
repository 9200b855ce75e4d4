import Confab
import RTC
import Synchronization
import Testing

@testable import MediaFiles
@testable import ConfabHeadless
@testable import Peers

@Suite("The receiver of frames") struct FrameReceiverTests {
    /// A packet of a frame, with the time at which it arrives.
    private struct Arrival {
        var bytes: [UInt8]
        var number: Int64
        var at: MediaTime
    }

    /// The packets of thirty frames, which arrive every 40 ms.
    private static func arrivals() -> [Arrival] {
        var packetizer = VP8Packetizer(pictureID: 7)
        var arrivals: [Arrival] = []
        for number in 0..<30 {
            let at = MediaTime(nanoseconds: Int64(number) * 40_000_000)
            Frames.video(number).bytes.withUnsafeBytes { frame in
                packetizer.cut(frame) { payload, marker in
                    let sequence = Int64(arrivals.count)
                    arrivals.append(
                        Arrival(
                            bytes: packet(payload, sequence, timestamp: UInt32(number) * 3_600, marker: marker),
                            number: sequence, at: at))
                }
            }
        }
        return arrivals
    }

    private static func packet(
        _ payload: some Sequence<UInt8>, _ sequence: Int64, timestamp: UInt32, marker: Bool
    ) -> [UInt8] {
        var bytes: [UInt8] = [0x80, (marker ? 0x80 : 0) | 96, UInt8(sequence >> 8 & 0xff), UInt8(sequence & 0xff)]
        bytes += (0..<4).map { UInt8(truncatingIfNeeded: timestamp >> (24 - 8 * $0)) } + [0, 0, 0, 1]
        return bytes + payload
    }

    private static func receive(_ arrivals: [Arrival], by receiver: inout FrameReceiver, _ codec: Codec) throws
        -> [EncodedFrame]
    {
        var frames: [EncodedFrame] = []
        for arrival in arrivals {
            try arrival.bytes.withUnsafeBytes { bytes in
                let packet = RobotPacket(
                    header: try #require(RTPPacket(bytes)), bytes: bytes, number: arrival.number,
                    isRetransmission: false, at: arrival.at)
                frames += receiver.take(packet, of: codec)
            }
        }
        return frames
    }

    private let vp8 = Codec(.vp8, payloadType: 96, rtxPayloadType: 97)

    @Test("waits for a retransmission, and then returns every frame in order") func waits() throws {
        var arrivals = Self.arrivals()
        let late = arrivals.remove(at: 12)
        arrivals.insert(late, at: 20)
        var receiver = FrameReceiver(.video)
        let frames = try Self.receive(arrivals, by: &receiver, vp8)
        #expect(frames == (0..<30).map(Frames.video))
        #expect(receiver.frames == 30 && receiver.keyFrames == 3 && receiver.size == Frames.size)
    }

    @Test("continues at the next keyframe after a packet that never arrives") func continues() throws {
        var arrivals = Self.arrivals()
        // The first packet of the fifth frame.
        let lost = try #require(arrivals.firstIndex { $0.at == MediaTime(nanoseconds: 5 * 40_000_000) })
        arrivals.remove(at: lost)
        var receiver = FrameReceiver(.video)
        #expect(receiver.needsKeyframe)
        let frames = try Self.receive(arrivals, by: &receiver, vp8)
        #expect(frames == (Array(0..<5) + Array(10..<30)).map(Frames.video))
        #expect(!receiver.needsKeyframe)
    }

    @Test("returns only the newest payload of redundant audio") func redundant() throws {
        let red = Codec(.red, payloadType: 63, fmtp: "111/111")
        var redundancy = RobotRedundancy()
        let packets = (0..<5).map { number in
            let frame = Frames.audio(number)
            let prefix = frame.bytes.withUnsafeBytes {
                redundancy.prefix(of: $0, timestamp: UInt32(number) * 960, in: red)
            }
            return Arrival(
                bytes: Self.packet(prefix + frame.bytes, Int64(number), timestamp: UInt32(number) * 960, marker: false),
                number: Int64(number), at: MediaTime(nanoseconds: Int64(number) * 20_000_000))
        }
        var receiver = FrameReceiver(.audio)
        #expect(try Self.receive(packets, by: &receiver, red) == (0..<5).map(Frames.audio))
        // A header that announces more than the packet has.
        let broken = Arrival(
            bytes: Self.packet([0xef, 0xff, 0xff, 0xff, 111], 5, timestamp: 4_800, marker: false), number: 5,
            at: MediaTime(nanoseconds: 100_000_000))
        #expect(try Self.receive([broken], by: &receiver, red).isEmpty)
    }
}

@Suite("A source of frames") struct EncodedSourceTests {
    @Test("begins with a keyframe, and asks for one") func begins() async {
        let (requests, request) = AsyncStream.makeStream(of: Void.self)
        let source = EncodedSource { request.yield() }
        var frames = source.frames.makeAsyncIterator()
        var requested = requests.makeAsyncIterator()
        #expect(await requested.next() != nil)
        for number in 8..<12 { source.yield(Frames.video(number)) }
        #expect(await frames.next() == Frames.video(10))
        #expect(await frames.next() == Frames.video(11))
        source.finish()
        #expect(await frames.next() == nil)
        var late = source.frames.makeAsyncIterator()
        #expect(await late.next() == nil)
    }

    @Test("keeps the newest keyframe and what follows for the first reader, who then asks for none") func keeps() async
    {
        let (requests, request) = AsyncStream.makeStream(of: Void.self)
        let source = EncodedSource { request.yield() }
        for number in 8..<22 { source.yield(Frames.video(number)) }
        var frames = source.frames.makeAsyncIterator()
        source.yield(Frames.video(22))
        for number in 20...22 { #expect(await frames.next() == Frames.video(number)) }
        // The next one begins with the next keyframe.
        var late = source.frames.makeAsyncIterator()
        for number in 23...30 { source.yield(Frames.video(number)) }
        #expect(await late.next() == Frames.video(30))
        request.finish()
        #expect(await requests.reduce(into: 0) { count, _ in count += 1 } == 1)
    }

    @Test("keeps no more than a bound for a reader that never comes") func keepsLittle() async {
        let source = EncodedSource {}
        var keyframe = Frames.video(0)
        source.yield(keyframe)
        for number in 1...100 {
            keyframe.isKeyframe = false
            keyframe.time = .milliseconds(number)
            source.yield(keyframe)
        }
        // There were too many after the keyframe, so the reader waits for the next one.
        var frames = source.frames.makeAsyncIterator()
        source.yield(Frames.video(10))
        #expect(await frames.next() == Frames.video(10))
    }

    @Test("drops frames of a slow reader up to a keyframe, so that what it reads can be decoded") func drops() async {
        let (requests, request) = AsyncStream.makeStream(of: Void.self)
        let source = EncodedSource { request.yield() }
        var frames = source.frames.makeAsyncIterator()
        // All fit but the last few before the next keyframe.
        let fitting = EncodedSource.maxWaiting
        for number in 0..<fitting + 3 { source.yield(Frames.video(number)) }
        for number in 0..<fitting { #expect(await frames.next()?.time == Frames.video(number).time) }
        let next = (fitting + 9) / 10 * 10
        for number in fitting + 3...next { source.yield(Frames.video(number)) }
        #expect(await frames.next()?.time == Frames.video(next).time)
        request.finish()
        #expect(await requests.reduce(into: 0) { count, _ in count += 1 } == 2)
    }

    @Test("asks for one keyframe a second on behalf of a reader that has stopped") func stops() async {
        let (requests, request) = AsyncStream.makeStream(of: Void.self)
        let asked = Mutex(false)
        let source = EncodedSource {
            request.yield()
            asked.withLock { $0 = true }
        }
        let frames = source.frames
        // Ten seconds, of a sender that answers each request with a keyframe.
        for number in 0..<EncodedSource.maxWaiting + 250 {
            var frame = Frames.video(number)
            frame.isKeyframe = asked.withLock { asked in
                defer { asked = false }
                return asked
            }
            source.yield(frame)
        }
        request.finish()
        // One at the beginning, one when the first frame is dropped, and then each after a second without space.
        withExtendedLifetime(frames) {}
        let count = await requests.reduce(into: 0) { count, _ in count += 1 }
        #expect((10...12).contains(count), "\(count) requests")
    }

    private func plain(_ number: Int) -> EncodedFrame {
        EncodedFrame(.vp8, [1, 2, 3], at: .milliseconds(33 * number), isKeyframe: number == 0)
    }

    @Test("a frame is wanted while a consumer reads, and before that while it is kept for the first reader")
    func wanted() async {
        let source = EncodedSource(askForKeyframe: {})
        #expect(!source.wants(isKeyframe: false) && source.wants(isKeyframe: true))
        for number in 0..<64 {
            source.yield(plain(number))
            #expect(source.wants(isKeyframe: false))
        }
        source.yield(plain(64))
        #expect(!source.wants(isKeyframe: false) && source.wants(isKeyframe: true), "two seconds are kept")
        source.yield(plain(0))
        let frames = source.frames
        #expect(source.wants(isKeyframe: false))
        for await first in frames {
            #expect(first == plain(0))
            break
        }
        let reader = Task { for await _ in frames {} }
        reader.cancel()
        await reader.value
        #expect(!source.wants(isKeyframe: true), "nobody reads any more, and another reader asks for a keyframe")
    }
}
