import Wire

/// Who types in a match. The sender repeats that it types, and the receiver lets it expire, because the notification of the
/// end can be lost.
struct TypingClock: Equatable, Sendable {
    /// How often to repeat the notification while the person types.
    private static let repeats = Duration.seconds(2)
    /// After this time without a notification, the partner no longer counts as typing: two repeats and a slow network.
    private static let expires = Duration.seconds(5)

    private var isTyping = false
    private var toldAt: Timestamp?
    /// When the partner no longer counts as typing; nil if the partner does not type.
    private(set) var deadline: Timestamp?

    /// Returns whether to tell the partner: the start at once and then every 2 s, the end once.
    mutating func mayTell(_ typing: Bool, now: Timestamp) -> Bool {
        guard typing || isTyping else { return false }
        if typing, isTyping, let toldAt, now - toldAt < Self.repeats { return false }
        (isTyping, toldAt) = (typing, now)
        return true
    }

    /// Ends typing without a notification, because a sent line implies the end.
    mutating func finished() { isTyping = false }

    /// Takes a notification of the partner.
    ///
    /// - Returns: whether it changes anything.
    mutating func heard(_ typing: Bool, now: Timestamp) -> Bool {
        let wasTyping = deadline != nil
        deadline = typing ? now + Self.expires : nil
        return typing != wasTyping
    }
}
