import RTC

/// Decides when to notify a publisher which encodings subscribers need. A newly needed encoding is announced
/// immediately. One that is no longer needed is announced after a delay, so that a subscriber that returns soon does
/// not wait for a keyframe. The delay also bounds the number of messages about encodings, whatever subscribers do.
struct LayerAnnouncement: Sendable {
    /// How long an encoding must have no subscribers before the publisher may stop sending it.
    static let layerReleaseDelay = MediaInterval.seconds(2)

    /// An announcement to a publisher.
    struct Change: Equatable, Sendable {
        /// The encodings to send, one bit each.
        var layers: UInt8
        /// The payload type of the codec to send; nil for the publisher's choice.
        var payloadType: UInt8?
    }

    private var stream: Key?
    private var announced: Change?
    /// Whether the publisher has never received an announcement about this track.
    private var isFirst = true
    private var begunAt: MediaTime?
    private var wantedAt = [MediaTime?](repeating: nil, count: IncomingTrack.maxEncodings)

    /// Decides whether to announce the needed encodings and the codec now.
    /// - Parameters:
    ///   - demand: what subscribers demand now.
    ///   - codec: the payload type of the codec that the publisher should send; nil for the publisher's own choice.
    ///   - isLayered: whether the publisher sends layers. Without layers, it sends its video until an announcement
    ///     says that no subscriber needs it.
    ///   - wasAnnounced: whether this stream was announced before, perhaps on an earlier connection.
    /// - Returns: the announcement to send; nil if there is nothing new to announce.
    mutating func next(
        for stream: Key, _ demand: LayerDemand, codec: UInt8? = nil, isLayered: Bool = true, wasAnnounced: Bool = false,
        now: MediaTime
    ) -> Change? {
        if self.stream != stream {
            isFirst = self.stream == nil
            (self.stream, announced, begunAt) = (stream, nil, now)
            for index in wantedAt.indices { wantedAt[index] = nil }
        }
        var current: UInt8 = 0
        for index in wantedAt.indices {
            let bit = UInt8(1) << UInt8(index)
            if (demand.wanted | demand.refused) & bit != 0 { wantedAt[index] = now }
            if let at = wantedAt[index], now - at < Self.layerReleaseDelay { current |= bit }
        }
        // It is not known yet which encodings a new stream sends. Announce needed encodings immediately, but wait for
        // the delay before announcing that none is needed.
        if announced == nil, current == 0, let begunAt, now - begunAt < Self.layerReleaseDelay { return nil }
        let news = Change(layers: current, payloadType: codec)
        if announced == nil, isFirst, !wasAnnounced, !isLayered, current != 0 { announced = Change(layers: current) }
        guard announced != news else { return nil }
        announced = news
        return news
    }
}
