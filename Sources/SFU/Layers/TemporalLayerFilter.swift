import RTC

/// Limits a subscriber to VP8's lower temporal layers (RFC 7741 §4.2). Packets of higher layers are dropped; no lower layer
/// refers to them.
struct TemporalLayerFilter: Sendable {
    /// The highest layer that the subscriber should get; `PendingPacket.noLayer` for all.
    var wanted = PendingPacket.noLayer
    /// The highest layer that is forwarded now.
    private var passing = PendingPacket.noLayer

    /// Prepares for a keyframe, at which any layer can start.
    mutating func begin() { passing = wanted }

    mutating func drops(_ pending: PendingPacket) -> Bool {
        let layer = pending.temporalLayer
        guard passing & wanted != PendingPacket.noLayer, layer != PendingPacket.noLayer else { return false }
        if pending.startsPicture {
            if pending.startsKeyframe || wanted < passing {
                passing = wanted
            } else if pending.isLayerSync, layer <= wanted, layer == passing &+ 1 {
                // This picture and later ones in its layer do not refer to any that was dropped.
                passing = layer
            }
        }
        return layer > passing
    }
}
