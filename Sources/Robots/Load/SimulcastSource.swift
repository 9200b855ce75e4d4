import Peers
import RTC

/// A synthetic camera with three simulcast layers, and a microphone. The layers look like VP8 in 640 × 360, 320 × 180
/// and 160 × 90, at 24 frames a second. Each packet contains its send time, at the same offset as in `LoadSource`, and
/// its layer.
final class SimulcastSource: RobotSource {
    /// A simulcast layer of the synthetic camera.
    struct Layer {
        let rid: String
        let width: UInt16
        let height: UInt16
        /// The size in bytes of a frame that is not a keyframe. At 24 frames a second, the layers have 800, 300 and
        /// 100 kbit/s.
        let frame: Int
    }

    static let layers = [
        Layer(rid: "f", width: 640, height: 360, frame: 4167), Layer(rid: "h", width: 320, height: 180, frame: 1562),
        Layer(rid: "q", width: 160, height: 90, frame: 521),
    ]
    private static let frameInterval = MediaInterval(nanoseconds: 1_000_000_000 / 24)
    private static let packet = 1150
    /// The factor by which a keyframe is larger than another frame.
    private static let keyframe = 4
    private static let layerMark = LoadSource.videoMark + 8

    private let audio: RobotTrack?
    private let video: [RobotTrack?]
    private var audioDue: MediaTime
    private var frameDue: MediaTime
    private var wantsKeyframe = [true, true, true]
    private var number: UInt16 = 0
    private let origin: MediaTime
    private let memory = UnsafeMutableRawBufferPointer.allocate(byteCount: packet, alignment: 16)

    /// - Parameter connection: a connection that has already offered the section "a", and "v" with the RIDs of the layers.
    init(of connection: RobotConnection, now: MediaTime) {
        audio = connection.track("a")
        video = Self.layers.map { connection.track("v", rid: $0.rid) }
        (origin, audioDue, frameDue) = (now, now, now)
        for index in memory.indices { memory[index] = UInt8(truncatingIfNeeded: index &* 7) }
    }

    deinit { memory.deallocate() }

    var nextDue: MediaTime? { min(audioDue, frameDue) }

    func produce(over connection: RobotConnection, now: MediaTime) {
        if audioDue <= now {
            audioDue = max(audioDue + LoadSource.audioInterval, now - .milliseconds(100))
            speak(over: connection, now)
        }
        if frameDue <= now {
            frameDue = max(frameDue + Self.frameInterval, now - .milliseconds(100))
            number &+= 1
            for layer in Self.layers.indices { show(layer, over: connection, now) }
        }
    }

    func keyframeWanted(of track: RobotTrack) {
        guard let layer = video.firstIndex(where: { $0 === track }) else { return }
        wantsKeyframe[layer] = true
    }

    private func timestamp(_ now: MediaTime, rate: Int64) -> UInt32 {
        UInt32(truncatingIfNeeded: (now - origin).nanoseconds / 1000 * rate / 1_000_000)
    }

    private func speak(over connection: RobotConnection, _ now: MediaTime) {
        guard let audio else { return }
        LoadSource.writeAudio(sentAt: now, to: memory)
        connection.send(
            UnsafeRawBufferPointer(rebasing: memory[..<LoadSource.audioBytes]), of: audio,
            timestamp: timestamp(now, rate: 48_000), marker: false, now: now, level: .init(level: 30, voice: true))
    }

    private func show(_ layer: Int, over connection: RobotConnection, _ now: MediaTime) {
        guard let track = video[layer] else { return }
        let isKeyframe = wantsKeyframe[layer]
        wantsKeyframe[layer] = false
        var left = Self.layers[layer].frame * (isKeyframe ? Self.keyframe : 1)
        var isStart = true
        let picture = SyntheticPicture(
            number: number, isKeyframe: isKeyframe, width: Self.layers[layer].width, height: Self.layers[layer].height)
        let timestamp = timestamp(now, rate: 90_000)
        while left > 0 {
            let length = max(32, min(left, Self.packet))
            left -= length
            picture.describe(isStart: isStart, to: memory)
            memory.storeBytes(of: now.nanoseconds, toByteOffset: LoadSource.videoMark, as: Int64.self)
            memory[Self.layerMark] = UInt8(layer)
            connection.send(
                UnsafeRawBufferPointer(rebasing: memory[..<length]), of: track, timestamp: timestamp, marker: left <= 0,
                now: now)
            isStart = false
        }
    }

    /// Returns the index in `layers` of a video packet's layer; nil if the packet is not from a `SimulcastSource`.
    static func layer(of payload: UnsafeRawBufferPointer) -> Int? {
        guard payload.count > layerMark, layers.indices.contains(Int(payload[layerMark])) else { return nil }
        return Int(payload[layerMark])
    }
}
