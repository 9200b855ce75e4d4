import Wire

extension WireError {
    /// What somebody banned is told.
    public static func banned(_ ban: Ban, now: Timestamp) -> WireError {
        guard let end = ban.expiresAt else {
            return WireError(.banned, "You were banned from this server.")
        }
        let left = end - now
        return WireError(
            .banned, "You were banned from this server; come back in \(left.inWords).", retryable: true,
            retryAfter: left
        )
    }
}
