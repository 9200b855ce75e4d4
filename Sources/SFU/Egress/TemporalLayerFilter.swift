import RTC

/// Limits a subscriber to VP8's lower temporal layers (RFC 7741 §4.2). Packets of higher layers can be dropped because no lower
/// layer refers to them.
struct TemporalLayerFilter: Sendable {
    /// The highest temporal layer that the subscriber should get; `FeedPacket.noLayer` means all layers.
    var wanted = FeedPacket.noLayer
    /// The highest temporal layer that is currently forwarded.
    private var passing = FeedPacket.noLayer

    /// Prepares for a keyframe, after which all wanted layers can be forwarded.
    mutating func begin() { passing = wanted }

    mutating func drops(_ pending: FeedPacket) -> Bool {
        let layer = pending.temporalLayer
        guard passing & wanted != FeedPacket.noLayer, layer != FeedPacket.noLayer else { return false }
        if pending.startsPicture {
            if pending.startsKeyframe || wanted < passing {
                passing = wanted
            } else if pending.isLayerSync, layer <= wanted, layer == passing &+ 1 {
                // This frame, and later frames in its layer, do not refer to any frame that was dropped.
                passing = layer
            }
        }
        return layer > passing
    }
}
