import RTC

/// Who speaks in a session, from the audio levels that publishers put into their packets (RFC 6464).
///
/// Loudness is smoothed, and somebody else has to be clearly louder for a while: a cough does not take the floor.
struct ActiveSpeaker: Sendable {
    /// A decision this often is what an eye can follow.
    static let interval = MediaInterval.milliseconds(300)
    /// In decibels above silence (127 minus the level of RFC 6464): quiet rooms stay below it.
    static let audible = 60.0
    static let margin = 6.0
    /// Of what a new packet says; 50 packets a second.
    private static let weight = 0.05

    private struct Voice: Sendable {
        var loudness = 0.0
        var heardAt = MediaTime(nanoseconds: 0)
    }

    private var voices: [Key: Voice] = [:]
    private(set) var current: Key?

    /// One packet's level, 0 (loudest) to 127 (silence).
    mutating func record(_ stream: Key, level: UInt8, now: MediaTime) {
        let loudness = Double(127 - min(level, 127))
        guard let index = voices.index(forKey: stream) else {
            voices[stream] = Voice(loudness: loudness * Self.weight, heardAt: now)
            return
        }
        voices.values[index].loudness += (loudness - voices.values[index].loudness) * Self.weight
        voices.values[index].heardAt = now
    }

    mutating func gone(_ stream: Key) { voices[stream] = nil }

    /// Whether the floor changed hands since the last time.
    mutating func update(now: MediaTime) -> Bool {
        let before = current
        for (stream, voice) in voices where now - voice.heardAt > Self.interval {
            // Without packets (muted, DTX) there is silence.
            voices[stream]?.loudness = voice.loudness * 0.5
        }
        let loudest = voices.max { ($0.value.loudness, $0.key.low) < ($1.value.loudness, $1.key.low) }
        let floor = current.flatMap { voices[$0]?.loudness }
        if floor == nil { current = nil }
        if let loudest, loudest.value.loudness > Self.audible, loudest.key != current,
            loudest.value.loudness > (floor ?? 0) + (floor == nil ? 0 : Self.margin)
        {
            current = loudest.key
        }
        return current != before
    }

    var isEmpty: Bool { voices.isEmpty }
}

extension Router {
    func recordAudioLevel(_ packet: RTPPacket, _ bytes: UnsafeRawBufferPointer, _ track: IncomingTrack, now: MediaTime)
    {
        guard let publication = track.publication, publication.forwardsAudio,
            let range = packet.headerExtension(track.audioLevelID, in: bytes),
            let level = HeaderExtensions.AudioLevel(UnsafeRawBufferPointer(rebasing: bytes[range]))
        else { return }
        speakers[publication.session, default: ActiveSpeaker()].record(publication.stream, level: level.level, now: now)
    }

    func updateActiveSpeakers(now: MediaTime) {
        if let speakersAt, now - speakersAt < ActiveSpeaker.interval { return }
        speakersAt = now
        for session in speakers.keys {
            if speakers[session]?.update(now: now) ?? false {
                events.append(.speaking(session: session, stream: speakers[session]?.current))
            }
            if speakers[session]?.isEmpty ?? false { speakers[session] = nil }
        }
    }
}
