import Confab
import RTC

/// The packets of a camera and a microphone as libwebrtc sends them: their sizes, and when they leave the pacer.
///
/// Times and sizes follow from the seed and from the requests for keyframes, and not from when the packets are taken. The
/// rates are close to those of `LoadSource`: 104 packets of video and 50 of audio a second.
///
/// - The camera has 26 frames a second in two temporal layers. Layer 0 gets 60 % of the bits, and each frame differs from
///   the mean of its layer by up to 20 %. There are keyframes only on request, at most one in 300 ms.
/// - A frame is split into the fewest packets that hold it, of equal size. If it cannot be divided, the last packets are one
///   byte longer (`RtpPacketizer::SplitAboutEqually` in modules/rtp_rtcp/source/rtp_format.cc).
/// - The pacer sends 2.5 times the target bitrate, and in bursts of up to 40 ms of that bitrate
///   (modules/pacing/pacing_controller.cc).
/// - Opus with a variable bitrate has 60 to 120 bytes in 20 ms. Audio is not paced.
///
/// Benchmarks/CLoop/packets.h computes the same sizes and times.
struct LibwebrtcPackets: Sendable {
    /// One packet.
    struct Packet: Hashable, Sendable {
        var kind: MediaKind
        /// When the packet is sent.
        var at: MediaTime
        /// When its frame was encoded.
        var encodedAt: MediaTime
        /// The size of the payload in bytes, with the descriptor of VP8.
        var length: Int
        var isStart = true
        var isEnd = true
        var isKeyframe = false
        /// The temporal layer.
        var layer: UInt8 = 0
    }

    static let framesPerSecond = 26
    private static let frameInterval = MediaInterval(nanoseconds: 1_000_000_000 / Int64(framesPerSecond))
    private static let audioInterval = MediaInterval.milliseconds(20)
    /// The mean size of a frame in bytes, which results in four packets on average.
    private static let meanFrame = 4096
    /// The sizes of frames in each layer and of keyframes, in tenths of the mean.
    private static let layerTenths = [12, 8]
    private static let keyframeTenths = 40
    /// The minimum interval between keyframes (`kMinKeyframeSendInterval` in video/encoder_rtcp_feedback.cc).
    private static let keyframeInterval = MediaInterval.milliseconds(300)
    static let audioBytes = 60...120
    /// The maximum number of bytes of a frame in one packet. A packet of libwebrtc has at most 1200 bytes with the RTP header,
    /// which has 28 bytes here. Two bytes are kept free for the header of RTX.
    static let maxPart = 1200 - 28 - 2 - SyntheticPicture.layeredDescriptorLength

    private var random: SplitMix
    private var audioDue: MediaTime
    private var frameDue: MediaTime
    private var wantsKeyframe = true
    private var keyframeAt: MediaTime?
    private var nextLayer = 0
    /// The packets that wait in the pacer. `at` is not set yet.
    private var queue: [Packet] = []
    /// When the first packet in the queue may be sent; nil if the queue is empty.
    private var videoDue: MediaTime?
    private var pacer = Pacer()

    init(seed: UInt64, from start: MediaTime) {
        random = SplitMix(seed: seed)
        (audioDue, frameDue) = (start, start)
    }

    /// The time of the next packet or frame.
    var nextDue: MediaTime { min(audioDue, frameDue, videoDue ?? frameDue) }

    mutating func requestKeyframe() { wantsKeyframe = true }

    /// Delays all future packets by the same time, so that the next one is due now.
    mutating func skip(to now: MediaTime) {
        let gap = now - nextDue
        (audioDue, frameDue) = (audioDue + gap, frameDue + gap)
        (videoDue, keyframeAt) = (videoDue.map { $0 + gap }, keyframeAt.map { $0 + gap })
        pacer.skip(gap)
    }

    /// Returns the next packet if it is due; otherwise nil.
    mutating func next(by now: MediaTime) -> Packet? {
        while nextDue <= now {
            if audioDue == nextDue { return takeAudio() }
            if let videoDue, videoDue == nextDue { return takeVideo(videoDue) }
            encode()
        }
        return nil
    }

    private mutating func number(in range: ClosedRange<Int>) -> Int {
        range.lowerBound + Int(random.next() % UInt64(range.count))
    }

    private mutating func takeAudio() -> Packet {
        let at = audioDue
        audioDue = at + Self.audioInterval
        // After a packet of audio, libwebrtc also sends the video that the burst allows by then.
        if let due = videoDue { videoDue = min(due, pacer.sendTime(at)) }
        return Packet(kind: .audio, at: at, encodedAt: at, length: number(in: Self.audioBytes))
    }

    private mutating func takeVideo(_ at: MediaTime) -> Packet {
        var packet = queue.removeFirst()
        packet.at = at
        pacer.sent(packet.length, at: at)
        videoDue = queue.isEmpty ? nil : pacer.sendTime(at)
        return packet
    }

    /// Encodes the next frame and passes its packets to the pacer.
    private mutating func encode() {
        let now = frameDue
        frameDue = now + Self.frameInterval
        let isKeyframe = wantsKeyframe && keyframeAt.map { now - $0 >= Self.keyframeInterval } ?? true
        if isKeyframe { (wantsKeyframe, keyframeAt, nextLayer) = (false, now, 0) }
        let layer = nextLayer
        nextLayer = 1 - layer
        let tenths = isKeyframe ? Self.keyframeTenths : Self.layerTenths[layer]
        let parts = Self.split(Self.meanFrame * tenths / 10 * number(in: 80...120) / 100)
        for (index, part) in parts.enumerated() {
            queue.append(
                Packet(
                    kind: .video, at: now, encodedAt: now, length: part + SyntheticPicture.layeredDescriptorLength,
                    isStart: index == 0, isEnd: index == parts.count - 1, isKeyframe: isKeyframe, layer: UInt8(layer)))
        }
        if videoDue == nil { videoDue = pacer.sendTime(now) }
    }

    /// Splits a frame into the fewest parts of at most `maxPart` bytes, of which the last ones are one byte longer if the
    /// frame cannot be divided.
    static func split(_ bytes: Int) -> [Int] {
        let count = (bytes + maxPart - 1) / maxPart
        let (part, longer) = bytes.quotientAndRemainder(dividingBy: max(1, count))
        return (0..<count).map { $0 < count - longer ? part : part + 1 }
    }
}

extension LibwebrtcPackets {
    /// libwebrtc's pacer, a leaky bucket that is emptied at the paced bitrate.
    struct Pacer: Sendable {
        /// The paced bitrate in bytes per second: 2.5 times that of the video.
        static let bytesPerSecond = Int64(meanFrame * framesPerSecond) * 5 / 2
        /// The length of a burst at the paced bitrate (`kDefaultBurstInterval`, which Chrome also sets).
        static let burst = MediaInterval.milliseconds(40)

        /// When the bucket is empty.
        private var emptyAt = MediaTime(nanoseconds: .min / 2)

        /// Returns when the next packet may be sent: now if the bucket contains less than a burst, otherwise when the
        /// bucket is empty.
        func sendTime(_ now: MediaTime) -> MediaTime { emptyAt - now < Self.burst ? now : emptyAt }

        mutating func sent(_ bytes: Int, at now: MediaTime) {
            emptyAt = max(emptyAt, now) + MediaInterval(nanoseconds: Int64(bytes) * 1_000_000_000 / Self.bytesPerSecond)
        }

        mutating func skip(_ gap: MediaInterval) { emptyAt = emptyAt + gap }
    }
}
