import Wire

/// The configuration of a bot.
public struct BotPlan: Sendable {
    /// The place the bot joins.
    public enum Place: Sendable {
        case session(SessionID, token: String)
        case roulette
    }

    /// `http://host:port` or `https://host`.
    public var server: String
    public var place: Place
    public var clip: MediaClip
    /// Directory for recordings. If nil, the bot receives no media.
    public var directory: String?
    public var name: String
    /// Text appended to the greeting of each new member.
    public var line: String?

    public init(
        server: String, place: Place, clip: MediaClip = .sample, directory: String? = nil, name: String = "Bot",
        line: String? = nil
    ) {
        (self.server, self.place, self.clip) = (server, place, clip)
        (self.directory, self.name, self.line) = (directory, name, line)
    }

    /// True if the server's host is an IPv6 address. Its media port is then reached over IPv6 too.
    var isIPv6: Bool { (try? RobotPlace(server))?.host.contains(":") ?? false }
}
