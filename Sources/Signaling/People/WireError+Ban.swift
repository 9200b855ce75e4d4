import Wire

extension WireError {
    /// Returns the error for a banned client. If the ban is not permanent, the error contains the time until its end.
    public static func banned(_ ban: Ban, now: Timestamp) -> WireError {
        guard let end = ban.expiresAt else {
            return WireError(.banned, "You are banned from this server. Contact its operator.")
        }
        let left = end - now
        return WireError(
            .banned, "You are banned from this server. Try again in \(left.roundedText).", retryable: true,
            retryAfter: left
        )
    }
}
