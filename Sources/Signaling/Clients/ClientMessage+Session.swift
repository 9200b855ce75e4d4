import Wire

extension ClientMessage {
    /// About how many bytes of a negotiation this is; `nil` for what costs as any verb does.
    var negotiationSize: Int? {
        switch self {
        case .session(.negotiate(let verb)): verb.size
        case .media(.offer(let offer)): offer.sdp.utf8.count
        default: nil
        }
    }
}
