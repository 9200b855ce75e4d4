import Wire

/// When a person's state is sent to its other devices: at once, and then at most once per interval, however often it changes.
struct OwnPresence: Equatable, Sendable {
    private var sentAt: Timestamp?
    /// When a change that came too early is sent.
    private(set) var dueAt: Timestamp?
    /// The device that made all changes since then and knows them; nil if several did.
    private var origin: ConnectionID?

    /// Returns true if a change by this device may be sent now. Otherwise it becomes due at the end of the interval.
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

    /// Returns true once when the interval is over, with the device that need not be told.
    mutating func takeDue(_ now: Timestamp) -> (isDue: Bool, except: ConnectionID?) {
        guard let at = dueAt, at <= now else { return (false, nil) }
        (dueAt, sentAt) = (nil, now)
        return (true, origin)
    }
}
