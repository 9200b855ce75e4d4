import MediaFiles
import RTC

/// Plays a clip in a loop over the connection's first track of each kind, or over the tracks of given sections.
package final class ClipPlayer: RobotSource {
    /// The mids of the sections to play in. Media of a kind without a mid is not played.
    package struct Sections: Equatable {
        package var audio: String?
        package var video: String?
        package init(audio: String? = nil, video: String? = nil) { (self.audio, self.video) = (audio, video) }
    }

    /// The first RTP timestamps, for media that continues other media on the same tracks; nil for a random one.
    package struct Timestamps {
        package var audio: UInt32?
        package var video: UInt32?
        package init(audio: UInt32? = nil, video: UInt32? = nil) { (self.audio, self.video) = (audio, video) }
    }

    /// Called with each video frame of the largest layer when it is sent, and with the time at which the frame was
    /// due.
    package var onFrame: ((_ frame: UnsafeRawBufferPointer, _ isKeyframe: Bool, _ at: MediaTime) -> Void)?
    /// The sections to play in; nil to play over the first track of each kind.
    package var sections: Sections?
    package var isAudioOn = true
    /// Whether video is sent. Video that is turned on begins with a keyframe.
    package var isVideoOn = true { didSet { if isVideoOn, !oldValue { wantKeyframes { _ in true } } } }
    /// The RIDs of the layers to send; nil for all. A layer that is turned on begins with a keyframe.
    package var activeRIDs: Set<String>? {
        didSet { wantKeyframes { rid in isActive(rid) && !(oldValue?.contains(rid ?? "") ?? true) } }
    }

    /// The audio level in every packet, in -dBov, loud enough to count as speech. The clip's actual level is not measured.
    private static let level = HeaderExtensions.AudioLevel(level: 30, voice: true)

    /// The playback of one simulcast layer, or of the whole clip if it has no simulcast layers.
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
    /// The RID of the largest layer; nil without simulcast.
    private let largest: String?
    private var audio: Clock

    /// Converts times to RTP timestamps, which start at `base` (random unless given, RFC 3550 §5.1) and always
    /// increase.
    private struct Clock {
        let rate: Int64
        var base: UInt32
        var origin: MediaTime?
        var last: Int64 = -1

        mutating func timestamp(of time: MediaTime) -> UInt32 {
            let origin = origin ?? time
            self.origin = origin
            // Convert to microseconds first: nanoseconds times the rate would overflow after about a day.
            let passed = (time - origin).nanoseconds / 1_000 * rate / 1_000_000
            last = max(passed, last + 1)
            return base &+ UInt32(truncatingIfNeeded: last)
        }
    }

    package init(
        _ clip: MediaClip, from first: Timestamps = Timestamps(), using random: inout some RandomNumberGenerator
    ) {
        // All layers have the same timestamps, as in browsers.
        let clock = Clock(rate: 90_000, base: first.video ?? random.next())
        let rids: [String?] = clip.rids.isEmpty ? [nil] : clip.rids
        largest = rids[0]
        layers = rids.enumerated().map { index, rid in
            Layer(
                rid: rid, clip: clip.layer(index),
                packetizer: VP8Packetizer(pictureID: UInt16.random(in: 0...0x7fff, using: &random)), clock: clock)
        }
        audio = Clock(rate: Int64(OpusPacket.clockRate), base: first.audio ?? random.next())
    }

    /// The time of the next item; nil if there is nothing to play. Before playback has started, the player is due
    /// immediately; playback starts once the connection is connected.
    package var nextDue: MediaTime? { layers.compactMap(\.nextDue).min() }

    package func produce(over connection: RobotConnection, now: MediaTime) {
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

    package func keyframeWanted(of track: RobotTrack) {
        guard track.kind == .video, plays(over: track) else { return }
        wantKeyframes { $0 == track.rid }
    }

    private func wantKeyframes(where isMeant: (String?) -> Bool) {
        for index in layers.indices where isMeant(layers[index].rid) { layers[index].wantsKeyframe = true }
    }

    private func isActive(_ rid: String?) -> Bool {
        guard let activeRIDs else { return true }
        return rid.map(activeRIDs.contains) ?? !activeRIDs.isEmpty
    }

    private func plays(over track: RobotTrack) -> Bool {
        guard let sections else { return true }
        return track.mid == (track.kind == .audio ? sections.audio : sections.video)
    }

    private func sendFrame(
        _ due: Playback.Due, of layer: inout Layer, over connection: RobotConnection, _ now: MediaTime
    ) {
        let rid = layer.rid
        let timestamp = layer.clock.timestamp(of: due.at)
        guard isVideoOn, isActive(rid),
            let track = connection.tracks.first(where: { $0.kind == .video && $0.rid == rid && plays(over: $0) })
        else { return }
        track.framesSent += 1
        if due.item.isKeyframe { track.keyframesSent += 1 }
        layer.clip.video?.withItem(due.item) { frame in
            if rid == largest { onFrame?(frame, due.item.isKeyframe, due.at) }
            layer.packetizer.cut(frame) { payload, marker in
                connection.send(payload, of: track, timestamp: timestamp, marker: marker, now: now)
            }
        }
    }

    private func sendSound(
        _ due: Playback.Due, of clip: MediaClip, over connection: RobotConnection, _ now: MediaTime
    ) {
        guard isAudioOn, let track = connection.tracks.first(where: { $0.kind == .audio && plays(over: $0) }) else {
            return
        }
        // The marker bit marks the start of a talkspurt (RFC 3551 §4.1). The clip's audio has no pauses, so set the bit only in
        // the first packet.
        let isFirst = audio.origin == nil
        let timestamp = audio.timestamp(of: due.at)
        clip.audio?.withItem(due.item) { packet in
            connection.send(packet, of: track, timestamp: timestamp, marker: isFirst, now: now, level: Self.level)
        }
    }
}
