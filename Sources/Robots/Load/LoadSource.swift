import Peers
import RTC

/// A synthetic camera and microphone that cost almost no CPU time. Per second they send 104 video packets of 1200 bytes and 50
/// audio packets of 100 bytes. Each packet contains the time at which it was sent.
///
/// To a receiver that does not decode it, the video looks like VP8: it consists of frames of four packets with picture
/// ids, and of keyframes on request. A source can also send larger keyframes, each in one burst, about once a second.
final class LoadSource: CountedSource {
    static let videoBytes = 1200
    static let audioBytes = 100
    static let packetsPerFrame = 4
    private static let framesPerSecond = 26
    static let frameInterval = MediaInterval(nanoseconds: 1_000_000_000 / Int64(framesPerSecond))
    static let audioInterval = MediaInterval.milliseconds(20)
    /// The number of packets that one source sends per second.
    static let packetsPerSecond = framesPerSecond * packetsPerFrame + 50
    /// The longest pause that the source makes up for. After a longer pause it continues from the current time.
    static let longestPause = MediaInterval.milliseconds(200)
    /// The offset of the sending time in a packet: after the descriptor and the header of a keyframe, or after the first byte
    /// of an Opus packet.
    static let videoMark = SyntheticPicture.contentOffset
    private static let audioMark = 1

    /// The additional delay of each regular keyframe. Without it, these keyframes would be sent exactly once a second,
    /// and always coincide with the packets of the same other sources.
    private static let keyframeDrift = MediaInterval.milliseconds(7)

    /// The number of packets in which each keyframe is sent. `sendKeyframes` changes it.
    private var keyframePackets = packetsPerFrame
    private var hasRegularKeyframes = false
    private let audio: RobotTrack?
    private let video: RobotTrack?
    private var audioDue: MediaTime
    private var frameDue: MediaTime
    private var wantsKeyframe = true
    private var framesSinceKeyframe = 0
    private var number: UInt16 = 0
    private let origin: MediaTime
    private let memory = UnsafeMutableRawBufferPointer.allocate(byteCount: videoBytes, alignment: 16)
    /// The number of times that the source had to skip packets.
    private(set) var pauses = 0
    private(set) var keyframes = 0

    /// - Parameters:
    ///   - connection: a connection that has already offered the sections "a" and "v", or one of them.
    ///   - phase: an offset that keeps many sources from sending at the same time.
    init(of connection: RobotConnection, now: MediaTime, phase: MediaInterval) {
        (audio, video) = (connection.track("a"), connection.track("v"))
        origin = now
        (audioDue, frameDue) = (now + phase, now + phase)
        for index in memory.indices { memory[index] = UInt8(truncatingIfNeeded: index &* 7) }
    }

    deinit { memory.deallocate() }

    /// Sends a keyframe of this many packets now, and then about one per second.
    func sendKeyframes(of packets: Int) {
        (keyframePackets, hasRegularKeyframes, wantsKeyframe) = (packets, true, true)
    }

    var nextDue: MediaTime? { min(audioDue, frameDue) }

    func produce(over connection: RobotConnection, now: MediaTime) {
        if now - min(audioDue, frameDue) > Self.longestPause {
            (audioDue, frameDue) = (now, now)
            pauses += 1
        }
        while audioDue <= now {
            audioDue = audioDue + Self.audioInterval
            speak(over: connection, now)
        }
        while frameDue <= now {
            frameDue = frameDue + Self.frameInterval
            show(over: connection, now)
        }
    }

    func keyframeWanted(of track: RobotTrack) { wantsKeyframe = true }

    private func timestamp(_ now: MediaTime, rate: Int64) -> UInt32 {
        UInt32(truncatingIfNeeded: (now - origin).nanoseconds / 1000 * rate / 1_000_000)
    }

    private func speak(over connection: RobotConnection, _ now: MediaTime) {
        guard let audio else { return }
        Self.writeAudio(sentAt: now, to: memory)
        connection.send(
            UnsafeRawBufferPointer(rebasing: memory[..<Self.audioBytes]), of: audio,
            timestamp: timestamp(now, rate: 48_000), marker: false, now: now, level: .init(level: 30, voice: true)
        )
    }

    private func show(over connection: RobotConnection, _ now: MediaTime) {
        guard let video else { return }
        let isDue = hasRegularKeyframes && framesSinceKeyframe >= Self.framesPerSecond
        if isDue { frameDue = frameDue + Self.keyframeDrift }
        let isKeyframe = wantsKeyframe || isDue
        wantsKeyframe = false
        framesSinceKeyframe = isKeyframe ? 1 : framesSinceKeyframe + 1
        if isKeyframe { keyframes += 1 }
        let packets = isKeyframe ? keyframePackets : Self.packetsPerFrame
        number &+= 1
        let picture = SyntheticPicture(number: number, isKeyframe: isKeyframe)
        let timestamp = timestamp(now, rate: 90_000)
        for part in 0..<packets {
            picture.describe(isStart: part == 0, to: memory)
            memory.storeBytes(of: now.nanoseconds, toByteOffset: Self.videoMark, as: Int64.self)
            connection.send(
                UnsafeRawBufferPointer(memory), of: video, timestamp: timestamp,
                marker: part == packets - 1, now: now
            )
        }
    }

    /// Writes the first byte of an Opus packet with one frame of 20 ms (RFC 6716 §3.1), and the sending time.
    static func writeAudio(sentAt now: MediaTime, to memory: UnsafeMutableRawBufferPointer) {
        memory[0] = 0x78
        memory.storeBytes(of: now.nanoseconds, toByteOffset: audioMark, as: Int64.self)
    }

    /// Returns the time at which a packet was sent, on the clock of this process; nil if the payload is too short to
    /// contain it.
    static func sentAt(_ payload: UnsafeRawBufferPointer, _ kind: MediaKind) -> MediaTime? {
        let offset = kind == .video ? videoMark : audioMark
        guard payload.count >= offset + 8 else { return nil }
        return MediaTime(nanoseconds: payload.loadUnaligned(fromByteOffset: offset, as: Int64.self))
    }
}
