import Confab
import Peers

/// The configuration of a bot.
public struct BotPlan: Sendable {
    /// The destination that the bot joins.
    public enum Place: Sendable {
        /// A session, with a token for it.
        case session(SessionID, token: String)
        /// The roulette, where the bot meets one stranger after another.
        case roulette
    }

    /// The server's address, `http://host:port` or `https://host`.
    public var server: String
    public var place: Place
    /// The media that the bot publishes, in a loop.
    public var clip: MediaClip
    /// The directory for recordings; nil for none.
    public var directory: String?
    /// The name that partners see.
    public var name: String
    /// Text to append to the bot's greeting of each new member; nil for none.
    public var line: String?

    public init(
        server: String, place: Place, clip: MediaClip = .sample, directory: String? = nil, name: String = "Bot",
        line: String? = nil
    ) {
        (self.server, self.place, self.clip) = (server, place, clip)
        (self.directory, self.name, self.line) = (directory, name, line)
    }

    /// Whether the server's host is an IPv6 address. If so, the media port is also reached over IPv6.
    var isIPv6: Bool { (try? HostEndpoint(server))?.host.contains(":") ?? false }
}
