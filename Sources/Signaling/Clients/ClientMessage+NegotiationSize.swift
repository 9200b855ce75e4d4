import Wire

extension ClientMessage {
    /// Approximate size of a negotiation message in bytes; `nil` for messages with the normal cost.
    var negotiationSize: Int? {
        switch self {
        case .session(.negotiate(let verb)): verb.size
        case .media(.offer(let offer)): offer.sdp.utf8.count
        default: nil
        }
    }
}
