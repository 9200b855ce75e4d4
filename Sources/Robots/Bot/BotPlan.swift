import Wire

/// What a bot is told to do.
public struct BotPlan: Sendable {
    /// Where it goes.
    public enum Place: Sendable {
        case session(SessionID, token: String)
        case roulette
    }

    /// `http://host:port` or `https://host`.
    public var server: String
    public var place: Place
    public var programme: Programme
    /// Where it writes what it receives. It receives nothing without one.
    public var directory: String?
    public var name: String
    /// What it says to everybody who comes, besides that it is a bot.
    public var line: String?

    public init(
        server: String, place: Place, programme: Programme = .sample, directory: String? = nil, name: String = "Bot",
        line: String? = nil
    ) {
        (self.server, self.place, self.programme) = (server, place, programme)
        (self.directory, self.name, self.line) = (directory, name, line)
    }

    /// Whether the server is named by an address of IPv6, so that its media is reached by it too.
    var isIPv6: Bool { (try? RobotPlace(server))?.host.contains(":") ?? false }
}
