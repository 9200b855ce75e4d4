import RTC

/// The loudness of a publisher's audio. It increases with the first loud packets, so that the start of a word is not
/// cut off, and decreases slowly, so that pauses between words do not count.
struct Voice: Equatable, Sendable {
    /// The loudness in decibels above silence: 127 minus the level of RFC 6464.
    var loudness = 0.0
    /// Whether the audio is forwarded. In small sessions all audio is forwarded, in large ones only the loudest.
    var isForwarded = true
    private var lastPacketAt = MediaTime(nanoseconds: 0)

    /// The weights of a louder and of a quieter packet in the moving average. At 50 packets a second, a louder level
    /// is nearly reached within 60 ms, and silence halves the loudness within 0.7 s.
    private static let attack = 0.5
    private static let release = 0.02
    /// The level assumed for packets without one: that of a person who speaks softly.
    static let unknownLevel: UInt8 = 60
    /// How long packets may fail to arrive before the loudness decreases. This is shorter than the 400 ms between Opus
    /// packets in DTX, so that a silent stream becomes quieter, too.
    private static let silence = MediaInterval.milliseconds(300)
    /// The factor by which `fade` multiplies the loudness in each `LoudestAudio.interval` once no packets arrive.
    private static let decay = 0.9

    /// - Parameters:
    ///   - loudness: in decibels above silence.
    ///   - isForwarded: whether the audio is forwarded now.
    init(loudness: Double = 0, isForwarded: Bool = true) {
        (self.loudness, self.isForwarded) = (loudness, isForwarded)
    }

    /// Records the level of one packet, from 0 (loudest) to 127 (silence).
    mutating func record(_ level: UInt8, now: MediaTime) {
        let value = Double(127 - min(level, 127))
        loudness += (value - loudness) * (value > loudness ? Self.attack : Self.release)
        lastPacketAt = now
    }

    /// Lowers the loudness if no packets have arrived for a while. Must be called every `LoudestAudio.interval`.
    mutating func fade(now: MediaTime) {
        if now - lastPacketAt > Self.silence { loudness *= Self.decay }
    }
}

/// Chooses the audio to forward in a session with many publishers: the loudest. Listeners cannot follow more voices at
/// once, and each voice adds to the bitrate of every subscriber.
enum LoudestAudio {
    /// The time between choices. A new speaker who is loud enough is heard after this time at the latest.
    static let interval = MediaInterval.milliseconds(100)
    /// The number of decibels by which a voice must be louder than a forwarded one to take its place.
    static let margin = ActiveSpeaker.margin

    /// Returns whether to forward each voice.
    /// - Parameters:
    ///   - voices: the voices of one session. Of equally loud voices, the earlier ones are forwarded.
    ///   - limit: the maximum number of forwarded voices.
    static func choose(_ voices: [Voice], limit: Int) -> [Bool] {
        guard voices.count > limit else { return voices.map { _ in true } }
        let ranks = voices.map { $0.loudness + ($0.isForwarded ? margin : 0) }
        let loudest = ranks.indices.sorted { (ranks[$1], $0) < (ranks[$0], $1) }.prefix(max(0, limit))
        var chosen = voices.map { _ in false }
        for index in loudest { chosen[index] = true }
        return chosen
    }
}

extension Router {
    /// Records a packet's audio level (RFC 6464) for the active speaker and the choice of the loudest audio. A packet
    /// without a level counts as `Voice.unknownLevel`, but only for the loudest audio.
    func hear(_ packet: RTPPacket, _ bytes: UnsafeRawBufferPointer, _ track: IncomingTrack, now: MediaTime) {
        guard let publication = track.publication, publication.forwardsAudio else { return }
        guard track.audioLevelID != 0, let range = packet.headerExtension(track.audioLevelID, in: bytes),
            let level = HeaderExtensions.AudioLevel(UnsafeRawBufferPointer(rebasing: bytes[range]))
        else { return track.voice.record(Voice.unknownLevel, now: now) }
        track.voice.record(level.level, now: now)
        speakers[publication.session, default: ActiveSpeaker()].record(publication.stream, level: level.level, now: now)
    }

    /// Chooses the audio to forward in each session.
    func updateLoudest(now: MediaTime) {
        if let loudestAt, now - loudestAt < LoudestAudio.interval { return }
        loudestAt = now
        if audioChanged { gatherCrowds() }
        for crowd in crowds {
            for track in crowd { track.voice.fade(now: now) }
            let chosen = LoudestAudio.choose(crowd.map(\.voice), limit: settings.loudestStreams)
            for (track, isForwarded) in zip(crowd, chosen) where track.voice.isForwarded != isForwarded {
                track.setForwarded(isForwarded)
            }
        }
    }

    /// Collects the audio tracks of each session that has more of them than can be forwarded. In all other sessions,
    /// all audio is forwarded again.
    private func gatherCrowds() {
        audioChanged = false
        let former = crowds.joined()
        crowds = []
        if publications.count > settings.loudestStreams {
            var sessions: [String: [IncomingTrack]] = [:]
            for publication in publications.values where publication.forwardsAudio {
                guard let mid = publication.mids.audio, let track = clients[publication.client]?.send?.incoming(mid),
                    track.kind == .audio
                else { continue }
                sessions[publication.session, default: []].append(track)
            }
            crowds = sessions.values.filter { $0.count > settings.loudestStreams }
        }
        // Stop limiting tracks that are now muted or whose session has become small.
        let remaining = Set(crowds.joined().map(ObjectIdentifier.init))
        for track in former where !remaining.contains(ObjectIdentifier(track)) { track.setForwarded(true) }
    }
}

extension IncomingTrack {
    /// Starts or stops forwarding the audio. Packets that are not forwarded leave no gap in the sequence numbers, so subscribers
    /// take their absence for a pause.
    func setForwarded(_ isForwarded: Bool) {
        guard voice.isForwarded != isForwarded else { return }
        voice.isForwarded = isForwarded
        if !isForwarded { for subscriber in subscribers { subscriber.pauseForwarding() } }
    }
}
