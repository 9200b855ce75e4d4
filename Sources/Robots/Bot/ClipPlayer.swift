import RTC

/// Plays a clip in a loop over the connection's first track of each kind.
final class ClipPlayer: RobotSource {
    /// The audio level in every packet, in -dBov, loud enough to count as speech. The clip's actual level is not measured.
    private static let level = HeaderExtensions.AudioLevel(level: 30, voice: true)

    /// The playback of one simulcast layer, or of the whole clip without simulcast.
    private struct Layer {
        let rid: String?
        let clip: MediaClip
        var playback: Playback?
        var packetizer: VP8Packetizer
        var clock: Clock
        var wantsKeyframe = false

        var nextDue: MediaTime? {
            playback == nil || wantsKeyframe ? MediaTime(nanoseconds: 0) : playback?.nextDue
        }
    }

    private var layers: [Layer]
    private var audio: Clock

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
        // All layers have the same timestamps, as in browsers.
        let clock = Clock(rate: 90_000, base: random.next())
        let rids: [String?] = clip.rids.isEmpty ? [nil] : clip.rids
        layers = rids.enumerated().map { index, rid in
            Layer(
                rid: rid, clip: clip.layer(index),
                packetizer: VP8Packetizer(pictureID: UInt16.random(in: 0...0x7fff, using: &random)), clock: clock)
        }
        audio = Clock(rate: Int64(OpusPacket.clockRate), base: random.next())
    }

    /// The time of the next item. Before playback has started, the player is due immediately; playback starts once the
    /// connection is connected.
    var nextDue: MediaTime? { layers.compactMap(\.nextDue).min() }

    func produce(over connection: RobotConnection, now: MediaTime) {
        for index in layers.indices {
            if layers[index].playback == nil {
                let maxHold = layers.count > 1 ? MediaInterval.zero : Playback.maxHold
                layers[index].playback = Playback(layers[index].clip, beginning: now, maxHold: maxHold)
            }
            if layers[index].wantsKeyframe { layers[index].playback?.showKeyframe(now: now) }
            layers[index].wantsKeyframe = false
            while let due = layers[index].playback?.next(now: now) {
                switch due.kind {
                case .video: sendFrame(due, of: &layers[index], over: connection, now)
                case .audio: sendSound(due, of: layers[index].clip, over: connection, now)
                }
            }
        }
    }

    func keyframeWanted(of track: RobotTrack) {
        guard track.kind == .video else { return }
        for index in layers.indices where layers[index].rid == track.rid { layers[index].wantsKeyframe = true }
    }

    private func sendFrame(
        _ due: Playback.Due, of layer: inout Layer, over connection: RobotConnection, _ now: MediaTime
    ) {
        let rid = layer.rid
        guard let track = connection.tracks.first(where: { $0.kind == .video && $0.rid == rid }) else { return }
        let timestamp = layer.clock.timestamp(of: due.at)
        layer.clip.video?.withItem(due.item) { frame in
            layer.packetizer.cut(frame) { payload, marker in
                connection.send(payload, of: track, timestamp: timestamp, marker: marker, now: now)
            }
        }
    }

    private func sendSound(
        _ due: Playback.Due, of clip: MediaClip, over connection: RobotConnection, _ now: MediaTime
    ) {
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
