import RTC

/// The SSRCs that the receiving end of a relay assigns to encodings: two for each channel, one for packets and one for retransmissions
/// (RFC 4588). Channels are used again, because SRTP keeps state for each SSRC that it has ever seen.
struct RelayChannels {
    /// The number of channels. The 512 SSRCs fit in SRTP's tables (`SRTPSender.maxSources`).
    static let count = 256
    /// How long a channel rests after the sender has confirmed its release, because late packets of its previous encoding may arrive.
    static let rest = MediaInterval.seconds(1)

    /// The free channels. The last one is taken next.
    private var free: [UInt16] = (0..<UInt16(Self.count)).reversed()
    /// The channels that rest, in the order in which they become free.
    private var resting: [(channel: UInt16, until: MediaTime)] = []

    init() {}

    /// Returns a channel for an encoding; nil if all are in use.
    mutating func take(now: MediaTime) -> UInt16? {
        let rested = resting.prefix { $0.until <= now }
        free += rested.map { $0.channel }
        resting.removeFirst(rested.count)
        return free.popLast()
    }

    /// Releases a channel on which the sender sends nothing any more.
    mutating func release(_ channel: UInt16, now: MediaTime) { resting.append((channel, now + Self.rest)) }

    /// Returns the SSRC of a channel's packets. That of its retransmissions is the next number.
    static func ssrc(of channel: UInt16) -> UInt32 { (UInt32(channel) + 1) * 2 }

    /// Returns the channel that an SSRC belongs to; nil if it belongs to none.
    static func channel(of ssrc: UInt32) -> UInt16? {
        guard ssrc >= 2, ssrc / 2 <= UInt32(count) else { return nil }
        return UInt16(ssrc / 2 - 1)
    }
}
