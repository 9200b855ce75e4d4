import Wire

/// Coordinates the negotiation between two peers with relayed media (`protocol/README.md` §4): decides which peer
/// connection and which offer a message belongs to, and which of two crossing offers is valid.
///
/// Each peer connection has an id, chosen by the peer that makes its first offer. The offers on it are numbered from
/// 1, with one counter for both peers. An answer has the number of its offer.
struct Negotiation: Sendable {
    /// The id of the peer connection and the number of the offer that a message belongs to. Both are nil in messages
    /// from clients that do not support labels.
    struct Label: Hashable, Sendable {
        var id: String?
        var number: Int?
    }

    /// What to do with an offer.
    enum Decision: Sendable {
        /// Apply and answer the offer. A pending local offer is withdrawn.
        case accept
        /// The offer starts another peer connection: replace the local one, then accept the offer.
        case renew
        /// The offer was answered before: resend the answer.
        case `repeat`
        /// Ignore the offer: the local offer is the valid one, or this one is outdated.
        case ignore
        /// The offer belongs to a peer connection that this side no longer has. The other peer has to start a new one.
        case refuse
    }

    /// Whether the other peer's offer is the valid one if two offers cross.
    let isPolite: Bool
    private var id: String?
    /// The highest offer number of either peer.
    private var number = 0
    /// The number of the local offer that awaits its answer; nil if there is none.
    private var offered: Int?
    /// The number of the remote offer that was answered last; 0 if there is none.
    private var answered = 0
    /// Whether a local and a remote description have been set.
    private var isDescribed = false

    init(isPolite: Bool) { self.isPolite = isPolite }

    /// The label for candidates, which has no number.
    var label: Label { Label(id: id) }
    /// The label of the answer to the offer that was accepted last; empty if that offer had no label.
    var answerLabel: Label { answered > 0 ? Label(id: id, number: answered) : Label() }
    /// The label of the local offer that awaits its answer; nil if there is none.
    var pendingLabel: Label? { offered.map { Label(id: id, number: $0) } }
    /// Whether a local offer awaits its answer.
    var isOffering: Bool { offered != nil }

    /// Resets everything, because the peer connection was replaced.
    mutating func reset() { self = Self(isPolite: isPolite) }

    /// Starts an offer and returns its label.
    mutating func offer(using generator: inout some RandomNumberGenerator) -> Label {
        if id == nil { id = String(generator.next(), radix: 36) + String(generator.next(), radix: 36) }
        number = min(number + 1, Limits.offerNumber)
        offered = number
        return Label(id: id, number: number)
    }

    /// Withdraws the local offer, because it failed or is rolled back.
    mutating func withdraw() { offered = nil }

    /// Whether this local offer still awaits its answer.
    func isPending(_ label: Label) -> Bool { offered != nil && label.id == id && label.number == offered }

    func decide(_ label: Label) -> Decision {
        let isOutdone = isOffering && !isPolite
        guard let theirs = label.id else { return isOutdone ? .ignore : .accept }
        let number = label.number ?? 1
        if theirs == id {
            if number < answered { return .ignore }
            if number == answered && !isOffering { return .repeat }
            return isOutdone ? .ignore : .accept
        }
        if number > 1 { return .refuse }
        if isDescribed { return .renew }
        return isOutdone ? .ignore : .accept
    }

    /// Records that the remote offer was applied.
    mutating func accepted(_ label: Label) {
        (isDescribed, offered) = (true, nil)
        guard let theirs = label.id else { return }
        if theirs != id { number = 0 }
        (id, answered) = (theirs, label.number ?? 1)
        number = max(number, answered)
    }

    /// Whether an answer with this label belongs to the pending local offer. Without an id, it belongs to any pending
    /// offer.
    func isAnswer(_ label: Label) -> Bool { isOffering && (label.id == nil || isPending(label)) }

    /// Records that the answer to the local offer was applied.
    mutating func completed() { (isDescribed, offered) = (true, nil) }

    /// Whether a candidate belongs to this peer connection. True for a label without an id.
    func concerns(_ label: Label) -> Bool { label.id == nil || label.id == id }
}
