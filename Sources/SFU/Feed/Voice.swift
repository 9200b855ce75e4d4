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
