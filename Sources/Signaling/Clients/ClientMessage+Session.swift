import Wire

extension ClientMessage {
    /// The session a session verb names.
    var session: SessionID? {
        switch self {
        case .publish(let verb): verb.session
        case .unpublish(let verb), .unsubscribe(let verb), .forceUnpublish(let verb): verb.session
        case .update(let verb): verb.session
        case .subscribe(let verb): verb.session
        case .negotiate(let verb): verb.session
        case .connected(let verb): verb.session
        case .signal(let verb): verb.session
        case .forceDisconnect(let verb): verb.session
        case .forceMute(let verb): verb.session
        default: nil
        }
    }

    /// About how many bytes of a negotiation this is; `nil` for what costs as any verb does.
    var negotiationSize: Int? {
        switch self {
        case .negotiate(let verb): verb.size
        case .mediaOffer(let offer): offer.sdp.utf8.count
        default: nil
        }
    }
}
