import Wire

/// The order of negotiation between two ends of relayed media (`protocol/README.md` §4): which peer connection and
/// which offer a message belongs to, and which of two crossing offers is valid.
///
/// Each peer connection has an id, which the end that makes its first offer chooses. The offers on it are numbered,
/// over both ends. An answer repeats the number of its offer.
struct Negotiation: Sendable {
    /// What a message says about its negotiation. Both are nil in messages of clients that know nothing of it.
    struct Label: Hashable, Sendable {
        var id: String?
        var number: Int?
    }

    /// What to do with an offer.
    enum Decision: Sendable {
        /// Apply and answer it. An own offer is withdrawn.
        case accept
        /// It begins another peer connection: replace the own one, then accept the offer.
        case renew
        /// It was answered before: send the answer again.
        case `repeat`
        /// The own offer is the valid one, or this one is outdated.
        case ignore
        /// It continues a peer connection that no longer exists here. The other end has to begin a new one.
        case refuse
    }

    /// Whether the other end's offer is valid if two cross.
    let isPolite: Bool
    private var id: String?
    /// The highest number of an offer of either end.
    private var number = 0
    /// The number of the own offer that waits for its answer; nil if there is none.
    private var offered: Int?
    /// The number of the other end's offer that was answered last; 0 if there is none.
    private var answered = 0
    /// Whether both descriptions were ever set.
    private var isDescribed = false

    init(isPolite: Bool) { self.isPolite = isPolite }

    /// The label for candidates.
    var label: Label { Label(id: id) }
    /// The label of the answer to the offer that was accepted last.
    var answerLabel: Label { answered > 0 ? Label(id: id, number: answered) : Label() }
    /// The label of the own offer that waits for its answer; nil if there is none.
    var pendingLabel: Label? { offered.map { Label(id: id, number: $0) } }
    /// Whether an own offer waits for its answer.
    var isOffering: Bool { offered != nil }

    /// Forgets everything, because the peer connection was replaced.
    mutating func reset() { self = Self(isPolite: isPolite) }

    /// Begins an offer.
    mutating func offer(using generator: inout some RandomNumberGenerator) -> Label {
        if id == nil { id = String(generator.next(), radix: 36) + String(generator.next(), radix: 36) }
        number = min(number + 1, Limits.offerNumber)
        offered = number
        return Label(id: id, number: number)
    }

    /// Ends an own offer that could not be made.
    mutating func withdraw() { offered = nil }

    /// Whether this own offer still waits for its answer.
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

    /// The other end's offer was applied.
    mutating func accepted(_ label: Label) {
        (isDescribed, offered) = (true, nil)
        guard let theirs = label.id else { return }
        if theirs != id { number = 0 }
        (id, answered) = (theirs, label.number ?? 1)
        number = max(number, answered)
    }

    /// Whether this is the answer to the own offer.
    func isAnswer(_ label: Label) -> Bool { isOffering && (label.id == nil || isPending(label)) }

    /// The answer to the own offer was applied.
    mutating func completed() { (isDescribed, offered) = (true, nil) }

    /// Whether a candidate belongs to this peer connection, as far as its label says.
    func concerns(_ label: Label) -> Bool { label.id == nil || label.id == id }
}
