/// The bitrate that the path has recently sustained: the highest bitrate that arrived in the last 5 to 10 s.
///
/// The estimate is lowered by 15 % each time a queue grows, even if a single keyframe caused the queue, and is raised
/// again only after a probe. To decide how much media must keep flowing until then, this is the better measure: this
/// bitrate really arrived.
struct SustainedBitrate: Sendable {
    private static let window = MediaInterval.seconds(5)

    private var highest: Bitrate?
    private var former: Bitrate?
    private var since: MediaTime?

    /// The sustained bitrate; nil if unknown.
    var bitrate: Bitrate? { highest.map { max($0, former ?? $0) } }

    mutating func add(_ bitrate: Bitrate, now: MediaTime) {
        if since.map({ now - $0 >= Self.window }) ?? true { (former, highest, since) = (highest, bitrate, now) }
        highest = max(highest ?? bitrate, bitrate)
    }

    /// Discards the earlier measurements, because the path has become slow.
    mutating func restart(at bitrate: Bitrate, now: MediaTime) { (former, highest, since) = (nil, bitrate, now) }
}
