import Wire

extension ClientMessage {
    /// The approximate size of a negotiation message in bytes; `nil` for all other messages, whose cost does not
    /// depend on their size.
    var negotiationSize: Int? {
        switch self {
        case .session(.negotiate(let verb)): verb.size
        case .media(.offer(let offer)): offer.sdp.utf8.count
        default: nil
        }
    }
}
