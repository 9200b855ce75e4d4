import Peers
import RTC

/// A synthetic camera and microphone that send packets as libwebrtc does (`LibwebrtcPackets`). Each packet contains the
/// time at which it was sent, at the same offset as in `LoadSource`. The header extensions are those of browsers, with
/// abs-send-time.
final class LibwebrtcSource: CountedSource {
    private let audio: RobotTrack?
    private let video: RobotTrack?
    private var packets: LibwebrtcPackets
    private let origin: MediaTime
    private var picture = SyntheticPicture(number: 0, isKeyframe: false, layer: .init(index: 0, base: 0))
    private let memory = UnsafeMutableRawBufferPointer.allocate(byteCount: RobotTrack.maxPayload, alignment: 16)
    private(set) var pauses = 0
    private(set) var keyframes = 0

    /// - Parameter connection: a connection that has already offered the sections "a" and "v", or one of them.
    init(of connection: RobotConnection, packets: LibwebrtcPackets) {
        (audio, video, self.packets) = (connection.track("a"), connection.track("v"), packets)
        origin = packets.nextDue
        for track in [audio, video] { track?.sendsAbsoluteTime = true }
        for index in memory.indices { memory[index] = UInt8(truncatingIfNeeded: index &* 7) }
    }

    deinit { memory.deallocate() }

    var nextDue: MediaTime? { packets.nextDue }

    func produce(over connection: RobotConnection, now: MediaTime) {
        if now - packets.nextDue > LoadSource.longestPause {
            packets.skip(to: now)
            pauses += 1
        }
        while let packet = packets.next(by: now) {
            if packet.kind == .audio {
                speak(packet, over: connection, now)
            } else {
                show(packet, over: connection, now)
            }
        }
    }

    func keyframeWanted(of track: RobotTrack) { packets.requestKeyframe() }

    private func timestamp(_ time: MediaTime, rate: Int64) -> UInt32 {
        UInt32(truncatingIfNeeded: (time - origin).nanoseconds / 1000 * rate / 1_000_000)
    }

    private func speak(_ packet: LibwebrtcPackets.Packet, over connection: RobotConnection, _ now: MediaTime) {
        guard let audio else { return }
        LoadSource.writeAudio(sentAt: now, to: memory)
        connection.send(
            UnsafeRawBufferPointer(rebasing: memory[..<packet.length]), of: audio,
            timestamp: timestamp(packet.encodedAt, rate: 48_000), marker: false, now: now,
            level: .init(level: 30, voice: true))
    }

    private func show(_ packet: LibwebrtcPackets.Packet, over connection: RobotConnection, _ now: MediaTime) {
        guard let video else { return }
        if packet.isStart {
            let base = (picture.layer?.base ?? 0) &+ (packet.layer == 0 ? 1 : 0)
            picture = SyntheticPicture(
                number: picture.number &+ 1, isKeyframe: packet.isKeyframe,
                layer: .init(index: packet.layer, base: base))
            if packet.isKeyframe { keyframes += 1 }
        }
        picture.describe(isStart: packet.isStart, to: memory)
        memory.storeBytes(of: now.nanoseconds, toByteOffset: LoadSource.videoMark, as: Int64.self)
        connection.send(
            UnsafeRawBufferPointer(rebasing: memory[..<packet.length]), of: video,
            timestamp: timestamp(packet.encodedAt, rate: 90_000), marker: packet.isEnd, now: now)
    }
}
