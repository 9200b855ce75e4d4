import RTC

/// Which of VP8's temporal layers a subscriber gets (RFC 7741 §4.2). Packets of higher layers are dropped; no other layer
/// refers to them.
struct TemporalLayerFilter: Sendable {
    /// The highest that is wanted; `PendingPacket.noLayer` for all.
    var wanted = PendingPacket.noLayer
    /// The highest that passes now.
    private var passing = PendingPacket.noLayer

    /// A keyframe comes next: any layer may begin.
    mutating func begin() { passing = wanted }

    mutating func drops(_ pending: PendingPacket) -> Bool {
        let layer = pending.temporalLayer
        guard passing & wanted != PendingPacket.noLayer, layer != PendingPacket.noLayer else { return false }
        if pending.startsPicture {
            if pending.startsKeyframe || wanted < passing {
                passing = wanted
            } else if pending.isLayerSync, layer <= wanted, layer == passing &+ 1 {
                // This picture and those after it in its layer refer to none that was dropped.
                passing = layer
            }
        }
        return layer > passing
    }
}
