import Peers
import RTC
import Wire

/// Produces a bot's chat messages. Each starts with a prefix. The bot does not reply to messages with this prefix,
/// because otherwise two bots would answer each other endlessly.
struct Conversation {
    /// The prefix of every message from a bot.
    static let sign = "[bot] "
    /// The maximum length of the echoed text, in characters.
    static let maxEchoLength = 300
    /// The number of messages that may be sent at once. The server would allow more, but more messages from a bot
    /// annoy users.
    static let burst = 5
    /// The time after which each further message may be sent.
    static let interval = MediaInterval.seconds(1)

    private let line: String?
    private var allowance = Self.burst
    private var countedAt: MediaTime?

    /// - Parameter line: text to append to the greeting of each new member.
    init(saying line: String?) { self.line = line }

    /// Returns a greeting for a new member; nil when rate-limited.
    mutating func greeting(now: MediaTime) -> String? {
        guard spend(now) else { return nil }
        let introduction = "Hello! I am a bot: I play a video and repeat what you write."
        return Self.sign + (line.map { "\(introduction) \($0)" } ?? introduction)
    }

    /// Returns a reply to a chat message. Nil if the message needs no reply or the bot is rate-limited.
    mutating func answer(to text: String, now: MediaTime) -> String? {
        let text = printable(text).split(separator: " ").joined(separator: " ")
        guard !text.isEmpty, !text.hasPrefix(Self.sign), spend(now) else { return nil }
        let part = text.prefix(Self.maxEchoLength)
        return "\(Self.sign)You wrote: \(part)\(part.count < text.count ? "…" : "")"
    }

    private mutating func spend(_ now: MediaTime) -> Bool {
        let last = countedAt ?? now
        let earned = max(0, (now - last).nanoseconds / Self.interval.nanoseconds)
        if countedAt == nil || allowance >= Self.burst {
            countedAt = now
        } else {
            countedAt = last + Self.interval * earned
        }
        allowance = Int(min(Int64(Self.burst), Int64(allowance) + earned))
        guard allowance > 0 else { return false }
        allowance -= 1
        return true
    }
}
