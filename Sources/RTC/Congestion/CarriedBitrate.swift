/// What the path has carried lately: the highest bitrate that arrived in the last 5 to 10 s.
///
/// The estimate falls by 15 % with each queue that grows, even if one keyframe caused it, and grows again only after a probe. For
/// the little that must not stop meanwhile, this is a better measure: it has arrived.
struct CarriedBitrate: Sendable {
    private static let window = MediaInterval.seconds(5)

    private var highest: Bitrate?
    private var former: Bitrate?
    private var since: MediaTime?

    /// Nil if unknown.
    var bitrate: Bitrate? { highest.map { max($0, former ?? $0) } }

    mutating func add(_ bitrate: Bitrate, now: MediaTime) {
        if since.map({ now - $0 >= Self.window }) ?? true { (former, highest, since) = (highest, bitrate, now) }
        highest = max(highest ?? bitrate, bitrate)
    }

    /// Forgets what was carried before the path became slow.
    mutating func restart(at bitrate: Bitrate, now: MediaTime) { (former, highest, since) = (nil, bitrate, now) }
}
