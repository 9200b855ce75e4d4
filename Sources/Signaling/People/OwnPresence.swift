import Wire

/// Limits how often a person's state is sent to their other devices. The first change is sent immediately. Later changes are
/// sent together, at most once per interval.
struct OwnPresence: Equatable, Sendable {
    private var sentAt: Timestamp?
    /// When to send a change that was made too soon after the previous one; nil if there is none.
    private(set) var dueAt: Timestamp?
    /// The device that made all unsent changes, and need not be notified of them; nil if several devices made them.
    private var origin: ConnectionID?

    /// Returns true if a change by this device may be sent now. Otherwise the change becomes due at the end of the interval.
    mutating func mayBeSent(_ now: Timestamp, every interval: Duration, changedBy client: ConnectionID) -> Bool {
        if dueAt != nil {
            if origin != client { origin = nil }
            return false
        }
        if let sentAt, now < sentAt + interval {
            (dueAt, origin) = (sentAt + interval, client)
            return false
        }
        sentAt = now
        return true
    }

    /// Returns whether unsent changes are due now, and the device that need not be notified. Reports each due time only once.
    mutating func takeDue(_ now: Timestamp) -> (isDue: Bool, except: ConnectionID?) {
        guard let at = dueAt, at <= now else { return (false, nil) }
        (dueAt, sentAt) = (nil, now)
        return (true, origin)
    }
}
