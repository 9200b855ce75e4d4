import RTC

/// Sends a programme over a connection, round after round, in the connection's first track of each kind.
final class ProgrammePlayer: RobotSource {
    /// Loud enough to be somebody who speaks, in -dBov: the programme is not measured.
    private static let level = HeaderExtensions.AudioLevel(level: 30, voice: true)

    private let programme: Programme
    private var playback: Playback?
    private var packetiser: VP8Packetiser
    private var video: Clock
    private var audio: Clock
    private var wantsKeyframe = false

    /// What a track's timestamps count: from a random beginning (RFC 3550 §5.1), and always forward.
    private struct Clock {
        let rate: Int64
        var base: UInt32
        var origin: MediaTime?
        var last: Int64 = -1

        mutating func timestamp(of time: MediaTime) -> UInt32 {
            let origin = origin ?? time
            self.origin = origin
            // In microseconds, or days would overflow.
            let passed = (time - origin).nanoseconds / 1_000 * rate / 1_000_000
            last = max(passed, last + 1)
            return base &+ UInt32(truncatingIfNeeded: last)
        }
    }

    init(_ programme: Programme, using random: inout some RandomNumberGenerator) {
        self.programme = programme
        packetiser = VP8Packetiser(pictureID: UInt16.random(in: 0...0x7fff, using: &random))
        video = Clock(rate: 90_000, base: random.next())
        audio = Clock(rate: Int64(OpusPacket.clockRate), base: random.next())
    }

    /// At once, until it has begun: it does when the connection is connected.
    var nextDue: MediaTime? {
        playback == nil || wantsKeyframe ? MediaTime(nanoseconds: 0) : playback?.nextDue
    }

    func produce(over connection: RobotConnection, now: MediaTime) {
        if playback == nil { playback = Playback(programme, beginning: now) }
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
        programme.video?.withItem(due.item) { frame in
            packetiser.cut(frame) { payload, marker in
                connection.send(payload, of: track, timestamp: timestamp, marker: marker, now: now)
            }
        }
    }

    private func sendSound(_ due: Playback.Due, over connection: RobotConnection, _ now: MediaTime) {
        guard let track = connection.tracks.first(where: { $0.kind == .audio }) else { return }
        // The marker begins a spurt of talk (RFC 3551 §4.1), and this one has no pauses.
        let isFirst = audio.origin == nil
        let timestamp = audio.timestamp(of: due.at)
        programme.audio?.withItem(due.item) { packet in
            connection.send(packet, of: track, timestamp: timestamp, marker: isFirst, now: now, level: Self.level)
        }
    }
}
