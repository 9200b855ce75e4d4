import Wire

/// The typing state of both people in a match. The sender repeats the notification and the receiver lets it expire,
/// because the notification that typing has ended can be lost.
struct TypingClock: Equatable, Sendable {
    /// How often to repeat the notification while the person types.
    private static let repeats = Duration.seconds(2)
    /// After this time without a notification, the partner no longer counts as typing. This is long enough for two
    /// repeats on a slow network.
    private static let expires = Duration.seconds(5)

    private var isTyping = false
    private var notifiedAt: Timestamp?
    /// When the partner no longer counts as typing; nil if the partner is not typing.
    private(set) var deadline: Timestamp?

    /// Returns whether to notify the partner: immediately when the person starts typing, every 2 s while the person
    /// types, and once when the person stops.
    mutating func mayTell(_ typing: Bool, now: Timestamp) -> Bool {
        guard typing || isTyping else { return false }
        if typing, isTyping, let notifiedAt, now - notifiedAt < Self.repeats { return false }
        (isTyping, notifiedAt) = (typing, now)
        return true
    }

    /// Ends typing without a notification, because sending a line implies that the person has stopped typing.
    mutating func finished() { isTyping = false }

    /// Handles a notification from the partner.
    ///
    /// - Returns: whether the partner's typing state has changed.
    mutating func heard(_ typing: Bool, now: Timestamp) -> Bool {
        let wasTyping = deadline != nil
        deadline = typing ? now + Self.expires : nil
        return typing != wasTyping
    }
}
