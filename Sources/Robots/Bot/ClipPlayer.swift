import RTC

/// Plays a clip in a loop over the connection's first track of each kind.
final class ClipPlayer: RobotSource {
    /// The audio level in every packet, in -dBov, loud enough to count as speech. The clip's actual level is not measured.
    private static let level = HeaderExtensions.AudioLevel(level: 30, voice: true)

    private let clip: MediaClip
    private var playback: Playback?
    private var packetizer: VP8Packetizer
    private var video: Clock
    private var audio: Clock
    private var wantsKeyframe = false

    /// Converts times to RTP timestamps, which start at a random value (RFC 3550 §5.1) and always increase.
    private struct Clock {
        let rate: Int64
        var base: UInt32
        var origin: MediaTime?
        var last: Int64 = -1

        mutating func timestamp(of time: MediaTime) -> UInt32 {
            let origin = origin ?? time
            self.origin = origin
            // Divide to microseconds first: nanoseconds times the rate would overflow after days.
            let passed = (time - origin).nanoseconds / 1_000 * rate / 1_000_000
            last = max(passed, last + 1)
            return base &+ UInt32(truncatingIfNeeded: last)
        }
    }

    init(_ clip: MediaClip, using random: inout some RandomNumberGenerator) {
        self.clip = clip
        packetizer = VP8Packetizer(pictureID: UInt16.random(in: 0...0x7fff, using: &random))
        video = Clock(rate: 90_000, base: random.next())
        audio = Clock(rate: Int64(OpusPacket.clockRate), base: random.next())
    }

    /// The time of the next item. Before playback has started, the player is due immediately; playback starts once the
    /// connection is connected.
    var nextDue: MediaTime? {
        playback == nil || wantsKeyframe ? MediaTime(nanoseconds: 0) : playback?.nextDue
    }

    func produce(over connection: RobotConnection, now: MediaTime) {
        if playback == nil { playback = Playback(clip, beginning: now) }
        if wantsKeyframe { playback?.showKeyframe(now: now) }
        wantsKeyframe = false
        while let due = playback?.next(now: now) {
            switch due.kind {
            case .video: sendFrame(due, over: connection, now)
            case .audio: sendSound(due, over: connection, now)
            }
        }
    }

    func keyframeWanted(of track: RobotTrack) {
        if track.kind == .video { wantsKeyframe = true }
    }

    private func sendFrame(_ due: Playback.Due, over connection: RobotConnection, _ now: MediaTime) {
        guard let track = connection.tracks.first(where: { $0.kind == .video }) else { return }
        let timestamp = video.timestamp(of: due.at)
        clip.video?.withItem(due.item) { frame in
            packetizer.cut(frame) { payload, marker in
                connection.send(payload, of: track, timestamp: timestamp, marker: marker, now: now)
            }
        }
    }

    private func sendSound(_ due: Playback.Due, over connection: RobotConnection, _ now: MediaTime) {
        guard let track = connection.tracks.first(where: { $0.kind == .audio }) else { return }
        // The marker bit marks the start of a talkspurt (RFC 3551 §4.1). The clip's audio has no pauses, so set the bit only in
        // the first packet.
        let isFirst = audio.origin == nil
        let timestamp = audio.timestamp(of: due.at)
        clip.audio?.withItem(due.item) { packet in
            connection.send(packet, of: track, timestamp: timestamp, marker: isFirst, now: now, level: Self.level)
        }
    }
}
